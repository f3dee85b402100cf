"""What the paper's own tables say (``paper_values.json``), checked when it is first read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import as_file, files
from statistics import mean
from typing import Any

from credro._records import Record, read_json


@dataclass(frozen=True)
class PaperValue(Record):
    """One number of a table. set: the data it was measured on. member, run, noise, delta_g, spacing, options: of what.

    ratio_to_hull: what the paper prints beside it. note: where the paper disagrees with itself.
    """

    method: str
    members: int
    measure: str
    set: str
    mean: float
    std: float | None
    options: dict[str, Any] = field(default_factory=dict)
    member: int | None = None
    run: int | None = None
    noise: float = 0.0
    delta_g: float | None = None
    spacing: str | None = None
    ratio_to_hull: float | None = None
    note: str | None = None

    @property
    def setting(self) -> dict[str, Any]:
        """The method's options, as far as the table names them."""
        return {**self.options, "delta_g": self.delta_g, "spacing": self.spacing}


@dataclass(frozen=True)
class PaperTable(Record):
    """The values of one experiment. source: the paper's tables. unit: of each measure."""

    source: str
    unit: str
    rows: tuple[PaperValue, ...]


@lru_cache(maxsize=1)
def paper_tables() -> dict[str, PaperTable]:
    """All of them, by experiment."""
    with as_file(files("credro.experiments").joinpath("paper_values.json")) as path:
        return {name: PaperTable.from_json(table, path, name) for name, table in read_json(path).items()}


@dataclass(frozen=True)
class Asked:
    """Which of the paper's values is meant; None: any. scale: from its unit to ours."""

    measure: str
    set: str | None = None
    members: int | None = None
    member: int | None = None
    scale: float = 1.0

    def fits(self, row: PaperValue) -> bool:
        """Whether ``row`` is such a value."""
        pairs = ((self.set, row.set), (self.members, row.members), (self.member, row.member))
        return self.measure == row.measure and all(want in (None, have) for want, have in pairs)


def paper_value(
    experiment: str, method: str, asked: Asked, *, noise: float = 0.0, options: Mapping[str, Any] | None = None
) -> float | None:
    """The paper's value, the mean where it has one per run; None where it has none, or several that fit."""
    if experiment not in paper_tables():
        return None
    found = [
        row
        for row in paper_tables()[experiment].rows
        if (row.method, row.noise) == (method, noise)
        and asked.fits(row)
        and all(row.setting.get(key) == value for key, value in (options or {}).items())
    ]
    if len({row.run for row in found}) < len(found) and len({row.mean for row in found}) > 1:
        return None
    return asked.scale * mean(row.mean for row in found) if found else None
