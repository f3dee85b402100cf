"""Labels and groups of a user's own arrays and tables: the distinct values are the classes, by their own names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credro._names import Argument, ArgumentError, Message, Open
from credro.data.base import Array
from credro.data.classes import UNKNOWN, Classes, class_names, list_classes
from credro.data.errors import DataError
from credro.data.readers._published import check_labels, whole_numbers
from credro.data.readers._words import count, listed

FEW = 20
"""Whole numbers with a decimal point (1.0, 2.0) are taken for classes if no more different ones occur."""

MANY = 30
"""More different labels than this, and more than one in five samples, are hardly classes: the user is asked."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels (N,): int64 class numbers, -1 for a class that is not known, or float32 values to predict (no classes)."""

    values: Tensor
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    """What is known of the labels before they are read.

    name: what they are called in messages. at: how a message names row i. unknown: labels of no known class are
    not refused, but -1.
    """

    path: Path
    classes: Classes | None = None
    task: str | None = None
    name: str = "labels"
    at: Callable[[int], str] = "row {} (counted from 0)".format
    unknown: bool = False


def read_labels(y: Array, samples: int, ask: Ask) -> Labels:
    """Labels of an array (N,) or (N, 1) of numbers, truth values or text; or (N, C), one-hot.

    The distinct values are the classes: numbers in order of value, text sorted. ``classes`` gives them instead: labels
    are then looked up by name, or, where labels are whole numbers and no class is called by a number, are the classes'
    numbers. Fractions are values to predict (regression), whole floats with few different values are classes; ``task``
    "classify" or "regress" says which.
    """
    if ask.task not in (None, "classify", "regress"):
        raise ArgumentError("task", f"task must be 'classify', 'regress' or None, got {ask.task!r}")
    if samples == 0:
        raise DataError(ask.path, "holds no samples")
    y, ask, notes = _column(y, samples, ask)
    found = _values(y, ask) if _is_regression(y, ask) else _classes(y, ask)
    return replace(found, notes=(*found.notes, *notes))


def _column(y: Array, samples: int, ask: Ask) -> tuple[Array, Ask, tuple[str, ...]]:
    """Labels as one column (N,) of numbers, truth values or text."""
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and len(y) == samples and y.dtype.kind in "iufb" and np.isin(y, (0, 1)).all():
        if not (y.sum(1) == 1).all():
            raise DataError(
                ask.path,
                f"{ask.name} are multi-label: {y.shape[1]} columns of 0 and 1, of which a sample may have several or "
                f"none; only one class for each sample is understood: take one of the columns",
            )
        names = class_names(y.shape[1] if ask.classes is None else ask.classes)
        note = f"{ask.name} are one-hot: a sample's class is the column that holds its 1"
        return y.argmax(1), replace(ask, classes=names), (note,)
    if y.ndim != 1 or len(y) != samples:
        raise DataError(ask.path, f"{samples} samples, but {ask.name} of shape {y.shape}")
    holes = np.array([v is None or v != v for v in y.tolist()]) if y.dtype.kind == "O" else y != y
    if holes.any():
        row, count = int(holes.argmax()), int(holes.sum())
        raise DataError(
            ask.path, f"{ask.name}: that of {ask.at(row)} is missing ({count:,} in all); remove the samples without one"
        )
    return np.array([str(value) for value in y.tolist()]) if y.dtype.kind == "O" else y, ask, ()


def _is_regression(y: Array, ask: Ask) -> bool:
    if ask.task is not None or ask.classes is not None or y.dtype.kind != "f":
        return ask.task == "regress"
    if not (y == y.round()).all():
        return True
    distinct = len(set(y.tolist()))
    return distinct > FEW or distinct > max(2, len(y) / 5)


