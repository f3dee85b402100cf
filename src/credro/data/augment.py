"""Random augmentation of whole batches (B, C, H, W), bytes or floats in [0, 1], grey or colour, on any device.

Every sample has its own draw. Draws come from a CPU generator, so a seed means the same on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from credro._names import ArgumentError
from credro.data.base import to_float

Augmentation = Callable[[Tensor, torch.Generator], Tensor]


def random_crop(x: Tensor, padding: int, generator: torch.Generator, *, fill: float = 0) -> Tensor:
    """A window of the original size, anywhere in the image padded by ``padding`` on each side with ``fill``."""
    return _shifted(x, *_offsets(len(x), padding, generator), torch.zeros(len(x), dtype=torch.bool), padding, fill)


def random_flip(
    x: Tensor, generator: torch.Generator, *, horizontal: bool = True, vertical: bool = False, p: float = 0.5
) -> Tensor:
    """Each sample mirrored left-right with probability ``p``, and top-bottom likewise when ``vertical``."""
    for dim, wanted in ((-1, horizontal), (-2, vertical)):
        if wanted:
            x = _choose([x, x.flip(dim)], torch.rand(len(x), generator=generator) < p)
    return x


def random_right_angle(x: Tensor, generator: torch.Generator) -> Tensor:
    """Each sample turned by 0, 90, 180 or 270 degrees; images must be square."""
    if x.shape[-1] != x.shape[-2]:
        raise ArgumentError("x", f"x must hold square images to turn by right angles, got {tuple(x.shape[-2:])}")
    turned = [x.rot90(k, (-2, -1)) for k in range(4)]
    return _choose(turned, torch.randint(0, 4, (len(x),), generator=generator))


def random_scale(x: Tensor, low: float, high: float, generator: torch.Generator) -> Tensor:
    """Each sample enlarged about its centre by a factor from [low, high], bilinear; below 1 the border is mirrored."""
    _check_range(low, high)
    factor = _uniform(len(x), low, high, generator)
    theta = torch.zeros(len(x), 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = 1 / factor
    pixels = to_float(x)
    grid = F.affine_grid(theta.to(pixels), list(x.shape), align_corners=False)
    return _like(x, F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False))


def random_blur(x: Tensor, low: float, high: float, generator: torch.Generator) -> Tensor:
    """Each sample blurred by a Gaussian whose standard deviation, in pixels, comes from [low, high]."""
    _check_range(low, high)
    b, c, h, w = x.shape
    radius = min(math.ceil(3 * high), h - 1, w - 1)  # mirroring cannot reach further
    sigma = _uniform(b, low, high, generator)
    kernel = torch.exp(-0.5 * (torch.arange(-radius, radius + 1) / sigma[:, None]) ** 2)
    kernel = (kernel / kernel.sum(1, keepdim=True)).repeat_interleave(c, 0)[:, None, None].to(x.device)
    pixels = F.pad(to_float(x), (radius,) * 4, mode="reflect").view(1, b * c, h + 2 * radius, w + 2 * radius)
    pixels = F.conv2d(pixels, kernel.to(pixels), groups=b * c)
    pixels = F.conv2d(pixels, kernel.to(pixels).transpose(2, 3), groups=b * c)
    return _like(x, pixels.view(x.shape))


def colour_jitter(
    x: Tensor,
    generator: torch.Generator,
    *,
    brightness: float = 0.2,
    contrast: float = 0.2,
    saturation: float = 0.2,
    hue: float = 0.02,
) -> Tensor:
    """Brightness, contrast and saturation of each sample scaled by a factor from [1 - s, 1 + s]; hue turned by up to
    ``hue`` of a full circle, in the chroma plane of YIQ. Grey images have neither saturation nor hue.
    """
    b, c = x.shape[:2]
    light, spread, chroma = (
        _uniform(b, 1 - s, 1 + s, generator).to(x.device).view(b, 1, 1, 1) for s in (brightness, contrast, saturation)
    )
    angle = _uniform(b, -hue, hue, generator) * 2 * math.pi
    pixels = (to_float(x) * light).clamp(0, 1)
    middle = pixels.mean((1, 2, 3), keepdim=True)
    pixels = middle + (pixels - middle) * spread
    if c == 3:
        yiq = pixels.new_tensor(_YIQ)
        turn = torch.eye(3).repeat(b, 1, 1)
        turn[:, 1, 1] = turn[:, 2, 2] = angle.cos()
        turn[:, 1, 2], turn[:, 2, 1] = -angle.sin(), angle.sin()
        turn = turn.to(pixels)
        turn[:, 1:] *= chroma.view(b, 1, 1)
        matrix = torch.linalg.inv(yiq) @ turn @ yiq
        pixels = (matrix @ pixels.flatten(2)).view(x.shape)
    return _like(x, pixels)


def normalise(x: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Floats ``(x - mean) / std`` with one mean and standard deviation per channel; bytes are taken as 0..1."""
    if len(mean) != x.shape[1] or len(std) != x.shape[1]:
        raise ArgumentError(
            "mean", f"mean and std must have one entry per channel ({x.shape[1]}), got {len(mean)}, {len(std)}"
        )
    pixels = x.float() if x.dtype == torch.uint8 else x.clone()
    offset, slope = _affine(tuple(mean), tuple(std), x.shape[1:], 255 if x.dtype == torch.uint8 else 1)
    return torch.addcmul(offset.to(pixels), pixels, slope.to(pixels), out=pixels)


