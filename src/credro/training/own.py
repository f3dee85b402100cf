"""A user's own functions in a recipe, tried out before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.augment import AUGMENTATIONS
from credro.data.fields import Fields
from credro.nets.tail import slower
from credro.training.checkpoint import pack_optimizer, unpack_optimizer
from credro.training.recipe import FUNCTION, FUNCTIONS, Recipe, make_optimizer, name_of
from credro.training.streams import generator

if TYPE_CHECKING:
    from credro.training.job import Job


def check_names(recipe: Recipe) -> None:
    """Raise where a recipe that was read from a run has the name of a function in the function's place."""
    for field in FUNCTIONS:
        given = getattr(recipe, field)
        if isinstance(given, str) and given.startswith(FUNCTION):
            name = given.removeprefix(FUNCTION)
            raise ArgumentError(field, f"{field} is the name of the function {name}; give the function itself")


def check_functions(job: Job) -> None:
    """Raise unless the recipe's augmentation, optimizer and schedule can be used, whoever wrote them."""
    recipe = job.recipe
    check_names(recipe)
    _check_augment(job)
    if callable(recipe.schedule):
        _check_schedule(recipe.schedule)
    if callable(recipe.optimizer):
        _check_optimizer(job)


def _check_augment(job: Job) -> None:
    augment = job.recipe.augment
    if not callable(augment):
        if augment not in AUGMENTATIONS:
            raise ValueError(f"augment must be one of {', '.join(AUGMENTATIONS)}, got {augment!r}")
        if augment != "none" and len(job.data.shape) != 3:
            raise ValueError(f"augment={augment!r} needs images (C, H, W), the samples have shape {job.data.shape}")
        if augment != "none" and job.data.origin is not None and job.data.in_memory:
            raise ArgumentError(
                "augment", f"augment={augment!r} is for images, and these are maps of a trunk: credro.on(views=...) "
                f"has views of each image"
            )  # fmt: skip
        return
    x = job.data.batch(torch.arange(min(2, len(job.data)))).to(job.device)
    x = x.value if isinstance(x, Fields) else x
    shape = _shapes(x)
    out = _tried("augment", augment, lambda: augment(x, generator(job.recipe.seed, "tried")))
    if (got := _shapes(out)) != shape:
        raise ArgumentError("augment", f"augment must give a batch of the shape it gets, {shape}, got {got}")


def _shapes(x: Any) -> Any:
    """Of a tensor, a dict or a tuple of them; of anything else its type's name."""
    if isinstance(x, Tensor):
        return tuple(x.shape)
    if isinstance(x, dict):
        return {name: _shapes(t) for name, t in x.items()}
    return tuple(map(_shapes, x)) if isinstance(x, tuple) else type(x).__name__


def _check_schedule(schedule: Callable[[float], Any]) -> None:
    for progress in (0.0, 0.5, 1.0):
        factor = _tried("schedule", schedule, partial(lambda at: float(schedule(at)), progress))
        if not (math.isfinite(factor) and factor >= 0):
            raise ArgumentError("schedule", f"schedule must give factors from 0 on, got {factor} at {progress}")


def _check_optimizer(job: Job) -> None:
    """It must make steps by gradients alone, and a checkpoint must be able to hold all of its state."""
    net, head = job.network(0), job.member(0).head
    parameters = [p for p in net.parameters() if p.requires_grad]

    def build() -> Any:
        return make_optimizer(job.recipe, parameters, head.without_decay(net), slower(net))

    own = job.recipe.optimizer
    optimizer = _tried("optimizer", own, build)
    before = _settings(optimizer)
    for p in parameters:
        p.grad = torch.zeros_like(p)
    _tried("optimizer", own, optimizer.step)
    kept, again = pack_optimizer(optimizer), build()
    unpack_optimizer(again, kept)
    back, state = pack_optimizer(again), optimizer.state_dict()["state"]
    plain = any(not isinstance(v, Tensor) and v is not None for entries in state.values() for v in entries.values())
    if plain or any(t.dtype != back[k].dtype or not torch.equal(t, back[k]) for k, t in kept.items()):
        raise ArgumentError(
            "optimizer", "optimizer must keep its state in tensors of the parameters' type: no checkpoint holds others"
        )
    if _settings(optimizer) != before:
        raise ArgumentError("optimizer", "optimizer must not change its groups' settings: no checkpoint holds them")


def _settings(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]


def _tried(field: str, function: Any, call: Callable[[], Any]) -> Any:
    """What ``call`` gives; whatever the user's function raises is said to be its own."""
    try:
        return call()
    except Exception as error:
        raise ArgumentError(
            field, f"{field} cannot be used: {name_of(function)} raised {type(error).__name__}: {error}"
        ) from error
