"""Whether a column can be of use: constants and IDs are none, and a column that tells the label is suspicious."""

from __future__ import annotations

import re

from torch import Tensor

from credro.data.readers.columns import Array, Numbers, Texts
from credro.data.readers.frames import Table

SOME_ROWS = 20
"""In fewer rows, different values prove nothing."""

DENSE = 2
"""Whole numbers of which none occurs twice, with no more gaps than this, number the rows, or once did."""

ID_NAME = re.compile(
    r"(.*[_\s.\-])?(?i:id|ids|uuid|guid|index|idx|no|nr|row|rownum|key|number)$|.*[a-z](Id|ID|No|Nr|Key)$"
)
"""What columns are called that number the rows or name them."""


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
        return (
            f"column {name!r} is used as a number, but may be an ID ({different:,} different whole numbers in "
            f"{rows:,} rows); drop=({name!r},) leaves it out"
        )
    return None


def tells(cells: Numbers | Texts, labels: Tensor) -> bool:
    """Whether a column and the label are one and the same under other names."""
    import numpy as np

    y = labels.numpy()
    if len(y) < SOME_ROWS or cells.missing.any():
        return False
    x = cells.codes if isinstance(cells, Texts) else cells.values
    if labels.is_floating_point():
        return bool(np.array_equal(x, y))
    return _one_to_one(x[:1000], y[:1000]) and _one_to_one(x, y)


def _one_to_one(x: Array, y: Array) -> bool:
    import numpy as np

    values, code = np.unique(x, return_inverse=True)
    classes = np.unique(y)
    if len(values) != len(classes):
        return False
    return len(np.unique(code.astype(np.int64) * (int(y.max()) + 1) + y)) == len(values)
