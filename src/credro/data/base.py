"""Labelled samples, in memory or read from files when asked: the one type that everything downstream reads.

``Data`` is also an ordinary torch ``Dataset`` of ``(sample, label)`` pairs, so it serves in anybody's ``DataLoader``;
``credro.data.as_data`` brings anybody's ``Dataset`` or ``DataLoader`` to it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from credro._names import ArgumentError
from credro.data.fields import RAGGED, Batch, Field, Fields
from credro.data.spec import DataSpec
from credro.data.texts import Texts

CHUNK = 1024
"""So many samples are looked at together."""

Array = npt.NDArray[Any]

Reader = Callable[[Tensor], Any]
"""Takes sample numbers ``(B,)``, gives the stacked samples ``(B, *shape)`` as they are stored, or ``Fields``.

One that knows what decides its samples without reading them has a method ``sample_keys``; see the function. One that
fills samples up to the longest of those read together says so: ``alone`` is true.
"""


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

    samples: (N, *shape), uint8 for images and float32 for tables, or a function that reads them from files; or
    ``Fields``, several tensors that go into a network together, which ``fields`` describes; or texts, which ``texts``
    gives (``shape`` is then empty).
    labels: (N,) int64, floats for regression, or (N, C) soft labels. classes: C names.
    groups: (N,) int64: patient, hospital, scanner.
    mean, std: what the set is usually normalised with, one number per channel or feature; empty: none is customary.
    """

    name: str
    samples: Batch | Reader
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
    origin: Data | None = field(default=None, repr=False)  # of features: the samples they were computed from
    made_by: str = field(default="", repr=False)  # and by what: a trunk's digest, and that of the views
    views: Tensor | None = field(default=None, repr=False)  # (N, V, *shape): a sample and augmented ones, to draw from
    fields: tuple[Field, ...] = ()  # of samples of several tensors

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[Tensor, Any]:
        """Sample i as floats (bytes scaled to [0, 1]), or as its fields are, and its label."""
        i = range(len(self))[i]
        label = self.labels[i]
        target = label.item() if label.ndim == 0 else label
        if isinstance(self.samples, Texts):
            return self.samples.strings[i], target  # type: ignore[return-value]
        sample = self.batch(torch.tensor([i]))[0]
        found: Any = sample.value if isinstance(sample, Fields) else to_float(sample)
        return found, target

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The N strings, also of features that were computed from texts; None where samples are no texts."""
        if self.origin is not None:
            return self.origin.texts
        return self.samples.strings if isinstance(self.samples, Texts) else None

    @property
    def in_memory(self) -> bool:
        """Whether all samples are held, and none is read."""
        return isinstance(self.samples, Tensor | Fields)

    @property
    def ragged(self) -> bool:
        """Whether samples differ in length, and are padded to batches."""
        return any(RAGGED in field.shape for field in self.fields)

    def batch(self, index: Tensor) -> Any:
        """Samples ``(B, *shape)`` at ``index`` (B,), in the dtype they are stored in; or ``Fields`` of them."""
        if isinstance(self.samples, Tensor | Fields):
            return self.samples[index.to(self.samples.device)]
        return self.samples(index)

    def chunks(self) -> Iterator[Any]:
        """All samples in order, some at a time: (B, *shape). One by one where others would change how they look."""
        size = 1 if getattr(self.samples, "alone", False) else CHUNK
        for start in range(0, len(self), size):
            yield self.batch(torch.arange(start, min(start + size, len(self))))

    def subset(self, index: Tensor | Sequence[int]) -> Data:
        """The samples at ``index`` (B,), in that order."""
        index = torch.as_tensor(index, dtype=torch.long)
        samples = self.samples
        return replace(
            self,
            samples=_picked(samples, index),
            labels=self.labels[index.to(self.labels.device)],
            groups=None if self.groups is None else self.groups[index.to(self.groups.device)],
            paths=tuple(self.paths[i] for i in index.tolist()) if self.paths else (),
            origin=None if self.origin is None else self.origin.subset(index),
            views=None if self.views is None else self.views[index.to(self.views.device)],
        )

    def relabel(self, labels: Tensor, classes: Sequence[str] | None = None) -> Data:
        """The same samples under other labels (N,)."""
        if len(labels) != len(self):
            counts = f"got {len(labels)} for {len(self)} samples"
            raise ArgumentError("labels", f"labels must have one entry per sample: {counts}")
        return replace(self, labels=labels, classes=self.classes if classes is None else tuple(classes))

    def content(self) -> Tensor:
        """A number (N,) int64 for each sample that depends on its values alone: equal samples have equal numbers.

        Neither name, label, file format nor dtype count: bytes and the same image as floats in [0, 1] are equal, as are
        single and double precision. Features count as the samples they were computed from. Reads every sample once.
        """
        if self.origin is not None:
            return self.origin.content()
        if isinstance(self.samples, Texts):
            return _hashed([text.strip().encode() for text in self.samples.strings])
        return torch.cat([torch.empty(0, dtype=torch.long), *map(content_of, self.chunks())])

    def fingerprint(self) -> str:
        """Twelve hex digits that change when a sample or a label changes.

        Samples count by their bytes, whether they are held or read; images that are read from files by the bytes of
        the files and all that is done to them. Samples that do not repeat (``repeats``) cannot count: then the labels
        stand for the set, and nothing computed from the samples may be kept under this name.
        """
        digest = hashlib.sha256(f"{len(self)} {self.shape}{self.fields or ''}".encode())
        digest.update(_bytes(self.labels))
        if self.origin is not None:  # machines round features differently
            digest.update(f"{self.origin.fingerprint()} {self.made_by}".encode())
        elif isinstance(self.samples, Tensor | Fields):
            digest.update(_bytes(self.samples))
        elif (keys := sample_keys(self.samples, torch.arange(len(self)))) is not None:
            digest.update(b"".join(keys))
        elif self.repeats():
            for x in self.chunks():
                digest.update(_bytes(x))
        else:
            digest.update(b"random")
        return digest.hexdigest()[:12]

    def repeats(self) -> bool:
        """Whether a sample read twice is the same: those of a dataset that augments at random are not."""
        if self.origin is not None:
            return self.origin.repeats()
        if isinstance(self.samples, Tensor | Fields) or not len(self):
            return True
        some = torch.linspace(0, len(self) - 1, min(len(self), 16)).long()
        if sample_keys(self.samples, some) is not None:
            return True
        return _bytes(self.batch(some)) == _bytes(self.batch(some))


def sample_keys(read: Reader, index: Tensor) -> list[bytes] | None:
    """What decides each of the samples at ``index`` (B,): equal keys, equal samples. None: only the samples tell."""
    keys: Callable[[Tensor], list[bytes] | None] | None = getattr(read, "sample_keys", None)
    return None if keys is None else keys(index)


def changed_keys(read: Reader, index: Tensor, changes: Iterable[object]) -> list[bytes] | None:
    """The keys of samples to each of which something is done: ``changes`` says to each what."""
    keys = sample_keys(read, index)
    if keys is None:
        return None
    return [_short(key + repr(change).encode()) for key, change in zip(keys, changes, strict=True)]


def content_of(x: Batch) -> Tensor:
    """The ``content`` (B,) of stored samples (B, ...); of several fields whatever their order, if they have names."""
    if isinstance(x, Fields):
        each = zip(x.names or map(str, range(len(x.tensors))), map(content_of, x.tensors), strict=True)
        columns = [t.numpy() for _, t in sorted(each)]
        return _hashed([b"".join(row) for row in zip(*([v.tobytes() for v in c] for c in columns), strict=True)])
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
    return torch.from_numpy(np.frombuffer(b"".join(_short(row, 8) for row in rows), np.int64).copy())


def _short(content: bytes | memoryview, size: int = 16) -> bytes:
    return hashlib.blake2b(content, digest_size=size).digest()


def _bytes(x: Batch) -> memoryview | bytes:
    """The bytes of a tensor as it is stored, of whatever dtype; of fields, those of all of them."""
    if isinstance(x, Fields):
        return b"".join(_short(_bytes(t), 32) for t in x.tensors)
    flat: Any = x.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return memoryview(flat)


def _picked(samples: Batch | Reader, index: Tensor) -> Batch | Reader:
    if isinstance(samples, Tensor | Fields):
        return samples[index.to(samples.device)]
    return samples.pick(index) if isinstance(samples, Texts) else _Picked(samples, index)


@dataclass(frozen=True, eq=False)
class _Picked:
    """Some of a reader's samples. A class and not a lambda: it must travel to other processes."""

    read: Reader
    index: Tensor

    @property
    def alone(self) -> bool:
        return bool(getattr(self.read, "alone", False))

    def __call__(self, i: Tensor) -> Any:
        return self.read(self.index[i.to(self.index.device)])

    def sample_keys(self, i: Tensor) -> list[bytes] | None:
        return sample_keys(self.read, self.index[i.to(self.index.device)])
