"""Rare classes: a weight for the loss of every class, or a sampler that draws all classes equally often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from credro._names import UnknownName
from credro.data.base import Data
from credro.members import PerSampleLoss


@dataclass(frozen=True, eq=False)
class WeightedLoss:
    """A per-sample loss times the weight of the sample's class; of a soft label, the mean weight of its classes."""

    loss: PerSampleLoss
    weights: Tensor  # (C,)

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        """Losses (B,). target: classes (B,) or soft labels (B, C)."""
        weights = self.weights.to(output.dtype)
        each = target.to(weights.dtype) @ weights if target.ndim == 2 else weights[target]
        return self.loss(output, target) * each


def weighted(loss: PerSampleLoss, weights: Tensor) -> PerSampleLoss:
    """``loss`` times ``weights`` (C,) of the classes."""
    return WeightedLoss(loss, weights)


def class_weights(given: str | Mapping[str, float], data: Data, classes: int) -> Tensor:
    """The weights (C,) that a recipe's ``class_weight`` stands for.

    "balanced": N / (K n_c), with n_c samples of class c among the N, and K classes that occur: the mean weight of a
    sample is 1. A mapping has the classes' names as keys, or, where one of them is no name, all their numbers. Classes
    without a weight have 1.
    """
    if isinstance(given, str):
        counts = class_counts(data.labels, classes)
        present = counts > 0
        return torch.where(present, len(data) / (present.sum() * counts.clamp_min(1e-12)), 1.0).float()
    numbers = [str(i) for i in range(classes)]
    names = list(data.classes) or numbers
    known = names if set(given) <= set(names) or not set(given) <= set(numbers) else numbers
    weights = torch.ones(classes)
    for key, weight in given.items():
        if key not in known:
            raise UnknownName("class_weight", key, known)
        weights[known.index(key)] = weight
    return weights


def class_counts(labels: Tensor, classes: int) -> Tensor:
    """How much there is (C,) of every class, in doubles; soft labels (N, C) count by their probabilities."""
    if labels.ndim == 2:
        return labels.double().sum(0)
    return torch.bincount(labels.long(), minlength=classes).double()


def balanced_order(labels: Tensor, draws: torch.Generator) -> Tensor:
    """N samples (N,) in random order, drawn with replacement, every class that occurs equally often.

    Which classes have one more, where N is no multiple of their number, is drawn too. Soft labels (N, C) count as
    their largest class.
    """
    truth = (labels.argmax(-1) if labels.ndim == 2 else labels).cpu()
    _, truth, counts = torch.unique(truth, return_inverse=True, return_counts=True)
    n, k = len(truth), len(counts)
    which = torch.randperm(k, generator=draws)[torch.arange(n) % k]
    # A double times a whole number may round up to that number.
    place = (torch.rand(n, dtype=torch.float64, generator=draws) * counts[which]).long().minimum(counts[which] - 1)
    by_class = truth.argsort(stable=True)
    chosen: Tensor = by_class[(counts.cumsum(0) - counts)[which] + place]
    return chosen[torch.randperm(n, generator=draws)]