def _values(y: Array, ask: Ask) -> Labels:
    if y.dtype.kind not in "fiub":
        raise DataError(ask.path, f"{ask.name} of type {y.dtype} such as {str(y[0])!r} cannot be regressed on")
    values = torch.from_numpy(y.astype("float32"))
    if not np.isfinite(y).all():
        row = int(np.isfinite(y).argmin())
        raise DataError(ask.path, f"{ask.name} of {ask.at(row)} is {y[row]}")
    return Labels(values, notes=(f"{ask.name}: values from {values.min():g} to {values.max():g} (regression)",))


def _classes(y: Array, ask: Ask) -> Labels:
    distinct, inverse = np.unique(y, return_inverse=True)
    own = [_own_name(value) for value in distinct.tolist()]
    notes: list[str] = []
    if ask.classes is None:
        _must_be_classes(own, distinct, len(y), ask)
        numbers, names = torch.arange(len(own)), tuple(own)
        if y.dtype.kind == "f":
            taken = f"{ask.name} are whole numbers such as {y[0]}, taken for classes; "
            notes = [Message(taken, Argument("task", "regress"), " predicts values")]
    else:
        names = class_names(ask.classes)
        if y.dtype.kind == "b" and not set(own) & set(names):
            own = [str(int(value)) for value in distinct.tolist()]
        counted = y.dtype.kind in "iufb" and not _any_number(names) and not set(own) & set(names)
        index = {str(i) if counted else name: i for i, name in enumerate(names)}
        numbers = torch.tensor([index.get(name, UNKNOWN) for name in own])
        if counted:
            pairs = [f"{name} is {names[index[name]]}" for name in own if name in index]
            notes = [f"{ask.name} are the numbers of the classes: {listed(pairs)}"] if pairs else []
    labels = numbers[torch.from_numpy(inverse.reshape(-1))]
    if (numbers == UNKNOWN).any():
        unknown = [name for name, n in zip(own, numbers.tolist(), strict=True) if n == UNKNOWN]
        rows = (labels == UNKNOWN).nonzero().flatten().tolist()
        if not ask.unknown:
            raise DataError(
                ask.path,
                f"{ask.name}: {own[inverse.reshape(-1)[rows[0]]]!r} of {ask.at(rows[0])} is not one of the "
                f"{list_classes(names)} ({len(rows):,} such labels in all)",
            )
        kinds = count(len(unknown), "class")
        notes.append(f"{len(rows):,} samples of {kinds} that the run does not know: {listed(unknown)}")
    absent = [] if ask.unknown else [name for i, name in enumerate(names) if i not in set(numbers.tolist())]
    none_of = f"; no sample of {listed(absent)}" if absent else ""
    return Labels(labels, names, (f"{ask.name}: {list_classes(names)}{none_of}", *notes))


def _must_be_classes(own: list[str], distinct: Array, samples: int, ask: Ask) -> None:
    if len(own) == 1:
        alike = f"{ask.name}: all {samples:,} samples have label {own[0]}, and there is nothing to tell apart; "
        others = "if other classes may occur elsewhere, name them all with "
        raise DataError(ask.path, Message(alike + others, Argument("classes", Open())))
    if ask.task is None and len(own) > MANY and len(own) > samples / 5:
        span = f", from {own[0]} to {own[-1]}" if distinct.dtype.kind in "iuf" else f" such as {own[0]!r}"
        many = f"{ask.name}: {len(own):,} different ones in {samples:,} samples{span}: so many are hardly classes; "
        numbers = (Argument("task", "regress"), " predicts them as values, ") if distinct.dtype.kind in "iuf" else ()
        raise DataError(ask.path, Message(many, *numbers, Argument("task", "classify"), " takes them for classes"))


def number(values: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Names to numbers in the order of the sorted names: (N,) int64 and the names."""
    names = sorted(set(values))
    index = {name: i for i, name in enumerate(names)}
    return torch.tensor([index[value] for value in values], dtype=torch.long), tuple(names)


def _own_name(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _any_number(names: Sequence[str]) -> bool:
    return any(name.lstrip("+-").replace(".", "", 1).isdigit() for name in names)


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
