"""When a member is over before its epochs are, and which epoch's weights it keeps: told by its history alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from credro.training.recipe import Recipe
from credro.training.records import Epoch

History = Sequence[Epoch]
"""A member's records, one per epoch."""


def best_epoch(losses: Sequence[float]) -> int:
    """The epoch, from 1, with the smallest held-out loss, the first of equals; 0 where none is finite."""
    finite = [(loss, epoch) for epoch, loss in enumerate(losses, 1) if math.isfinite(loss)]
    return min(finite)[1] if finite else 0


def held_out_losses(entries: History) -> list[float]:
    """The held-out loss of every epoch."""
    return [math.nan if e.held_out_loss is None else e.held_out_loss for e in entries]


def watched_losses(recipe: Recipe, entries: History) -> list[float]:
    """Of every epoch what early stopping goes by: the held-out loss, as it is or at the temperature that suits it."""
    if recipe.early_stop_by != "calibrated":
        return held_out_losses(entries)
    return [math.nan if e.held_out_calibrated is None else e.held_out_calibrated for e in entries]


def stopped(entries: History) -> bool:
    """Whether the member's own stop has ended its training."""
    return bool(entries) and entries[-1].stopped


def is_over(recipe: Recipe, entries: History) -> bool:
    """Whether a member that trains needs no more epochs."""
    return stopped(entries) or stopped_early(recipe, entries) or len(entries) >= recipe.epochs


def stopped_early(recipe: Recipe, entries: History) -> bool:
    """Whether ``early_stop`` epochs have passed without a better held-out loss."""
    if not recipe.early_stop:
        return False
    return len(entries) - best_epoch(watched_losses(recipe, entries)) >= recipe.early_stop


def improved(recipe: Recipe, entries: History) -> bool:
    """Whether early stopping must keep the weights of the last epoch: none before had a better held-out loss."""
    return bool(recipe.early_stop) and best_epoch(watched_losses(recipe, entries)) in (0, len(entries))


def kept_epoch(recipe: Recipe, entries: History) -> int:
    """The epoch, from 1, whose weights a member that is over keeps: the last, or with early stopping its best.

    A member that its own stop ended is kept as it was then: where to stop is what that choice is about.
    """
    if not recipe.early_stop or stopped(entries):
        return len(entries)
    return best_epoch(watched_losses(recipe, entries)) or len(entries)
