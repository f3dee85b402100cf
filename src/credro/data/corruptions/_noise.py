"""Noise of the sensor: Gaussian, photon, and dead pixels. All take x (N, C, H, W), float64 in [0, 1]."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from credro.data.corruptions._severities import Parameters
from credro.data.corruptions._tools import Draws


def gaussian_noise(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Normal noise of standard deviation c on every value."""
    return x + c[0] * draws.normal(*x.shape[1:])


def shot_noise(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Every value becomes a Poisson count of c photons per unit of light, by inversion of its distribution."""
    photons = float(c[0])
    table, width = _poisson_table(photons)
    value = (x * 255).round().contiguous()  # images are bytes: 256 distributions serve all pixels
    found = torch.searchsorted(table.to(x.device), value + draws.uniform(*x.shape[1:]), right=True)
    return (found - value.long() * width) / photons


def impulse_noise(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """A fraction c of all values becomes 0 or 1, equally often."""
    u = draws.uniform(*x.shape[1:])
    return torch.where(u < c[0], (u < c[0] / 2).double(), x)


@lru_cache(maxsize=8)
def _poisson_table(photons: float) -> tuple[Tensor, int]:
    """The distribution functions F(k) of Poisson(photons * v / 255), v = 0..255, as one sorted sequence of v + F."""
    mean = photons * torch.arange(256, dtype=torch.float64)[:, None] / 255
    width = int(photons + 12 * photons**0.5 + 12)  # 12 standard deviations: F is 1 beyond
    k = torch.arange(width, dtype=torch.float64)
    mass = torch.exp(torch.xlogy(k, mean) - mean - torch.lgamma(k + 1))
    below = mass.cumsum(1).clamp(max=1)
    below[:, -1] = 1
    return (torch.arange(256)[:, None] + below).view(-1), width
