"""Columns of a table: numbers, categories, and what is neither and is refused by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from credro.data.errors import DataError, need
from credro.data.readers.frames import Table
from credro.data.readers.labels import listed
from credro.data.readers.missing import Rule

Array = Any
"""A numpy array; numpy is imported where it is used."""

MOST_VALUES = 100
"""A column of text with more different values is a name or a number of something, not a category."""

FEW_BAD = 0.1
"""A column is one of numbers, with bad cells, if no more of its cells are no numbers."""

FEW_NUMBERS = 20
"""Categories may be numbers with a few words among them (2, 3, 4, 5more), if no more different numbers occur."""

FORMATTED = re.compile(r"[$€£¥]?\s*[+-]?\s*[$€£¥]?\s*(\d{1,3}([,.' ]\d{3})+|\d+)([.,]\d+)?\s*[%$€£¥]?")
"""Numbers as people write them: 1,234 or $5 or 3,5 or 12 %."""

TIME = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})( \d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
)
"""Dates and times of day."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers (N,) float32; NaN: missing. whole: they were stored as whole numbers."""

    values: Array
    whole: bool = False

    @property
    def missing(self) -> Array:
        """Which are missing (N,)."""
        return self.values != self.values


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of text: codes (N,), each the number of one of the values, in sorted order; -1: missing."""

    codes: Array
    values: tuple[str, ...]
    note: str = ""

    @property
    def missing(self) -> Array:
        """Which are missing (N,)."""
        return self.codes < 0


def parse(table: Table, name: str, missing: Rule, *, category: bool = False) -> Numbers | Texts:
    """A column as what its cells say it is; ``category``: as a category, also if its cells are numbers."""
    if category:
        return as_texts(table, name, missing)
    if (plain := _plain(table, name, missing)) is not None:
        return plain
    texts = as_texts(table, name, missing)
    found, bad = _numbers(texts)
    return _decide(table, name, texts, bad, found) if len(bad) else found


def as_numbers(table: Table, name: str, missing: Rule) -> Numbers:
    """A column that must be numbers, as it was in training."""
    import numpy as np

    if (plain := _plain(table, name, missing)) is not None:
        return plain
    texts = as_texts(table, name, missing)
    found, bad = _numbers(texts)
    if len(bad):
        wrong = int(np.isin(texts.codes, bad).sum())
        said = _cells(table, texts, bad)
        raise DataError(
            table.path,
            f"column {name!r} was numbers in training, but {wrong:,} of {len(texts.codes):,} cells {_be(wrong)} none: "
            f"{said}; mend this, or leave cells empty whose value is missing",
        )
    return found


def as_texts(table: Table, name: str, missing: Rule) -> Texts:
    """A column as text, whatever its cells are: without the space around them; numbers as one would write them."""
    import numpy as np

    codes, found = need("pandas").factorize(table.frame[name].astype(object))
    cells = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v).strip() for v in found.tolist()]
    values = tuple(sorted(set(cells) - missing.marks))
    index = {value: i for i, value in enumerate(values)}
    lookup = np.array([*(index.get(cell, -1) for cell in cells), -1])  # the last one is for code -1
    return Texts(lookup[codes], values)


def _plain(table: Table, name: str, missing: Rule) -> Numbers | None:
    """A column that is stored as numbers or truth values; None: it is not."""
    import numpy as np

    types = need("pandas").api.types
    column = table.frame[name]
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        raise DataError(table.path, f"column {name!r} holds times: make numbers of them, or pass drop=({name!r},)")
    if not (types.is_numeric_dtype(column) or types.is_bool_dtype(column)):
        return None
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and that is refused
        values = column.to_numpy(dtype="float32", na_value=float("nan"))
    if missing.numbers:
        values = np.where(np.isin(values, np.array(missing.numbers, "float32")), np.float32("nan"), values)
    infinite = np.isinf(values)
    if infinite.any():
        row, count = int(infinite.argmax()), int(infinite.sum())
        raise DataError(table.path, f"{table.at(row)}, column {name!r}: value is infinite ({count:,} in all)")
    return Numbers(values, whole=types.is_integer_dtype(column))


def _numbers(texts: Texts) -> tuple[Numbers, Array]:
    """Text as numbers, and the codes of the values that are none."""
    import numpy as np

    if {value.lower() for value in texts.values} <= {"true", "false"}:
        return Numbers(_per_row(texts, [float(v.lower() == "true") for v in texts.values])), np.array([], int)
    values = need("pandas").to_numeric(np.array(texts.values, dtype=object), errors="coerce")
    bad = np.flatnonzero(~np.isfinite(values.astype(float)))
    return Numbers(_per_row(texts, values)), bad


def _per_row(texts: Texts, values: Sequence[float] | Array) -> Array:
    """A number (N,) for the value in each row; NaN where it is missing."""
    import numpy as np

    return np.array([*values, np.nan], dtype="float32")[texts.codes]


def _decide(table: Table, name: str, texts: Texts, bad: Array, numbers: Numbers) -> Texts:
    """A column of which some cells are no numbers: a category, or an error that says which cells are wrong."""
    import numpy as np

    counts = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.values))
    cells, wrong = int(counts.sum()), int(counts[bad].sum())
    formatted = [i for i in bad if FORMATTED.fullmatch(texts.values[i])]
    if formatted and cells - wrong + counts[formatted].sum() >= (1 - FEW_BAD) * cells:
        count = int(counts[formatted].sum())
        raise DataError(
            table.path,
            f"column {name!r}: {count:,} of {cells:,} cells {_be(count)} written with commas or signs: "
            f"{_cells(table, texts, formatted)}; write such numbers as 1234.5, "
            f"or pass drop=({name!r},) to leave the column out, categories=({name!r},) if it is a category",
        )
    times = [i for i in bad if TIME.fullmatch(texts.values[i])]
    if times and counts[times].sum() >= (1 - FEW_BAD) * cells:
        raise DataError(
            table.path,
            f"column {name!r} holds times, {_cells(table, texts, times, 1)}: make numbers of them, "
            f"or pass drop=({name!r},)",
        )
    if wrong == cells:
        return texts
    right = numbers.values[np.isfinite(numbers.values)]
    measured = len(np.unique(right)) > FEW_NUMBERS or bool((right != right.round()).any())
    if wrong <= FEW_BAD * cells or (measured and wrong <= cells / 2):
        said = _cells(table, texts, bad)
        raise DataError(
            table.path,
            f"column {name!r} is numbers, but {wrong:,} of {cells:,} cells {_be(wrong)} none: {said}; mend this, "
            f"or pass missing={_typed(texts, bad)} if they are missing values, drop=({name!r},) to leave the column "
            f"out, categories=({name!r},) if it is a category",
        )
    words = listed([texts.values[i] for i in bad])
    note = f"column {name!r} is a category: {wrong:,} of {cells:,} cells are no numbers ({words})"
    return Texts(texts.codes, texts.values, note)


def _cells(table: Table, texts: Texts, bad: Sequence[int] | Array, most: int = 5) -> str:
    """Some of the cells that hold certain values, with where they stand."""
    import numpy as np

    rows = np.flatnonzero(np.isin(texts.codes, bad))
    said = ", ".join(f"{texts.values[texts.codes[row]]!r} in {table.at(int(row))}" for row in rows[:most])
    return said + ", ..." * (len(rows) > most)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _typed(texts: Texts, bad: Array) -> str:
    """The values as a user would type them in Python."""
    values = [texts.values[i] for i in bad[:5]]
    return repr(values[0]) if len(values) == 1 else repr(tuple(values))
