"""How a set was read: what a run keeps of its data, so that other samples can be read in the same way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OTHER = "(other)"
"""The value of a category that stands for every value that training has not seen."""


@dataclass(frozen=True)
class Column:
    """One column of a table that features are made of.

    values: of a category, its values in order; a feature ``name=value`` for each and one more, ``name=(other)``, for
    values never seen in training. None: the column is a number. other: False for runs of version 0.1, which had no
    such feature.
    """

    name: str
    values: tuple[str, ...] | None = None
    other: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features made of it."""
        if self.values is None:
            return (self.name,)
        return tuple(f"{self.name}={value}" for value in (*self.values, *([OTHER] if self.other else [])))


@dataclass(frozen=True)
class DataSpec:
    """Where a set came from and how it was read.

    source: name or path, as it was given. split: the one that was taken; None where the source has none.
    label: the column or array that was taken for the label. columns: what a table's features are made of, in order.
    options: the reader's other options as they were given (size, missing, task, ...), in plain values of JSON.
    width: how many columns a table without a header has, since its columns go by their place; else 0.
    """

    source: str
    split: str | None = None
    label: str | None = None
    columns: tuple[Column, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    width: int = 0

    def to_json(self) -> dict[str, Any]:
        """As JSON keeps it."""
        columns = [
            {"name": c.name, "values": None if c.values is None else list(c.values), "other": c.other}
            for c in self.columns
        ]
        options = {k: list(v) if isinstance(v, tuple) else v for k, v in self.options.items()}
        return {
            "source": self.source,
            "split": self.split,
            "label": self.label,
            "columns": columns,
            "options": options,
            "width": self.width,
        }

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> DataSpec:
        """What ``to_json`` gave."""
        columns = tuple(
            Column(c["name"], None if c["values"] is None else tuple(c["values"]), c.get("other", True))
            for c in plain["columns"]
        )
        options = dict(plain["options"])
        return cls(plain["source"], plain["split"], plain["label"], columns, options, plain.get("width", 0))
