"""How to train, whatever the method: one dataclass, its schedules and the paper's settings by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import nn

from credro._names import ArgumentError, did_you_mean, one_of
from credro._records import Record, check_types

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "cosine", "step", "plateau")
PRECISIONS = ("fp32", "bf16", "fp16")
WATCHED = ("loss", "calibrated")
ALIASES = {"optimiser": "optimizer"}
"""Other spellings of fields, understood wherever a field is named."""


@dataclass(frozen=True)
class Recipe(Record):
    """One recipe for all members and all methods; a comparison is only worth something when both sides share it."""

    epochs: int = 20
    batch_size: int = 128  # samples; the last batch of an epoch may be smaller
    optimizer: str = "sgd"  # sgd, adam or adamw; "optimiser" is understood as well
    lr: float = 0.1  # highest learning rate
    momentum: float = 0.9  # sgd only
    nesterov: bool = False  # sgd only
    weight_decay: float = 5e-4
    schedule: str = "cosine"  # constant, cosine, step or plateau
    per_step: bool = True  # whether the schedule moves with every batch or, as in the paper, with every epoch
    warmup: float = 0.0  # epochs of linear rise to lr
    warmup_lr: float = 0.0  # where the rise starts
    final_lr: float = 0.0  # where cosine ends, and the floor of plateau
    milestones: tuple[int, ...] = ()  # epochs at which step multiplies by gamma
    gamma: float = 0.1  # factor of step and plateau
    patience: int = 3  # epochs without a better held-out loss before plateau reduces
    early_stop: int = 0  # epochs without a better held-out loss before a member stops, at its best weights; 0: never
    early_stop_by: str = "loss"  # or "calibrated": the held-out loss at its best temperature, which fit then sets
    augment: str = "none"  # a name in credro.data.AUGMENTATIONS
    loss: str = "cross_entropy"  # a name in credro.members.LOSSES
    precision: str = "fp32"  # fp32, bf16, or fp16 with loss scaling
    clip: float = 0.0  # largest gradient norm; 0 does not clip
    compile: bool = False  # torch.compile the networks
    channels_last: bool = True  # memory layout of image batches; measured to be the faster one, also on the CPU
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every field, in the user's words."""
        object.__setattr__(self, "milestones", tuple(self.milestones))
        choices = {"optimizer": OPTIMIZERS, "schedule": SCHEDULES, "precision": PRECISIONS, "early_stop_by": WATCHED}
        for name, allowed in choices.items():
            one_of(name, getattr(self, name), allowed)
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ArgumentError(name, f"{name} must be a whole number of at least 1, got {value!r}")
        if not isinstance(self.early_stop, int) or isinstance(self.early_stop, bool) or self.early_stop < 0:
            raise ArgumentError(
                "early_stop",
                f"early_stop must be a whole number of epochs, or 0 for no early stopping, got {self.early_stop!r}",
            )
        check_types(self)
        if not self.lr > 0 or not math.isfinite(self.lr):
            raise ArgumentError("lr", f"lr must be positive and finite, got {self.lr}")
        for name in ("momentum", "weight_decay", "warmup", "warmup_lr", "final_lr", "clip"):
            if not getattr(self, name) >= 0:
                raise ArgumentError(name, f"{name} must not be negative, got {getattr(self, name)}")
        if self.momentum >= 1:
            raise ArgumentError("momentum", f"momentum must lie in [0, 1), got {self.momentum}")
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")
        if not 0 < self.gamma <= 1:
            raise ArgumentError("gamma", f"gamma must lie in (0, 1], got {self.gamma}")
        if self.warmup > self.epochs:
            raise ArgumentError(
                "warmup", f"warmup must not be longer than the training: {self.warmup} of {self.epochs} epochs"
            )

    def with_(self, **changes: Any) -> Recipe:
        """The same recipe with some fields changed."""
        return replace(self, **spelled(changes))

    @property
    def optimiser(self) -> str:
        """The optimizer, by its other spelling."""
        return self.optimizer


