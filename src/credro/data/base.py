"""Labelled samples, in memory or read from files when asked: the one type that everything downstream reads.

``Data`` is also an ordinary torch ``Dataset`` of ``(sample, label)`` pairs, so it serves in anybody's ``DataLoader``;
``as_data`` brings anybody's ``Dataset`` or ``DataLoader`` to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    default_collate,
)

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
    rows = rows.float() + 0.0  # no negative zero
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


@dataclass(frozen=True, eq=False)
class _Collated:
    """Samples of anybody's dataset, put together by its loader's collate function."""

    dataset: Any
    collate: Callable[[list[Any]], Any]

    def __call__(self, i: Tensor) -> Tensor:
        return torch.as_tensor(self.collate([self.dataset[n] for n in i.tolist()])[0])


def as_data(source: Any, name: str = "own", classes: Sequence[str] = ()) -> Data:
    """Anybody's ``Dataset``, ``DataLoader`` or ``(x, y)`` pair as ``Data``; ``Data`` itself passes through.

    Samples come out as the dataset gives them. A loader contributes its dataset, the part of it that a
    ``SubsetRandomSampler`` takes, and its collate function; order and batch size are the recipe's. Labels are taken
    from the dataset's ``targets`` or ``labels`` where the items agree with them, or read in one pass.
    """
    if isinstance(source, Data):
        return source
    if isinstance(source, DataLoader) and (part := _part(source)) is not None:
        whole = DataLoader(source.dataset, collate_fn=source.collate_fn)
        return as_data(whole, name, classes).subset(part)
    if isinstance(source, tuple) and len(source) == 2:
        x, y = as_tensor(source[0], "x"), as_tensor(source[1], "y")
        return _checked(
            Data(name, x, _label_tensor(y), tuple(x.shape[1:]), tuple(classes), prepared=x.dtype != torch.uint8)
        )
    collate: Callable[[list[Any]], Any] = default_collate
    if isinstance(source, DataLoader):
        collate, source = source.collate_fn, source.dataset
    if isinstance(source, Data):
        return source
    if isinstance(source, TensorDataset) and len(source.tensors) == 2:
        return as_data(tuple(source.tensors), name, classes)
    if isinstance(source, IterableDataset) or not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
        raise TypeError(
            f"data must be a credro Data, a torch Dataset with a length, a DataLoader over one, or a pair (x, y); "
            f"got {type(source).__name__}: a stream without random access can be predicted on, but not trained on, "
            f"since its order could not be restored after an interruption"
        )
    if len(source) == 0:
        raise ValueError(f"data is empty: {type(source).__name__} has length 0")
    first = source[0]
    if not isinstance(first, tuple | list) or len(first) != 2:
        raise TypeError(
            f"data must give pairs (sample, label); item 0 of {type(source).__name__} is a {type(first).__name__}"
        )
    read = _Collated(source, collate)
    y = _labels(source)
    names = tuple(classes) or tuple(map(str, getattr(source, "classes", ())))
    shape = tuple(read(torch.tensor([0])).shape[1:])
    return _checked(Data(name, read, _label_tensor(y), shape, names, prepared=True))


def as_tensor(values: Any, name: str) -> Tensor:
    """Numbers as a tensor: an array, a data frame or column of one, lists, a list of tensors. name: for messages."""
    if isinstance(values, Tensor):
        return values
    if isinstance(values, list | tuple) and values and isinstance(values[0], Tensor):
        return torch.stack(list(values))
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        remedy = ": number the classes from 0, as names, y = np.unique(y, return_inverse=True) does" * (name == "y")
        raise TypeError(f"{name} must hold numbers, got {array.dtype}{remedy}")
    return torch.as_tensor(np.require(array, requirements=["C", "W"]))


def _part(loader: DataLoader[Any]) -> Tensor | None:
    """The samples that a loader takes of its dataset; None: all of them. A sampler of another kind is refused."""
    if isinstance(loader.dataset, IterableDataset):
        return None
    sampler: object = loader.sampler if type(loader.batch_sampler) is BatchSampler else loader.batch_sampler
    if isinstance(sampler, SubsetRandomSampler):
        return torch.as_tensor(sampler.indices, dtype=torch.long)
    if type(sampler) in (SequentialSampler, RandomSampler):
        return None
    given = "batch_size=None" if sampler is None else type(sampler).__name__
    raise TypeError(
        f"a DataLoader must draw its dataset in order, shuffled, or by a SubsetRandomSampler, got {given}: what it "
        f"draws could not be drawn again after an interruption; pass its dataset, or a torch.utils.data.Subset of it"
    )


def _labels(source: Any) -> Tensor:
    """The labels of anybody's dataset: ``targets`` or ``labels`` if it has them and its items say the same."""
    n = len(source)
    for key in ("targets", "labels"):
        if hasattr(source, key) and getattr(source, "target_transform", None) is None:
            try:
                y = torch.as_tensor(getattr(source, key))
                if len(y) == n and all(torch.equal(y[i], _label(source, i).to(y.dtype)) for i in {0, n // 2, n - 1}):
                    return y
            except (TypeError, ValueError, RuntimeError):  # names, or something that only goes by this name
                continue
    return torch.stack([_label(source, i) for i in range(n)])


def _label(source: Any, i: int) -> Tensor:
    label = source[i][1]
    try:
        return torch.as_tensor(label)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"labels must be numbers or tensors; that of item {i} of {type(source).__name__} is {label!r}"
        ) from error


def _label_tensor(y: Tensor) -> Tensor:
    if y.is_floating_point() or (y.ndim == 2 and y.shape[1] > 1):  # numbers, or a distribution over the classes
        return y.float()
    return (y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y).long()  # a column of class numbers


def _checked(data: Data) -> Data:
    if isinstance(data.samples, Tensor) and len(data.samples) != len(data.labels):
        raise ValueError(
            f"x and y must have the same length, got {len(data.samples)} samples and {len(data.labels)} labels"
        )
    return data
