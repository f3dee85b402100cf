"""Which samples of a user's own file belong to which split: by marks of the samples, or by the names of arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro._names import Argument, Message
from credro.data.base import Data
from credro.data.errors import DataError, UnknownSplit

SPLITS = {"train": ("train", "training"), "val": ("val", "valid", "validation", "dev"), "test": ("test", "testing")}
"""The words for a split, in any case, by the name of the split."""


@dataclass(frozen=True, eq=False)
class Taken:
    """The split that was taken: its name (None: the file has none), its rows (None: all), a sentence on it."""

    split: str | None = None
    rows: Tensor | None = None
    notes: tuple[str, ...] = ()

    def of(self, data: Data) -> Data:
        """These rows of the samples of a whole file."""
        return data if self.rows is None else data.subset(self.rows)


def split_of(word: str) -> str | None:
    """The split that a word stands for, such as val for "Validation"; None: the word is none of ``SPLITS``."""
    word = word.strip().lower()
    return next((split for split, words in SPLITS.items() if word in words), None)


def canonical(mark: Any) -> str:
    """A mark as the name of a split: train, val or test for their words, else the mark itself."""
    if isinstance(mark, bytes):
        mark = mark.decode("utf-8", "replace")
    if isinstance(mark, float) and mark.is_integer():
        mark = int(mark)
    word = str(mark).strip()
    return split_of(word) or word


def choose(
    path: Path, counts: Mapping[str, int], split: str | None, unsaid: Sequence[str] = ("train",)
) -> tuple[str | None, tuple[str, ...]]:
    """The name of the split to take of those that a file has, and a sentence on it.

    counts: samples by the name of the split; empty: the file has no splits. split: what was asked for, by name or by
    any word for it; "all": everything; None: the first of ``unsaid`` that there is ("all" among them takes everything).
    """
    if not counts:
        if split in (None, "all"):
            return None, ()
        why = (
            "the file does not say which samples belong to which split; leave split out and cut the data yourself, "
            "or mark each sample in an array or column called 'split'"
        )
        raise UnknownSplit(path, split, (), why)
    order = [s for s in SPLITS if s in counts] + sorted(set(counts) - set(SPLITS), key=_by_value)
    listed = ", ".join(f"{name} ({counts[name]:,})" for name in order)
    if split is None:
        split = next((s for s in unsaid if s in counts or s == "all"), None)
        if split is None:
            everything = Argument("split", "all"), " takes them all"
            why = Message(f"the samples are marked {listed}, and nothing says which to take; ", *everything)
            raise UnknownSplit(path, None, [*order, "all"], why)
    if split == "all":
        return "all", (f"{path.name}: all of {listed} samples",)
    name = split if split in counts else canonical(split)
    if name not in counts:
        raise UnknownSplit(path, split, [*order, "all"])
    if len(order) == 1:
        return name, (f"{path.name}: split {name!r}, the only one, {counts[name]:,} samples",)
    return name, (f"{path.name}: split {name!r} of {listed} samples",)


def take(
    path: Path, marks: Sequence[Any] | None, samples: int, split: str | None, unsaid: Sequence[str] = ("train",)
) -> Taken:
    """The samples whose mark is that of the split; see ``choose``."""
    if marks is None:
        choose(path, {}, split, unsaid)
        return Taken()
    if len(marks) != samples:
        raise DataError(path, f"{samples} samples, but {len(marks)} entries in 'split'")
    words = {mark: canonical(mark) for mark in set(marks)}
    names = [words[mark] for mark in marks]
    name, notes = choose(path, Counter(names), split, unsaid)
    rows = None if name == "all" else torch.tensor([i for i, n in enumerate(names) if n == name])
    return Taken(name, rows, notes)


def _by_value(name: str) -> tuple[bool, float, str]:
    """Numbers by value, then words."""
    return (False, float(name), "") if name.isdigit() else (True, 0.0, name)
