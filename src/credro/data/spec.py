"""How a set was read: what a run keeps of its data, so that other samples can be read in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from credro._records import Record

OTHER = "(other)"
"""The value of a category that stands for every value that training has not seen."""


@dataclass(frozen=True)
class Column(Record):
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
class DataSpec(Record):
    """Where a set came from and how it was read.

    source: name or path, as it was given. split: the one that was taken; None where the source has none.
    label: the column or array that was taken for the label. columns: what a table's features are made of, in order.
    options: the reader's other options (size, missing, task, ...), as ``given`` keeps them.
    width: how many columns a table without a header has, since its columns go by their place; else 0.
    """

    source: str
    split: str | None = None
    label: str | None = None
    columns: tuple[Column, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    width: int = 0


def given(**options: Any) -> dict[str, Any]:
    """A reader's options that say something, in plain values of JSON: a run keeps them all."""
    plain = {name: _plain(value) for name, value in options.items()}
    return {name: value for name, value in plain.items() if value not in (None, [], {})}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): [str(v) for v in values] for key, values in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [v.item() if hasattr(v, "item") else v for v in value]  # numbers of NumPy and torch
