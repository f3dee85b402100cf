"""Label noise."""

from __future__ import annotations

import torch
from torch import Tensor

from credro._names import ArgumentError


def symmetric_noise(labels: Tensor, rate: float, classes: int, *, seed: int) -> Tensor:
    """Labels (N,) of which exactly ``round(rate * N)`` were replaced, each by one of the other classes at random.

    No replaced label stays what it was; the other ``classes - 1`` are equally likely.
    """
    if labels.ndim != 1 or labels.is_floating_point():
        raise ArgumentError(
            "labels", f"labels must be integers of shape (N,), got {labels.dtype} of shape {tuple(labels.shape)}"
        )
    if not 0 <= rate <= 1:
        raise ArgumentError("rate", f"rate must lie in [0, 1], got {rate}")
    if classes < 2:
        raise ArgumentError("classes", f"classes must be at least 2 for a label to change, got {classes}")
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < classes):
        raise ArgumentError(
            "labels", f"labels must lie in 0..{classes - 1}, got {int(labels.min())}..{int(labels.max())}"
        )
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.randperm(len(labels), generator=generator)[: round(rate * len(labels))]
    step = torch.randint(1, classes, (len(wrong),), generator=generator)
    noisy = labels.clone()
    wrong, step = wrong.to(labels.device), step.to(labels.device)
    noisy[wrong] = ((labels[wrong].long() + step) % classes).to(labels.dtype)
    return noisy
