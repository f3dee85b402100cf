"""Light, contrast, warping, resolution, compression. All take x (N, C, H, W), float64 in [0, 1]."""

from __future__ import annotations

import io
import math

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from credro.data.corruptions._severities import Parameters
from credro.data.corruptions._tools import Draws, convolve, gaussian_kernel, sample, spatial_scale, to_bytes


def brightness(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """c is added to the value of HSV, hue and saturation stay: all channels grow by one factor; black becomes grey."""
    value = x.amax(1, keepdim=True)
    brighter = (value + c[0]).clamp(max=1)
    return torch.where(value > 0, x * (brighter / value.clamp(min=1e-9)), brighter)


def contrast(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """The distance to the mean of each channel shrinks to c of what it was."""
    mean = x.mean((2, 3), keepdim=True)
    return mean + (x - mean) * c[0]


def elastic_transform(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """A random affine map of three points, and a smooth random displacement on top."""
    n, _, h, w = x.shape
    size = min(h, w)
    strength, smooth, corner = (size * value for value in c)
    # Three points a third of the size around the centre, each moved by up to ``corner``, fix the affine map.
    third = size / 3
    points = torch.tensor([[third, third, 1], [third, -third, 1], [-third, -third, 1]], dtype=torch.float64)
    moved = points[:, :2].to(x.device) + draws.uniform(3, 2, low=-corner, high=corner)
    matrix = torch.linalg.inv(points).to(x.device) @ moved  # (N, 3, 2): (row, column, 1) -> (row, column)
    rows = torch.arange(h, device=x.device).double() - (h - 1) / 2
    columns = torch.arange(w, device=x.device).double() - (w - 1) / 2
    grid = torch.stack(
        [rows[:, None].expand(h, w), columns.expand(h, w), torch.ones(h, w, device=x.device, dtype=torch.float64)], -1
    )
    target = grid.view(1, h * w, 3) @ matrix
    noise = draws.uniform(2, h, w, low=-1, high=1)
    shift = strength * convolve(noise, gaussian_kernel(smooth, math.ceil(3 * smooth), x.device))
    row, column = target.view(n, h, w, 2).unbind(-1)
    return sample(x, row + (h - 1) / 2 + shift[:, 0], column + (w - 1) / 2 + shift[:, 1])


def pixelate(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Shrunk by boxes, each its mean, and drawn large again.

    A box is 1/c pixels wide at 32x32, and what it is wider than one pixel grows with the image.
    """
    width = 1 + (1 / c[0] - 1) * spatial_scale(x)
    down_up = [_blocks(n, max(1, int(n / width + 1e-9))).to(x.device) for n in x.shape[-2:]]
    return down_up[0] @ x @ down_up[1].T


def jpeg_compression(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Through a JPEG file of quality c."""
    images = to_bytes(x).permute(0, 2, 3, 1).cpu().numpy()
    grey = images.shape[-1] == 1
    out = np.empty_like(images)
    for source, target in zip(images, out, strict=True):
        file = io.BytesIO()
        Image.fromarray(source[..., 0] if grey else source).save(file, "JPEG", quality=int(c[0]))
        target[...] = np.asarray(Image.open(file)).reshape(target.shape)
    return torch.from_numpy(out).to(x.device).permute(0, 3, 1, 2).double() / 255


def _blocks(n: int, small: int) -> Tensor:
    """(n, n): the mean over the source pixels of the block that each target pixel lies in."""
    ratio = n / small
    ends = [math.floor(i * ratio + 0.5) for i in range(small + 1)]  # a block owns the pixels whose centres it holds
    down = torch.zeros(small, n, dtype=torch.float64)
    for row, first, last in zip(down, ends, ends[1:], strict=False):
        row[first:last] = 1 / (last - first)
    nearest = ((torch.arange(n) + 0.5) / ratio).long()
    return down[nearest]
