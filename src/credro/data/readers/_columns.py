"""Columns of a table: numbers, categories, what is neither and is refused, and whether a column can be of use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from credro._names import Argument, Message
from credro.data.base import Array
from credro.data.errors import DataError, need
from credro.data.readers._frames import Table
from credro.data.readers._missing import Rule
from credro.data.readers._words import listed

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

SOME_ROWS = 20
"""In fewer rows, different values prove nothing."""

DENSE = 2
"""Whole numbers of which none occurs twice, with no more gaps than this, number the rows, or once did."""

ID_NAME = re.compile(
    r"(.*[_\s.\-])?(?i:id|ids|uuid|guid|index|idx|no|nr|row|rownum|key|number)$|.*[a-z](Id|ID|No|Nr|Key)$"
)
"""What columns are called that number the rows or name them."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers (N,) float32; NaN: missing. whole: they were stored as whole numbers."""

    values: Array
    whole: bool = False

    @property
    def missing(self) -> Array:
        """Which are missing (N,)."""
        return np.isnan(self.values)


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of text: codes (N,), each the number of one of the values, in sorted order; -1: missing."""

    codes: Array
    values: tuple[str, ...]
    note: str = ""

    @property
    def missing(self) -> Array:
        """Which are missing (N,)."""
        return np.less(self.codes, 0)


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
    if (plain := _plain(table, name, missing)) is not None:
        return plain
    texts = as_texts(table, name, missing)
    found, bad = _numbers(texts)
    if len(bad):
        wrong = int(np.isin(texts.codes, bad).sum())
        said = f"{_those(wrong, len(texts.codes))} none: {_cells(table, texts, bad)}"
        mend = "mend this, or leave cells empty whose value is missing"
        raise DataError(table.path, f"column {name!r} was numbers in training, but {said}; {mend}")
    return found


def as_texts(table: Table, name: str, missing: Rule) -> Texts:
    """A column as text, whatever its cells are: without the space around them; numbers as one would write them."""
    codes, found = need("pandas").factorize(table.frame[name].astype(object))
    cells = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v).strip() for v in found.tolist()]
    values = tuple(sorted(set(cells) - missing.marks))
    index = {value: i for i, value in enumerate(values)}
    lookup = np.array([*(index.get(cell, -1) for cell in cells), -1])  # the last one is for code -1
    return Texts(lookup[codes], values)


def _plain(table: Table, name: str, missing: Rule) -> Numbers | None:
    """A column that is stored as numbers or truth values; None: it is not."""
    types = need("pandas").api.types
    column = table.frame[name]
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        times = f"column {name!r} holds times: make numbers of them, or pass "
        raise DataError(table.path, Message(times, Argument("drop", (name,))))
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
    if {value.lower() for value in texts.values} <= {"true", "false"}:
        return Numbers(_per_row(texts, [float(v.lower() == "true") for v in texts.values])), np.array([], int)
    values = need("pandas").to_numeric(np.array(texts.values, dtype=object), errors="coerce")
    bad = np.flatnonzero(~np.isfinite(values.astype(float)))
    return Numbers(_per_row(texts, values)), bad


def _per_row(texts: Texts, values: Sequence[float] | Array) -> Array:
    """A number (N,) for the value in each row; NaN where it is missing."""
    return np.array([*values, np.nan], dtype="float32")[texts.codes]


def _decide(table: Table, name: str, texts: Texts, bad: Array, numbers: Numbers) -> Texts:
    """A column of which some cells are no numbers: a category, or an error that says which cells are wrong."""
    counts = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.values))
    cells, wrong = int(counts.sum()), int(counts[bad].sum())
    category = Argument("categories", (name,)), " if it is a category"
    leave_out = Argument("drop", (name,)), " to leave the column out, ", *category
    formatted = [i for i in bad if FORMATTED.fullmatch(texts.values[i])]
    if formatted and cells - wrong + counts[formatted].sum() >= (1 - FEW_BAD) * cells:
        written = f"{_those(int(counts[formatted].sum()), cells)} written with commas or signs"
        said = f"column {name!r}: {written}: {_cells(table, texts, formatted)}; write such numbers as 1234.5, or pass "
        raise DataError(table.path, Message(said, *leave_out))
    times = [i for i in bad if TIME.fullmatch(texts.values[i])]
    if times and counts[times].sum() >= (1 - FEW_BAD) * cells:
        said = f"column {name!r} holds times, {_cells(table, texts, times, 1)}: make numbers of them, or pass "
        raise DataError(table.path, Message(said, Argument("drop", (name,))))
    if wrong == cells:
        return texts
    right = numbers.values[np.isfinite(numbers.values)]
    measured = len(np.unique(right)) > FEW_NUMBERS or bool((right != right.round()).any())
    if wrong <= FEW_BAD * cells or (measured and wrong <= cells / 2):
        marks = tuple(texts.values[i] for i in bad[:5])
        which = f"{_those(wrong, cells)} none: {_cells(table, texts, bad)}"
        said = f"column {name!r} is numbers, but {which}; mend this, or pass "
        missing = Argument("missing", marks[0] if len(marks) == 1 else marks), " if they are missing values, "
        raise DataError(table.path, Message(said, *missing, *leave_out))
    words = listed([texts.values[i] for i in bad])
    note = f"column {name!r} is a category: {wrong:,} of {cells:,} cells are no numbers ({words})"
    return Texts(texts.codes, texts.values, note)


def _cells(table: Table, texts: Texts, bad: Sequence[int] | Array, most: int = 5) -> str:
    """Some of the cells that hold certain values, with where they stand."""
    rows = np.flatnonzero(np.isin(texts.codes, bad))
    said = ", ".join(f"{texts.values[texts.codes[row]]!r} in {table.at(int(row))}" for row in rows[:most])
    return said + ", ..." * (len(rows) > most)


def _those(count: int, cells: int) -> str:
    return f"{count:,} of {cells:,} cells {'is' if count == 1 else 'are'}"


def useless(table: Table, name: str, cells: Numbers | Texts) -> str | None:
    """Why a column cannot help: it is constant, or its values name the rows; None: it may help."""
    if isinstance(cells, Texts):
        if len(cells.values) == 1 and not cells.missing.any():
            return f"it is {cells.values[0]!r} throughout"
        unique = len(cells.values) == len(cells.codes) > 1
        if unique and (len(cells.codes) >= SOME_ROWS or ID_NAME.match(name)):
            return f"it names the rows (an ID: all {len(cells.codes):,} values differ)"
        return None
    present = cells.values[~cells.missing]
    if len(present) == 0:
        return "it is empty"
    if present.min() == present.max():
        return f"it is {present[0]:g} throughout"
    if not cells.whole:
        return None
    values = table.frame[name]
    rows, span = len(values), int(values.max()) - int(values.min()) + 1
    index = name.startswith("Unnamed: ")  # as pandas names the column in which it wrote the row numbers
    counts = span == rows if rows < SOME_ROWS else rows <= span and (span <= DENSE * rows or index)
    if counts and (rows >= SOME_ROWS or (index and values.is_monotonic_increasing)) and values.is_unique:
        return f"it counts the rows ({values.min()} to {values.max()})"
    if ID_NAME.match(name) and rows > 1 and values.is_unique:
        return f"it names the rows (an ID: all {rows:,} values differ)"
    return None


def doubtful(table: Table, name: str, cells: Numbers | Texts) -> str | None:
    """A sentence on a column that is used, but may be an ID: numbers of which nearly all differ; None: it is not."""
    if isinstance(cells, Texts) or not cells.whole or len(cells.values) < SOME_ROWS:
        return None
    values = table.frame[name]
    rows, span = len(values), int(values.max()) - int(values.min()) + 1
    if not ID_NAME.match(name) and span < 100 * rows:
        return None
    different = values.nunique()
    if ID_NAME.match(name) or different >= 0.9 * rows:
        ids = f"may be an ID ({different:,} different whole numbers in {rows:,} rows); "
        return Message(f"column {name!r} is used as a number, but {ids}", Argument("drop", (name,)), " leaves it out")
    return None


def tells(cells: Numbers | Texts, labels: Tensor) -> bool:
    """Whether a column and the label are one and the same under other names."""
    y = labels.numpy()
    if len(y) < SOME_ROWS or cells.missing.any():
        return False
    x = cells.codes if isinstance(cells, Texts) else cells.values
    if labels.is_floating_point():
        return bool(np.array_equal(x, y))
    return _one_to_one(x[:1000], y[:1000]) and _one_to_one(x, y)


def _one_to_one(x: Array, y: Array) -> bool:
    values, code = np.unique(x, return_inverse=True)
    classes = np.unique(y)
    if len(values) != len(classes):
        return False
    return len(np.unique(code.astype(np.int64) * (int(y.max()) + 1) + y)) == len(values)
