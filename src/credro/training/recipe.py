"""How to train, whatever the method: one dataclass, its schedules and the paper's settings by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import nn

from credro._names import ArgumentError, UnknownName, did_you_mean, one_of
from credro._records import Record, check_types
from credro.nets.tail import SLOWER

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "cosine", "step", "plateau")
PRECISIONS = ("fp32", "bf16", "fp16")
WATCHED = ("loss", "calibrated")
SAMPLERS = ("shuffle", "balanced")
FUNCTIONS = ("optimizer", "schedule", "augment")
"""Fields that may also be a function of the user's own."""
FUNCTION = "function "
"""What a record of such a field begins with; the function's qualified name follows."""
ALIASES = {"optimiser": "optimizer"}
"""Other spellings of fields, understood wherever a field is named."""


@dataclass(frozen=True)
class Recipe(Record):
    """One recipe for all members and all methods; a comparison is only worth something when both sides share it."""

    epochs: int = 20
    batch_size: int = 128  # samples; the last batch of an epoch may be smaller
    accumulate: int = 1  # batches whose mean loss makes one step of the optimizer
    sampler: str = "shuffle"  # or "balanced": every class equally often in an epoch, drawn with replacement
    class_weight: str | dict[str, float] | None = field(default=None, hash=False)  # "balanced", or by name or number
    optimizer: str | Any = "sgd"  # sgd, adam, adamw, or a function (parameters) -> torch.optim.Optimizer
    lr: float = 0.1  # highest learning rate
    momentum: float = 0.9  # sgd only
    nesterov: bool = False  # sgd only
    weight_decay: float = 5e-4
    schedule: str | Any = "cosine"  # constant, cosine, step, plateau, or a function (progress in [0, 1]) -> factor
    per_step: bool = True  # whether the schedule moves with every batch or, as in the paper, with every epoch
    warmup: float = 0.0  # epochs of linear rise to lr
    warmup_lr: float = 0.0  # where the rise starts
    final_lr: float = 0.0  # where cosine ends, and the floor of plateau
    milestones: tuple[int, ...] = ()  # epochs at which step multiplies by gamma
    gamma: float = 0.1  # factor of step and plateau
    patience: int = 3  # epochs without a better held-out loss before plateau reduces
    early_stop: int = 0  # epochs without a better held-out loss before a member stops, at its best weights; 0: never
    early_stop_by: str = "loss"  # or "calibrated": the held-out loss at its best temperature, which fit then sets
    augment: str | Any = "none"  # a name in credro.data.AUGMENTATIONS, or a function (batch, generator) -> batch
    loss: str = "cross_entropy"  # a name in credro.members.LOSSES
    precision: str = "fp32"  # fp32, bf16, or fp16 with loss scaling
    clip: float = 0.0  # largest gradient norm; 0 does not clip
    compile: bool = False  # torch.compile the networks
    channels_last: bool = True  # memory layout of image batches; measured to be the faster one, also on the CPU
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every field, in the user's words."""
        object.__setattr__(self, "milestones", tuple(self.milestones))
        choices = {"precision": PRECISIONS, "early_stop_by": WATCHED, "sampler": SAMPLERS}
        for name, allowed in choices.items():
            one_of(name, getattr(self, name), allowed)
        for name, allowed in {"optimizer": OPTIMIZERS, "schedule": SCHEDULES, "augment": ()}.items():
            _check_name_or_function(name, getattr(self, name), allowed)
        object.__setattr__(self, "class_weight", _weights_by_text(self.class_weight))
        for name in ("epochs", "batch_size", "accumulate", "patience"):
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

    def recorded(self) -> Recipe:
        """The recipe as a run keeps it: functions by their qualified names."""
        return self.with_(**{name: _recorded(getattr(self, name)) for name in FUNCTIONS})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; functions by their qualified names."""
        return Record.to_json(self.recorded())

    @property
    def optimiser(self) -> str | Any:
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


def _check_name_or_function(field: str, given: Any, allowed: tuple[str, ...]) -> None:
    """allowed: the names; none: those are known elsewhere. The record of a function is let through, to be read."""
    if not isinstance(given, str) and not callable(given):
        raise ArgumentError(field, f"{field} must be a name or a function, got {given!r}")
    if isinstance(given, str) and allowed and not given.startswith(FUNCTION):
        one_of(field, given, allowed)


def _weights_by_text(given: Any) -> Any:
    """Class weights with keys as JSON has them, in order, so that equal ones are written equally."""
    if not isinstance(given, Mapping):
        if given not in (None, "balanced"):
            raise UnknownName("class_weight", given, ["balanced"])
        return given
    weights = {str(k): given[k] for k in sorted(given, key=str)}
    for key, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise ArgumentError("class_weight", f"class_weight must be positive and finite, got {weight!r} of {key!r}")
    if len(weights) < len(given):
        raise ArgumentError("class_weight", f"class_weight names a class twice: {', '.join(map(repr, given))}")
    return {key: float(weight) for key, weight in weights.items()}


def _recorded(given: Any) -> str:
    """A name as it is; a function as its module and qualified name, a partial one with what is filled in."""
    return given if isinstance(given, str) else FUNCTION + name_of(given)


def name_of(function: Any) -> str:
    """``module.qualname`` of a function or class, or of the class of an object that is called like one."""
    if isinstance(function, functools.partial):
        filled = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in sorted(function.keywords.items()))]
        return f"{name_of(function.func)}({', '.join(filled)})"
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def learning_rate(recipe: Recipe, progress: float, reductions: int = 0) -> float:
    """Learning rate after ``progress`` epochs (a fraction when the schedule moves per step).

    reductions: how often plateau has reduced it so far.
    """
    if not recipe.per_step:
        progress = math.floor(progress)
    if progress < recipe.warmup:
        return recipe.warmup_lr + (recipe.lr - recipe.warmup_lr) * progress / recipe.warmup
    if callable(recipe.schedule):
        return recipe.lr * float(recipe.schedule(min(1.0, progress / recipe.epochs)))
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
    recipe: Recipe,
    parameters: Iterable[nn.Parameter],
    without_decay: Iterable[nn.Parameter] = (),
    slower: Iterable[nn.Parameter] = (),
    *,
    fused: bool | None = None,
) -> torch.optim.Optimizer:
    """A fresh optimizer over ``parameters``; the loop sets its learning rate before every step (``set_rate``).

    without_decay: those of them that weight decay leaves alone. slower: those that learn at ``SLOWER`` of the rate,
    since they were trained before. Where there are any, a function gets groups of parameters.
    fused: torch's variant that passes over the numbers once; other rounding. None: what torch takes by itself.
    """
    apart, slow = {id(p) for p in without_decay}, {id(p) for p in slower}
    parts: dict[tuple[bool, bool], list[nn.Parameter]] = {(False, False): []}
    for p in parameters:
        parts.setdefault((id(p) in slow, id(p) in apart), []).append(p)
    kinds = sorted(parts)  # the head's own come first: theirs is the rate that is recorded
    groups = [{"params": parts[kind], **({"weight_decay": 0.0} if kind[1] else {})} for kind in kinds]
    options: dict[str, Any] = {"lr": recipe.lr, "weight_decay": recipe.weight_decay}
    if callable(recipe.optimizer):
        made: torch.optim.Optimizer = recipe.optimizer(groups if len(groups) > 1 else parts[False, False])
        for group in made.param_groups:
            group["initial_lr"] = float(group["lr"])
    elif recipe.optimizer == "sgd":
        made = torch.optim.SGD(groups, momentum=recipe.momentum, nesterov=recipe.nesterov, fused=fused, **options)
    else:
        made = (torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW)(groups, fused=fused, **options)
    for group, (is_slow, _) in zip(made.param_groups, kinds, strict=False):
        if is_slow:
            group["lr"] = group["initial_lr"] = SLOWER * float(group["lr"])
    return made


def set_rate(optimizer: torch.optim.Optimizer, recipe: Recipe, rate: float) -> None:
    """Set the learning rate; of a user's own optimizer each group's rate is scaled as the recipe's lr now is."""
    for group in optimizer.param_groups:
        group["lr"] = rate * (group["initial_lr"] / recipe.lr) if "initial_lr" in group else rate


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
