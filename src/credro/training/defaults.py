"""What training takes for itself where nothing is said: a recipe that suits the data, and data to stop by."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.splits import split, split_groups
from credro.training.recipe import Recipe
from credro.training.streams import derive

LEAST = 50
"""Samples below which none are set aside: a held-out loss of so few says little, and training needs them."""
MOST = 5_000
"""Samples set aside at most: more would tell the best epoch no better."""


@dataclass(frozen=True)
class Plan:
    """How long and in what steps to train a kind of data.

    steps: wanted in all. epochs: fewest and most. batch: smallest and largest, and between them ``1 / an_epoch`` of the
    samples, so that a small set has enough steps an epoch. patience: of early stopping, as a fraction of the epochs.
    """

    recipe: Recipe
    steps: int
    epochs: tuple[int, int]
    batch: tuple[int, int]
    an_epoch: int
    patience: float


TABLE = Plan(
    Recipe(optimizer="adamw", lr=1e-3, weight_decay=0.1, early_stop_by="calibrated"),
    steps=1000,
    epochs=(60, 200),
    batch=(64, 256),
    an_epoch=16,
    patience=0.25,
)
"""Those of the estimators, chosen on real tables (``python -m benchmarks tables``)."""
IMAGES = Plan(
    Recipe(optimizer="adamw", lr=2e-3, weight_decay=1e-2, warmup=1),
    steps=1500,
    epochs=(15, 60),
    batch=(16, 128),
    an_epoch=64,
    patience=0.3,
)
"""By BreaKHis (1,419 images of 64 pixels) and CIFAR-10 (1,700 of 32), ResNet-8: docs/results.md has the figures."""
SMALL_IMAGES = replace(IMAGES, steps=2500)
"""Up to ``FEW_PIXELS``: they cost a quarter and, with less in them, are harder to tell apart."""
FEW_PIXELS = 48 * 48
TAIL = Plan(
    Recipe(optimizer="adamw", lr=1e-3, weight_decay=0.1, warmup=1),
    steps=600,
    epochs=(12, 40),
    batch=(32, 128),
    an_epoch=32,
    patience=0.3,
)
"""Layers of a trunk with a head: they begin where the trunk ended, and need fewer steps than what begins anew."""


def plan_for(data: Data) -> Plan:
    """The plan of the samples' kind."""
    if data.origin is not None and data.prepared:
        return TAIL
    if len(data.shape) != 3:
        return TABLE
    return SMALL_IMAGES if data.shape[1] * data.shape[2] <= FEW_PIXELS else IMAGES


