"""From what a user says of training to what is done: the recipe, and which samples are held out to stop by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from credro._names import Argument, ArgumentError, Message
from credro.data.base import Data
from credro.data.readers import READERS
from credro.nets.trunk import OnTrunk
from credro.training.defaults import recipe_for, set_aside
from credro.training.recipe import Recipe


@dataclass(frozen=True)
class Planned:
    """What to train on, what to watch, and how. notes: what was decided, in sentences."""

    recipe: Recipe
    train: Data
    held_out: Data | None
    notes: tuple[str, ...] = ()

    @property
    def calibrates(self) -> bool:
        """Whether members stop by the loss that calibration on the held-out data leaves, and so need calibrating."""
        if self.held_out is None or not self.recipe.early_stop or self.held_out.labels.ndim != 1:
            return False
        return self.recipe.early_stop_by == "calibrated"


def planned(
    data: Data,
    net: object = None,
    recipe: Recipe | None = None,
    *,
    held_out: Data | None = None,
    early_stop: bool | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Planned:
    """The recipe for ``data``: the one given, or one that suits it, with ``changes``.

    early_stop: None stops early where no recipe is given and the data is somebody's own, and else as the recipe says: a
    published set has a test set of its own, and the comparisons on it train to the end. So do heads on a trunk's
    features, which were better for it (docs/trunks.md). Without ``held_out`` a part of
    the data is set aside to stop by.
    """
    changes, seed = dict(changes or {}), int((changes or {}).get("seed", recipe.seed if recipe else 0))
    own = (data.spec is None or data.spec.source not in READERS) and data.origin is None
    own = own and not isinstance(net, OnTrunk)
    asked = bool(changes["early_stop"]) if "early_stop" in changes else early_stop
    stops = (bool(recipe.early_stop) if recipe is not None else own) if asked is None else asked
    train, notes = data, []
    if stops and held_out is None:
        parts = set_aside(data, seed=seed)
        train, held_out = parts.train, parts.held_out
        notes.append(parts.note)
        if held_out is None:
            if asked or recipe is not None:
                needed = ("early stopping needs held-out data. ", parts.note, " Give ", Argument("held_out"))
                raise ArgumentError("early_stop", Message(*needed, ", or do without: ", Argument("early_stop", False)))
            stops = False
    if recipe is not None and data.batch_size not in (None, changes.get("batch_size", recipe.batch_size)):
        notes.append(
            f"The recipe's batch size, {changes.get('batch_size', recipe.batch_size)}, is used, and not the "
            f"DataLoader's, {data.batch_size}."
        )
    default = recipe_for(train, net, held_out=stops, batch_size=data.batch_size, seed=seed)
    base = recipe or default
    if stops != bool(base.early_stop):
        base = base.with_(early_stop=default.early_stop)
    plan = Planned(base.with_(**changes), train, held_out, tuple(notes))
    if plan.calibrates:
        notes.append("On the held-out samples each member is also calibrated, unless others are given for that.")
    return replace(plan, notes=tuple(notes))
