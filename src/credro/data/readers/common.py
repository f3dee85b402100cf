"""What every reader needs: the missing set, the wrong split, the wrong label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.data.errors import DataError, DataNotFound, UnknownSplit
from credro.data.sources import SOURCES

SPLITS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
"""The words for a split, in any case, by the name of the split."""


def split_of(word: str) -> str | None:
    """The split that a word stands for, such as val for "Validation"; None: the word is none of ``SPLITS``."""
    word = word.strip().lower()
    return next((split for split, words in SPLITS.items() if word in words), None)


def not_found(name: str, root: Path, looked_for: Sequence[Path | str]) -> DataNotFound:
    """The error for a set that is not on disk."""
    source = SOURCES[name]
    lines = [f"{name!r} was not found below {root}", "  looked for:"]
    lines += [f"    {path}" for path in looked_for]
    lines += [f"  published at: {source.page}"]
    if source.files:
        lines += [f"  to fetch it there: credro data get {name} --root {root}"]
    else:
        lines += [f"  credro data get {name} cannot fetch it: get it from that page"]
    lines += ["  or say where it is: root=..., or the environment variable CREDRO_DATA"]
    return DataNotFound("\n".join(lines))


def find(name: str, root: Path, candidates: Sequence[str]) -> Path:
    """The first of ``candidates`` (below root) that exists."""
    paths = [root / candidate for candidate in candidates]
    for path in paths:
        if path.exists():
            return path
    raise not_found(name, root, paths)


def pick_split(name: str, split: str | None, allowed: Sequence[str]) -> str:
    """The split asked for; the first one allowed when none was."""
    if split is None:
        return allowed[0]
    if split not in allowed:
        raise UnknownSplit(name, split, allowed)
    return split


def check_labels(path: Path, labels: Tensor, samples: int, classes: int) -> Tensor:
    """Labels (N,) as int64, one for each sample, each in 0..classes-1."""
    if samples == 0:
        raise DataError(path, "holds no samples")
    if labels.ndim != 1 or len(labels) != samples:
        raise DataError(path, f"{samples} samples, but labels of shape {tuple(labels.shape)}")
    labels = labels.long()
    bad = ((labels < 0) | (labels >= classes)).nonzero().flatten()
    if len(bad):
        raise DataError(
            path,
            f"label {int(labels[bad[0]])} of sample {int(bad[0])} is outside 0..{classes - 1}"
            f" ({len(bad)} such labels in all)",
        )
    return labels


def whole_numbers(path: Path, values: Any, what: str = "labels") -> Tensor:
    """A numpy array as int64; fractions, NaN and text are refused rather than cut to whole numbers."""
    if values.dtype.kind not in "iuf" or (values.dtype.kind == "f" and not (values == values.round()).all()):
        raise DataError(path, f"{what} must be whole numbers, got {values.dtype} such as {values.flat[:3].tolist()}")
    return torch.from_numpy(values.astype("int64"))


def number(values: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Names to numbers in the order of the sorted names: (N,) int64 and the names."""
    names = sorted(set(values))
    index = {name: i for i, name in enumerate(names)}
    return torch.tensor([index[value] for value in values], dtype=torch.long), tuple(names)