def recipe_for(
    data: Data,
    net: object = None,
    *,
    held_out: bool = True,
    batch_size: int | None = None,
    seed: int = 0,
) -> Recipe:
    """A recipe for training ``net`` on ``data``, chosen by the samples' kind and number.

    data: what is trained on, without what was set aside. net: a network's name or what builds one; its name tells
    nothing yet that the samples do not. held_out: whether there is held-out data to stop by. batch_size: as the user
    has it elsewhere, a ``DataLoader``'s; chosen if not given.
    """
    plan = plan_for(data)
    size = batch_size or min(plan.batch[1], max(plan.batch[0], len(data) // plan.an_epoch), max(8, len(data) // 4))
    steps = max(1, math.ceil(len(data) / size))
    epochs = min(plan.epochs[1], max(plan.epochs[0], math.ceil(plan.steps / steps)))
    numbers = data.labels.ndim == 1 and data.labels.is_floating_point()
    return plan.recipe.with_(
        epochs=epochs,
        batch_size=size,
        early_stop=max(3, round(plan.patience * epochs)) if held_out else 0,
        early_stop_by=plan.recipe.early_stop_by if held_out and data.labels.ndim == 1 else "loss",
        loss="gaussian_nll" if numbers else "cross_entropy",
        seed=seed,
    )


@dataclass(frozen=True)
class Parts:
    """A set in two: what to train on and what to stop by, or None, and a sentence that says so."""

    train: Data
    held_out: Data | None
    note: str


def set_aside(data: Data, fraction: float = 0.15, *, seed: int = 0, groups: Tensor | None = None) -> Parts:
    """Divide ``data``: ``fraction`` of it, at most ``MOST`` samples, is held out of training to decide when to stop.

    Every class gives its part, and the only sample of a class stays in training. Samples of one group (``groups`` (N,),
    or those of the data) never fall on both sides, nor do copies: samples of equal content.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie in (0, 1), got {fraction}")
    if len(data) < LEAST:
        return Parts(
            data, None, f"No samples are held out to stop by: there are {len(data)}, and at least {LEAST} are needed."
        )
    by_group = data.groups if groups is None else groups
    together = _together(data.content(), by_group)
    part = min(fraction, MOST / len(data))
    for attempt in range(10):
        aside = _aside(data, together, part, by_group is not None, derive(seed, "held out", attempt))
        if len(aside) and not _lost(data, aside):
            rest = torch.ones(len(data), dtype=torch.bool)
            rest[aside] = False
            note = (
                f"{len(aside):,} of {len(data):,} samples{' (whole groups)' if by_group is not None else ''} are held "
                f"out of training to decide when to stop."
            )
            return Parts(data.subset(rest.nonzero()[:, 0]), data.subset(aside), note)
    why = "groups" if by_group is not None else "copies of samples"
    return Parts(
        data, None, f"No samples are held out to stop by: the {why} cannot be divided so that each class stays."
    )


def _strata(data: Data) -> Tensor:
    """The class (N,) of every sample; of numbers the third of them it belongs to."""
    labels = data.labels.cpu()
    if labels.ndim == 2:
        return labels.argmax(1)
    if labels.is_floating_point():
        return torch.bucketize(
            labels, torch.quantile(labels.double(), torch.tensor([1 / 3, 2 / 3]).double()).to(labels)
        )
    return labels


def _together(content: Tensor, groups: Tensor | None) -> Tensor:
    """A number (N,) per sample, equal where two must fall on one side: by content, by group, or by a chain of both."""
    kind = _numbered(content)
    if groups is None:
        return kind
    group, unit = _numbered(groups.cpu()), kind
    while True:
        joined = _lowest(_lowest(unit, group), kind)
        if torch.equal(joined, unit):
            return _numbered(unit)
        unit = joined


def _numbered(values: Tensor) -> Tensor:
    """The place (N,) of each value among the distinct ones."""
    places: Tensor = torch.unique(values, return_inverse=True)[1]
    return places


def _lowest(values: Tensor, member: Tensor) -> Tensor:
    """For every sample the smallest of ``values`` (N,) among those with its ``member`` number (N,)."""
    start = torch.full((int(member.max()) + 1,), len(values), dtype=values.dtype)
    return start.scatter_reduce(0, member, values, "amin")[member]


def _aside(data: Data, together: Tensor, part: float, grouped: bool, seed: int) -> Tensor:
    """Sample numbers to hold out; none where they cannot be divided."""
    strata = _strata(data)
    sizes = torch.bincount(together)
    if len(sizes) < 2:
        return torch.empty(0, dtype=torch.long)
    if grouped or int(sizes.max()) > max(1.0, 0.2 * part * len(data)):
        return split_groups(together, part, seed=seed, labels=strata)[0]
    first = torch.full((len(sizes),), len(data)).scatter_reduce(0, together, torch.arange(len(data)), "amin")
    kind, counts = torch.unique(strata[first], return_inverse=True, return_counts=True)[1:]
    free = (counts[kind] > 1).nonzero()[:, 0]  # the only sample of a class is none of them
    if round(part * len(free)) == 0:
        return torch.empty(0, dtype=torch.long)
    chosen = free[split(strata[first][free], part, seed=seed)[0]]
    return torch.isin(together, chosen).nonzero()[:, 0]


def _lost(data: Data, aside: Tensor) -> bool:
    """Whether training would be left without a class that it has, or with nothing."""
    rest = torch.ones(len(data), dtype=torch.bool)
    rest[aside] = False
    strata = _strata(data)
    return len(torch.unique(strata[rest])) < len(torch.unique(strata))
