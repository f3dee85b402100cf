"""What the readers of published sets need: where the files lie, and checks of what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro._names import Argument, Message, Open, joined
from credro.data.errors import DataError, DataNotFound, UnknownSplit
from credro.data.sources import SOURCES

Alternatives = tuple[str, ...]
"""The names below the root under which one file, or folder, may be found."""


@dataclass(frozen=True)
class Published:
    """A set as its publisher distributes it. splits: for each, the files it needs; the first is the default.

    within: what lies in them, where they are folders.
    """

    name: str
    splits: Mapping[str, tuple[Alternatives, ...]]
    within: str = ""

    def split(self, given: str | None) -> str:
        """The split asked for; the first one when none was."""
        if given is not None and given not in self.splits:
            raise UnknownSplit(self.name, given, tuple(self.splits))
        return next(iter(self.splits)) if given is None else given

    def find(self, root: Path, split: str) -> list[Path]:
        """The files of a split, each under the first of its names that exists."""
        found, lacking = [], []
        for names in self.splits[split]:
            places = [root / name for name in names]
            here = next((place for place in places if place.exists()), None)
            lacking += places if here is None else []
            found += [] if here is None else [here]
        if lacking:
            raise not_found(self.name, root, lacking, [str(place / self.within) for place in lacking])
        return found

    def candidates(self, root: Path) -> list[Path]:
        """All places where files of the set are looked for."""
        names = (name for files in self.splits.values() for alternatives in files for name in alternatives)
        return [root / name for name in dict.fromkeys(names)]


def not_found(name: str, root: Path, places: list[Path], shown: list[str]) -> DataNotFound:
    """The error for a set that is not on disk. shown: the places, and what else is to be said of them."""
    source = SOURCES[name]
    get = f"to fetch it there: credro data get {name} --root {root}"
    lines = [
        f"{name!r} was not found below {root}",
        "  looked for:",
        *(f"    {line}" for line in shown),
        f"  published at: {source.page}",
        f"  {get if source.files else f'credro data get {name} cannot fetch it: get it from that page'}",
        Message("  or say where it is: ", Argument("root", Open()), ", or the environment variable CREDRO_DATA"),
    ]
    return DataNotFound(name, places, joined("\n", lines))


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
