"""A network that predicts a number as a Gaussian, from any network with two outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from credro.nets.registry import make

FLOOR = 1e-6
"""Smallest variance, in units of the target's own: the likelihood of a perfect fit would have no end."""


class GaussianNet(nn.Module):
    """Mean and log variance (B, 2) of a number, in its own unit (Lakshminarayanan et al., 2017).

    The network inside works on a target of mean 0 and standard deviation 1, so that one recipe serves every unit.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, net: nn.Module, mean: float, std: float) -> None:
        """net: gives two outputs. mean, std: of the training targets."""
        super().__init__()
        if not (math.isfinite(mean) and math.isfinite(std) and std > 0):
            raise ValueError(f"mean must be finite and std positive, got {mean} and {std}")
        self.net = net
        self.register_buffer("mean", torch.tensor(float(mean)))
        self.register_buffer("std", torch.tensor(float(std)))

    def forward(self, x: Tensor) -> Tensor:
        """Samples (B, *shape) to mean and log variance (B, 2)."""
        mean, raw = self.net(x).unbind(-1)
        log_variance = (softplus(raw) + FLOOR).log() + 2 * self.std.log()
        return torch.stack([self.mean + self.std * mean, log_variance], -1)


def make_gaussian(name: str, shape: Sequence[int], mean: float, std: float) -> GaussianNet:
    """One of credro's networks for a number whose training values have this mean and standard deviation."""
    return GaussianNet(make(name, classes=2, shape=shape), mean, std)