def spelled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a recipe by their own names. What is no field is an error that names the nearest one."""
    known, out = [f.name for f in fields(Recipe)], dict[str, Any]()
    for name, value in given.items():
        field = ALIASES.get(name, name)
        if field not in known:
            hint = did_you_mean(name, [*known, *ALIASES])
            raise TypeError(f"a recipe has no field {name!r}{hint}; it has {', '.join(known)}")
        if field in out:
            twice = " and ".join(n for n in given if ALIASES.get(n, n) == field)
            raise TypeError(f"a recipe's {field} was given twice: {twice}")
        out[field] = value
    return out


def _forgiving(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, with aliases understood and a hint for what is no field."""

    @functools.wraps(init)
    def start(self: Recipe, *args: Any, **given: Any) -> None:
        init(self, *args, **spelled(given))

    return start


Recipe.__init__ = _forgiving(Recipe.__init__)  # type: ignore[method-assign]


def learning_rate(recipe: Recipe, progress: float, reductions: int = 0) -> float:
    """Learning rate after ``progress`` epochs (a fraction when the schedule moves per step).

    reductions: how often plateau has reduced it so far.
    """
    if not recipe.per_step:
        progress = math.floor(progress)
    if progress < recipe.warmup:
        return recipe.warmup_lr + (recipe.lr - recipe.warmup_lr) * progress / recipe.warmup
    if recipe.schedule == "cosine":
        fraction = (progress - recipe.warmup) / max(1e-12, recipe.epochs - recipe.warmup)
        return recipe.final_lr + (recipe.lr - recipe.final_lr) * 0.5 * (1 + math.cos(math.pi * min(1.0, fraction)))
    if recipe.schedule == "step":
        return recipe.lr * recipe.gamma ** sum(progress >= m for m in recipe.milestones)
    if recipe.schedule == "plateau":
        return max(recipe.final_lr, recipe.lr * recipe.gamma**reductions)
    return recipe.lr


def plateau_reductions(losses: Iterable[float], patience: int) -> int:
    """How often a plateau schedule has reduced the rate after these held-out losses, one per epoch.

    Reduced when ``patience`` epochs in a row have passed without an improvement by 1e-4 of the best, and one more.
    """
    best, bad, reductions = math.inf, 0, 0
    for loss in losses:
        if loss < best * (1 - 1e-4):
            best, bad = loss, 0
        else:
            bad += 1
            if bad > patience:
                reductions, bad = reductions + 1, 0
    return reductions


def make_optimizer(
    recipe: Recipe, parameters: Iterable[nn.Parameter], without_decay: Iterable[nn.Parameter] = ()
) -> torch.optim.Optimizer:
    """A fresh optimizer over ``parameters``; the loop sets its learning rate before every step.

    without_decay: those of them that weight decay leaves alone.
    """
    apart = {id(p) for p in without_decay}
    every = list(parameters)
    groups: list[dict[str, Any]] = [{"params": [p for p in every if id(p) not in apart]}]
    if apart:
        groups.append({"params": [p for p in every if id(p) in apart], "weight_decay": 0.0})
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(
            groups,
            lr=recipe.lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            nesterov=recipe.nesterov,
        )
    kind = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=recipe.lr, weight_decay=recipe.weight_decay)


PRESETS: dict[str, Recipe] = {
    # The paper's settings, with one recipe for all methods (its appendix, and the repositories it names).
    "paper-cifar10": Recipe(epochs=200, lr=0.1, weight_decay=5e-4, per_step=False, augment="crop-flip"),
    "paper-cifar10-c": Recipe(
        epochs=20,
        optimizer="adam",
        lr=1e-3,
        weight_decay=0.0,
        schedule="step",
        milestones=(15,),
        per_step=False,
        augment="crop-flip",
    ),
    "paper-cifar100-c": Recipe(
        epochs=200,
        lr=0.1,
        weight_decay=5e-6,
        warmup=5,
        warmup_lr=1e-3,
        final_lr=1e-6,
        per_step=False,
        augment="crop-flip",
    ),
    "paper-camelyon17": Recipe(
        epochs=30,
        optimizer="adam",
        lr=1e-4,
        weight_decay=0.0,
        schedule="plateau",
        patience=3,
        per_step=False,
        augment="histology",
    ),
    # Small enough for two cores, and long enough that every member fits (docs/results.md).
    "fashion": Recipe(epochs=12, batch_size=64, lr=0.05, weight_decay=5e-4, warmup=1),
    "cpu": Recipe(epochs=40, batch_size=32, lr=0.02, weight_decay=5e-4, warmup=1),
    "cpu-underfit": Recipe(epochs=14, lr=0.1, weight_decay=5e-4, warmup=1, augment="crop-flip"),
}
