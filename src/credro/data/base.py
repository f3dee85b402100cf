"""Labelled samples, in memory or read from files when asked: the one type that everything downstream reads.

``Data`` is also an ordinary torch ``Dataset`` of ``(sample, label)`` pairs, so it serves in anybody's ``DataLoader``;
``credro.data.as_data`` brings anybody's ``Dataset`` or ``DataLoader`` to it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from credro.data.spec import DataSpec

CHUNK = 1024
"""So many samples are looked at together."""

Reader = Callable[[Tensor], Tensor]
"""Takes sample numbers ``(B,)``, gives the stacked samples ``(B, *shape)`` in the dtype they are stored in."""


def to_float(x: Tensor) -> Tensor:
    """Bytes become floats in [0, 1]; floats stay as they are."""
    return x.float() / 255 if x.dtype == torch.uint8 else x


@dataclass(frozen=True)
class BadFile:
    """A file that cannot be read, and why."""

    path: Path
    problem: str


@dataclass(frozen=True, eq=False)
class Data(Dataset[tuple[Tensor, Any]]):
    """N labelled samples.

    samples: (N, *shape), uint8 for images and float32 for tables, or a function that reads them from files.
    labels: (N,) int64, floats for regression, or (N, C) soft labels. classes: C names.
    groups: (N,) int64: patient, hospital, scanner.
    mean, std: what the set is usually normalised with, one number per channel or feature; empty: none is customary.
    """

    name: str
    samples: Tensor | Reader
    labels: Tensor
    shape: tuple[int, ...]
    classes: tuple[str, ...] = ()
    groups: Tensor | None = None
    group_names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    paths: tuple[Path, ...] = field(default=(), repr=False)  # one per sample where samples are files
    prepared: bool = False  # a user's own dataset: its samples are not scaled, normalised or augmented by us
    columns: tuple[str, ...] = ()  # a table: the names of its features
    spec: DataSpec | None = field(default=None, repr=False)  # how it was read, where a reader read it
    notes: tuple[str, ...] = field(default=(), repr=False)  # what the reader took, dropped and left out, in sentences
    bad: tuple[BadFile, ...] = field(default=(), repr=False)  # files that were left out because they cannot be read
    batch_size: int | None = None  # of the loader that it came in

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[Tensor, Any]:
        """Sample i as floats (bytes scaled to [0, 1]) and its label."""
        i = range(len(self))[i]
        label = self.labels[i]
        return to_float(self.batch(torch.tensor([i]))[0]), label.item() if label.ndim == 0 else label

    @property
    def in_memory(self) -> bool:
        """Whether all samples are held as one tensor."""
        return isinstance(self.samples, Tensor)

    def batch(self, index: Tensor) -> Tensor:
        """Samples ``(B, *shape)`` at ``index`` (B,), in the dtype they are stored in."""
        if isinstance(self.samples, Tensor):
            return self.samples[index.to(self.samples.device)]
        return self.samples(index)

    def subset(self, index: Tensor | Sequence[int]) -> Data:
        """The samples at ``index`` (B,), in that order."""
        index = torch.as_tensor(index, dtype=torch.long)
        samples = self.samples
        return replace(
            self,
            samples=samples[index.to(samples.device)] if isinstance(samples, Tensor) else _Picked(samples, index),
            labels=self.labels[index.to(self.labels.device)],
            groups=None if self.groups is None else self.groups[index.to(self.groups.device)],
            paths=tuple(self.paths[i] for i in index.tolist()) if self.paths else (),
        )

    def relabel(self, labels: Tensor, classes: Sequence[str] | None = None) -> Data:
        """The same samples under other labels (N,)."""
        if len(labels) != len(self):
            raise ValueError(f"labels must have one entry per sample: got {len(labels)} for {len(self)} samples")
        return replace(self, labels=labels, classes=self.classes if classes is None else tuple(classes))

    def content(self) -> Tensor:
        """A number (N,) int64 for each sample that depends on its values alone: equal samples have equal numbers.

        Neither name, label, file format nor dtype count: bytes and the same image as floats in [0, 1] are equal, as are
        single and double precision. Reads every sample once.
        """
        parts = [
            content_of(self.batch(torch.arange(start, min(start + CHUNK, len(self)))))
            for start in range(0, len(self), CHUNK)
        ]
        return torch.cat(parts) if parts else torch.empty(0, dtype=torch.long)

    def fingerprint(self) -> str:
        """Twelve hex digits that change when the samples or labels change; files count by name and size."""
        digest = hashlib.sha256(f"{len(self)} {self.shape}".encode())
        digest.update(self.labels.cpu().contiguous().numpy().tobytes())
        if isinstance(self.samples, Tensor):
            digest.update(self.samples.cpu().contiguous().numpy().tobytes())
        elif self.paths:
            for path in self.paths:
                digest.update(f"{path.parent.name}/{path.name} {path.stat().st_size}".encode())
        else:  # a user's own dataset: a few samples stand for all
            for i in torch.linspace(0, len(self) - 1, min(len(self), 32)).long():
                digest.update(self.batch(i[None]).cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:12]


def content_of(x: Tensor) -> Tensor:
    """The ``content`` (B,) of stored samples (B, ...)."""
    rows = x.detach().cpu().reshape(len(x), -1)
    if rows.dtype == torch.uint8:
        return _hashed([row.tobytes() for row in rows.numpy()])
    if not rows.is_floating_point() and rows.numel() and int(rows.abs().max()) >= 2**24:  # floats would round these
        return _hashed([row.tobytes() for row in rows.long().numpy()])
    rows = (rows.float() + 0.0).nan_to_num(math.nan, math.inf, -math.inf)  # one zero and one NaN
    scaled = rows * 255
    whole = scaled.round()
    image = ((whole >= 0) & (whole <= 255) & ((scaled - whole).abs() < 1e-3)).all(1)
    as_bytes, as_floats = whole.nan_to_num(0).clamp(0, 255).to(torch.uint8).numpy(), rows.numpy()
    return _hashed([as_bytes[i].tobytes() if image[i] else as_floats[i].tobytes() for i in range(len(rows))])


def _hashed(rows: list[bytes]) -> Tensor:
    digests = b"".join(hashlib.blake2b(row, digest_size=8).digest() for row in rows)
    return torch.from_numpy(np.frombuffer(digests, np.int64).copy())


@dataclass(frozen=True, eq=False)
class _Picked:
    """Some of a reader's samples. A class and not a lambda: it must travel to other processes."""

    read: Reader
    index: Tensor

    def __call__(self, i: Tensor) -> Tensor:
        return self.read(self.index[i.to(self.index.device)])
