"""The readings of an experiment, picked and averaged over runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from credro.experiments.readings import TEST, Reading
from credro.experiments.spec import Experiment
from credro.experiments.tables import Number, Table
from credro.experiments.values import Value

KINDS = {False: "plain", True: "calibrated"}
"""How a table calls readings without and with temperatures."""


@dataclass(frozen=True)
class Made:
    """What a layout made."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Results:
    """Every reading of an experiment under a preset."""

    experiment: Experiment
    preset: str
    readings: Sequence[Reading]

    @cached_property
    def runs(self) -> int:
        """Repetitions."""
        return len({r.facts["run"] for r in self.readings})

    @cached_property
    def worlds(self) -> list[str]:
        """Names of the worlds read."""
        return list(dict.fromkeys(r.facts["world"] for r in self.readings))

    def pick(self, where: Mapping[str, Any]) -> list[Reading]:
        """The readings with these facts, one per run; plain ones unless calibrated ones are asked for."""
        wanted = {"calibrated": False, **where}
        return [r for r in self.readings if all(r.facts[k] == v for k, v in wanted.items())]

    def number(self, value: Value, where: Mapping[str, Any], *, paper: float | None = None, digits: int = 1) -> Number:
        """Mean and deviation of ``value`` over the runs."""
        return Number.of([value(r) for r in self.pick(where)], paper=paper, digits=digits)

    def strangers(self) -> list[str]:
        """The OOD sets, in the order in which their world names them; corruptions in the file's."""
        found = [name for name in self.readings[0].eu if name != TEST]
        named = [name for world in self.experiment.places(self.preset) for name in world.ood]
        return sorted(found, key=lambda name: named.index(name) if name in named else len(named))

    def kinds(self) -> tuple[bool, ...]:
        """Plain, and calibrated where the experiment asks for it."""
        return tuple(KINDS) if self.experiment.calibrated else (False,)

    def setting(self, world: str | None = None) -> str:
        """A sentence for a table's note."""
        place = next(w for w in self.experiment.places(self.preset) if world in (None, w.name))
        size = "all" if place.samples is None else f"{place.samples:,}"
        return (
            f"{place.data}, {size} training samples, {place.net}, {place.recipe.epochs} epochs, "
            f"{self.runs} run{'s' if self.runs > 1 else ''}."
        )


@lru_cache(maxsize=1)
def paper_values() -> dict[str, Any]:
    """What the paper's own tables say."""
    values: dict[str, Any] = json.loads(files("credro.experiments").joinpath("paper_values.json").read_text())
    return values


def paper_value(experiment: str, **wanted: Any) -> float | None:
    """The paper's value for a cell; None where it has none, or several that fit."""
    rows = paper_values().get(experiment, {}).get("rows", [])
    found = {row["mean"] for row in rows if all(row.get(k) == v for k, v in wanted.items())}
    return float(found.pop()) if len(found) == 1 else None
