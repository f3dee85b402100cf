"""From label values to class numbers: the distinct values are the classes, in order, by their own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credro._names import ArgumentError

Classes = Sequence[Any] | int
"""Names of classes in the order of their numbers, or how many there are: 10 is 0 to 9."""

UNKNOWN = -1
"""The label of a sample whose class is none of those asked for."""


def class_names(classes: Classes) -> tuple[str, ...]:
    """``classes`` as names: 3 is ("0", "1", "2")."""
    if isinstance(classes, bool) or (isinstance(classes, int) and classes < 1):
        raise ArgumentError("classes", f"classes must be names, or a number of classes of at least 1, got {classes!r}")
    if isinstance(classes, str):
        raise TypeError(f"classes must be a list of names, got the text {classes!r}")
    names = tuple(map(str, range(classes) if isinstance(classes, int) else classes))
    if len(set(names)) < len(names):
        raise ArgumentError("classes", f"classes must differ from each other, got {', '.join(names)}")
    return names


def number_labels(y: Tensor | Sequence[str], classes: Classes | None = None) -> tuple[Tensor, tuple[str, ...]]:
    """Class numbers (N,) int64 and the names of the classes.

    y: (N,) whole numbers or truth values, or names. Without ``classes`` the distinct values are the classes, numbers
    by value and names sorted. With them, names and numbers are looked up among them; but where none of the classes is a
    number itself, whole numbers count them from 0. A value that is none of them becomes ``UNKNOWN``.
    """
    if isinstance(y, Tensor):
        values, place = torch.unique(y.cpu(), return_inverse=True)
        own = tuple(str(v) for v in values.tolist())
    else:
        found, inverse = np.unique(np.asarray(y, dtype=str), return_inverse=True)
        own, place = tuple(found.tolist()), torch.from_numpy(inverse)
    if classes is None:
        return place.long(), own
    names = class_names(classes)
    index = {name: i for i, name in enumerate(names)}
    if isinstance(y, Tensor) and not any(map(_is_number, names)):  # names for numbers that count from 0
        index = {str(i): i for i in range(len(names))}
    return torch.tensor([index.get(name, UNKNOWN) for name in own], dtype=torch.long)[place], names


def rename_labels(labels: Tensor, theirs: Sequence[str], ours: Sequence[str]) -> Tensor:
    """Class numbers (N,) of ``theirs`` as those of the class of that name in ``ours``, or ``UNKNOWN``."""
    index = {name: i for i, name in enumerate(ours)}
    table = torch.tensor([*(index.get(name, UNKNOWN) for name in theirs), UNKNOWN])  # the last is that of label -1
    return table[labels.long()]


def list_classes(names: Sequence[str], most: int = 12) -> str:
    """``2 classes: 1, 2``, shortened where there are many."""
    shown = ", ".join(names[:most]) + (f", ... {names[-1]}" if len(names) > most else "")
    return f"{len(names)} class{'es' * (len(names) != 1)}: {shown}"


def _is_number(name: str) -> bool:
    return name.lstrip("-").isdigit() or name in ("True", "False")