def crop_flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror, then crop with a padding of an eighth of the height: 4 pixels at 32x32, as is usual for CIFAR."""
    padding = x.shape[-2] // 8
    mirrored = torch.rand(len(x), generator=generator) < 0.5
    return _shifted(x, *_offsets(len(x), padding, generator), mirrored, padding)


def histology(x: Tensor, generator: torch.Generator) -> Tensor:
    """Tissue has no up and no left, and is stained and focused differently from slide to slide."""
    x = random_crop(x, x.shape[-2] // 16, generator, fill=255 if x.dtype == torch.uint8 else 1)  # glass is white
    x = random_flip(x, generator, vertical=True)
    x = random_right_angle(x, generator)
    pixels = random_scale(to_float(x), 1.0, 1.2, generator)
    pixels = random_blur(pixels, 0.1, 0.8, generator)
    return _like(x, colour_jitter(pixels, generator))


AUGMENTATIONS: dict[str, Augmentation] = {
    "none": lambda x, generator: x,
    "flip": random_flip,
    "crop-flip": crop_flip,
    "histology": histology,
}

_YIQ = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))


def _choose(variants: Sequence[Tensor], which: Tensor) -> Tensor:
    """Sample i of ``variants[which[i]]``."""
    b = len(which)
    return torch.cat(list(variants)).index_select(0, (which * b + torch.arange(b)).to(variants[0].device))


def _offsets(b: int, padding: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    dy, dx = torch.randint(-padding, padding + 1, (2, b), generator=generator)
    return dy, dx


def _shifted(x: Tensor, dy: Tensor, dx: Tensor, mirrored: Tensor, most: int, fill: float = 0) -> Tensor:
    """Sample i, mirrored if ``mirrored[i]``, seen through a window moved by (dy[i], dx[i]), at most ``most`` pixels.

    A processor copies whole rows much faster than it gathers pixels, so there it is a copy per image.
    """
    if x.device.type != "cpu" or x.dtype == torch.bfloat16:  # NumPy has no bfloat16
        return _shifted_by_gather(x, dy, dx, mirrored, most, fill)
    rows, columns = ([_overlap(d, n) for d in range(-most, most + 1)] for n in x.shape[-2:])
    out = torch.full_like(x, fill)
    draws = zip(dy.tolist(), dx.tolist(), mirrored.tolist(), strict=True)
    for target, source, (down, right, mirror) in zip(out.numpy(), x.numpy(), draws, strict=True):
        (to_rows, from_rows), (to_columns, from_columns) = rows[down + most], columns[right + most]
        if mirror:
            source = source[..., ::-1]
        target[:, to_rows, to_columns] = source[:, from_rows, from_columns]
    return out


def _shifted_by_gather(x: Tensor, dy: Tensor, dx: Tensor, mirrored: Tensor, most: int, fill: float = 0) -> Tensor:
    """The same on any device, without a loop."""
    b, c, h, w = x.shape
    wide = w + 2 * most
    padded = F.pad(x, (most,) * 4, value=fill).flatten(2)
    row = torch.arange(h) + (most + dy)[:, None]
    column = torch.arange(w) + dx[:, None]
    column = most + torch.where(mirrored[:, None], w - 1 - column, column)
    place = (row[:, :, None] * wide + column[:, None]).view(b, 1, h * w).to(x.device)
    return padded.gather(2, place.expand(-1, c, -1)).view(x.shape)


def _overlap(d: int, n: int) -> tuple[slice, slice]:
    """Where a window of n moved by d meets the image: in the window, and in the image. Beyond n they do not meet."""
    meet = max(0, n - abs(d))
    return slice(max(-d, 0), max(-d, 0) + meet), slice(max(d, 0), max(d, 0) + meet)


@lru_cache(maxsize=32)
def _affine(mean: tuple[float, ...], std: tuple[float, ...], shape: torch.Size, top: int) -> tuple[Tensor, Tensor]:
    """Offset and slope of the normalisation, at full size: broadcast ones would keep ``addcmul`` from vectorising."""
    columns = (len(mean), *[1] * (len(shape) - 1))
    scale = 1 / torch.tensor(std, dtype=torch.float64).view(columns)
    offset = -torch.tensor(mean, dtype=torch.float64).view(columns) * scale
    return offset.float().expand(shape).contiguous(), (scale / top).float().expand(shape).contiguous()


def _uniform(n: int, low: float, high: float, generator: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=generator)


def _like(x: Tensor, pixels: Tensor) -> Tensor:
    """Floats in [0, 1] in the dtype of ``x``."""
    pixels = pixels.clamp(0, 1)
    return pixels.mul(255).round().to(torch.uint8) if x.dtype == torch.uint8 else pixels.to(x.dtype)


def _check_range(low: float, high: float) -> None:
    if not 0 < low <= high:
        raise ArgumentError("low", f"low and high must satisfy 0 < low <= high, got {low} and {high}")
