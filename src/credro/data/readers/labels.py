"""Labels, groups and missing values of a user's own arrays and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.data.errors import DataError
from credro.data.readers.common import check_labels, number, whole_numbers

Array = Any
"""A numpy array; numpy is imported where it is used."""


def read_labels(
    path: Path, y: Array, samples: int, classes: Sequence[str] | None, task: str | None
) -> tuple[Tensor, tuple[str, ...]]:
    """Labels (N,) and the names of the classes (none for regression).

    Floats are values to predict; everything else is classes, unless ``task`` is "classify" or "regress".
    Whole numbers from 0 on are kept as they are; text, truth values and negative numbers are numbered in sorted
    order. ``classes`` names the classes in the order of their numbers, so that two files number them alike.
    """
    if task not in (None, "classify", "regress"):
        raise ValueError(f"task must be 'classify', 'regress' or None, got {task!r}")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if samples == 0:
        raise DataError(path, "holds no samples")
    if y.ndim != 1 or len(y) != samples:
        raise DataError(path, f"{samples} samples, but labels of shape {y.shape}")
    if task == "regress" or (task is None and y.dtype.kind == "f"):
        if y.dtype.kind not in "fiub":
            raise DataError(path, f"labels of type {y.dtype} cannot be regressed on")
        values = torch.from_numpy(y.astype("float32"))
        if len(bad := (~values.isfinite()).nonzero().flatten()):
            raise DataError(path, f"label of row {int(bad[0])} is {float(values[bad[0]])}")
        return values, ()
    if y.dtype.kind == "f":
        if (holes := y != y).any():
            raise DataError(path, f"label of row {int(holes.argmax())} is nan")
        if (y == y.round()).all():
            y = y.astype("int64")
    if y.dtype.kind in "iu" and y.min() >= 0:
        return _numbered(path, y, samples, classes)
    names = [str(value) for value in y.tolist()]
    if classes is None:
        if y.dtype.kind in "iu":  # negative numbers: by value, not as text
            classes = [str(v) for v in sorted(set(y.tolist()))]
        else:
            return number(names)
    index = {str(name): i for i, name in enumerate(classes)}
    if unknown := [(row, value) for row, value in enumerate(names) if value not in index]:
        row, value = unknown[0]
        raise DataError(path, f"label {value!r} of row {row} is not one of the classes {', '.join(index)}")
    return torch.tensor([index[value] for value in names]), tuple(index)


def _numbered(path: Path, y: Array, samples: int, classes: Sequence[str] | None) -> tuple[Tensor, tuple[str, ...]]:
    labels = torch.from_numpy(y.astype("int64"))
    if classes is None:
        top, distinct = int(labels.max()), len(set(labels.tolist()))
        if top >= 10 * max(distinct, 10):
            raise DataError(
                path,
                f"labels run up to {top}, but only {distinct} different ones occur: if they are values to predict, "
                f"pass task='regress'; if they are classes, number them from 0",
            )
        classes = [str(i) for i in range(top + 1)]
    return check_labels(path, labels, samples, len(classes)), tuple(map(str, classes))


def read_groups(path: Path, values: Array, samples: int, names: Sequence[str] = ()) -> tuple[Tensor, tuple[str, ...]]:
    """Groups (N,) numbered in sorted order, and their names; numbers that index ``names`` are kept as they are."""
    if values.ndim != 1 or len(values) != samples:
        raise DataError(path, f"{samples} samples, but groups of shape {values.shape}")
    if names:
        return check_labels(path, whole_numbers(path, values, "groups"), samples, len(names)), tuple(names)
    if values.dtype.kind == "f" and (holes := values != values).any():
        raise DataError(path, f"group of row {int(holes.argmax())} is nan")
    if values.dtype.kind in "iufb":  # by value, not as text
        distinct = sorted(set(values.tolist()))
        index = {value: i for i, value in enumerate(distinct)}
        return torch.tensor([index[value] for value in values.tolist()]), tuple(map(str, distinct))
    return number([str(value) for value in values.tolist()])


def check_missing(path: Path, x: Tensor, columns: Sequence[str], missing: str) -> None:
    """Features (N, F) are numbers: NaN passes only with missing="keep", infinity never."""
    if missing not in ("error", "keep"):
        raise ValueError(f"missing must be 'error' or 'keep', got {missing!r}")
    bad = x.isinf() if missing == "keep" else ~x.isfinite()
    if bad.any():
        row, column = bad.nonzero()[0].tolist()
        what = "infinite" if x[row, column].isinf() else "missing"
        hint = "" if missing == "keep" or what == "infinite" else "; missing='keep' leaves such values as NaN"
        raise DataError(
            path, f"value in row {row}, column {columns[column]!r} is {what} ({int(bad.sum())} in all){hint}"
        )
