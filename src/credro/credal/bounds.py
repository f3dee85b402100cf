"""Arithmetic on class-wise probability bounds."""

from __future__ import annotations

import torch
from torch import Tensor

TINY = 1e-300
"""What a probability of 0 counts as inside a logarithm: its entropy is still 0, and its gradient stays finite."""


def reachable(lower: Tensor, upper: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Tightest bounds of the same set; classes along ``dim``.

    ``l'_k = max(l_k, 1 - sum of the other u)`` and ``u'_k = min(u_k, 1 - sum of the other l)``.
    """
    low = torch.maximum(lower, 1 - (upper.sum(dim, keepdim=True) - upper))
    high = torch.minimum(upper, 1 - (lower.sum(dim, keepdim=True) - lower))
    # Rounding may push a bound of a set without width past its partner by an ulp.
    low = torch.minimum(low, upper)
    return low, torch.maximum(high, low)


def intersection(lower: Tensor, upper: Tensor) -> Tensor:
    """Intersection probability (..., C): ``l + a (u - l)`` with one ``a`` for all classes such that the sum is 1."""
    width = upper - lower
    total = width.sum(-1, keepdim=True)
    share = (1 - lower.sum(-1, keepdim=True)) / total.where(total > 0, torch.ones_like(total))
    return lower + share.clamp(0, 1) * width
