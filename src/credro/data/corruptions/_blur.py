"""Blur: defocus, frosted glass, motion, zoom. All take x (N, C, H, W), float64 in [0, 1]."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from credro.data.corruptions._severities import Parameters
from credro.data.corruptions._tools import (
    Draws,
    convolve,
    enlarge,
    gaussian_kernel,
    mirrored,
    motion_kernel,
    spatial_scale,
)


def defocus_blur(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Every point becomes a disc whose edge is smoothed a little."""
    scale = spatial_scale(x)
    radius, smooth = c[0] * scale, c[1] * scale
    edge = max(1, round(scale))  # three pixels wide at 32x32
    r = math.floor(radius) + 2 * edge  # a dark margin, of which mirroring finds only darkness
    at = torch.arange(-r, r + 1, device=x.device).double()
    disc = (at[:, None] ** 2 + at**2 <= radius**2).double()
    kernel = convolve(disc[None, None], gaussian_kernel(smooth, edge, x.device))
    return convolve(x, kernel / kernel.sum())


def glass_blur(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Blurred, then a fraction of the pixels taken from random neighbours, some rounds over, and blurred again.

    CIFAR-10-C swaps neighbours one after the other; taking all at once looks the same and needs no loop over pixels.
    """
    scale = spatial_scale(x)
    sigma, fraction, rounds = c[0] * scale, c[1], int(c[2])
    reach = round(scale)  # one pixel at 32x32
    kernel = gaussian_kernel(sigma, math.ceil(4 * sigma), x.device)
    h, w = x.shape[-2:]
    y = convolve(x, kernel)
    rows, columns = mirrored(h, reach, reach, x.device), mirrored(w, reach, reach, x.device)
    for _ in range(rounds):
        moved = draws.uniform(h, w) < fraction
        dy, dx = (torch.where(moved, draws.integers(2 * reach + 1, h, w), reach) for _ in range(2))
        row = rows[torch.arange(h, device=x.device)[:, None] + dy]
        column = columns[torch.arange(w, device=x.device) + dx]
        place = (row * w + column).view(len(x), 1, h * w).expand(-1, x.shape[1], -1)
        y = y.flatten(2).gather(2, place).view(x.shape)
    return convolve(y, kernel)


def motion_blur(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """A trail in a direction within 45 degrees of the horizontal."""
    angle = draws.uniform(low=-math.pi / 4, high=math.pi / 4)
    return convolve(x, motion_kernel(angle, c[0] * spatial_scale(x)))


def zoom_blur(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """The mean of the image and its enlargements by 1, 1.01, 1.02, ... below c."""
    h, w = x.shape[-2:]
    factors = [1 + 0.01 * i for i in range(round((c[0] - 1) / 0.01))]
    return (x + sum(enlarge(x, factor, (h, w)) for factor in factors)) / (len(factors) + 1)
