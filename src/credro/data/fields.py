"""Samples of several tensors: token ids with their mask, an image with a row of numbers.

A batch is one tensor (B, *shape), or ``Fields``: tensors that go into a network together, by name (``net(**batch)``) or
in order (``net(*batch)``). They go in as they are, but for the width of floats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from credro._names import ArgumentError
from credro._records import Record

RAGGED = -1
"""In the shape of a field: as long as the longest sample of a batch."""


@dataclass(frozen=True)
class Field(Record):
    """One tensor of a sample. name: empty where fields are in order. shape: of one sample; ``RAGGED`` where it varies.

    dtype: as torch names it, ``int64``.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        """A dtype that torch knows, and sizes that can be."""
        if not isinstance(getattr(torch, self.dtype, None), torch.dtype):
            raise ArgumentError("dtype", f"dtype must be one of torch's, such as int64, got {self.dtype!r}")
        if any(n < RAGGED for n in self.shape):
            raise ArgumentError("shape", f"shape must hold sizes, or {RAGGED} where they vary, got {self.shape}")

    def __str__(self) -> str:
        """``input_ids (any) int64``."""
        sizes = ", ".join("any" if n == RAGGED else str(n) for n in self.shape)
        return f"{self.name} ({sizes}) {self.dtype}".strip()


@dataclass(frozen=True, eq=False)
class Fields:
    """A batch of samples of several tensors, (B, ...) each; or all samples of a set, (N, ...).

    names: of the tensors; none where they go into the network in order.
    """

    tensors: tuple[Tensor, ...]
    names: tuple[str, ...] = ()

    @property
    def value(self) -> dict[str, Tensor] | tuple[Tensor, ...]:
        """As the user gave it: a dict, or a tuple."""
        return dict(zip(self.names, self.tensors, strict=True)) if self.names else self.tensors

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.tensors[0])

    def __getitem__(self, index: Any) -> Fields:
        """The samples at ``index``; an int takes one, without its first axis."""
        return self.map(lambda t: t[index])

    def map(self, change: Callable[[Tensor], Tensor]) -> Fields:
        """The same fields, each changed."""
        return Fields(tuple(map(change, self.tensors)), self.names)

    def to(self, device: torch.device) -> Fields:
        """On a device."""
        return self.map(lambda t: t.to(device))

    @property
    def device(self) -> torch.device:
        """Of the tensors."""
        found: torch.device = self.tensors[0].device
        return found

    def described(self) -> tuple[Field, ...]:
        """What each tensor is like, a sample at a time."""
        names = self.names or ("",) * len(self.tensors)
        return tuple(
            Field(name, tuple(t.shape[1:]), str(t.dtype).removeprefix("torch."))
            for name, t in zip(names, self.tensors, strict=True)
        )


Batch: TypeAlias = Tensor | Fields


def is_several(x: Any) -> bool:
    """Whether ``x`` is a sample or batch of several tensors, named or in order."""
    return isinstance(x, Mapping | Fields) or (
        isinstance(x, tuple | list) and len(x) > 0 and all(isinstance(v, Tensor | np.ndarray) for v in x)
    )


def as_fields(x: Any, name: str = "x") -> Fields:
    """A dict or tuple of tensors or arrays (N, ...) as ``Fields``. name: for messages."""
    if isinstance(x, Fields):
        return x
    named = isinstance(x, Mapping)
    entries: list[tuple[str, Any]] = [(str(k), v) for k, v in x.items()] if named else [("", v) for v in x]
    if not entries:
        raise ArgumentError(name, f"{name} has no fields")
    tensors = tuple(_field(f"{name}[{k!r}]" if named else f"{name}[{i}]", v) for i, (k, v) in enumerate(entries))
    sizes = {len(t) for t in tensors}
    if len(sizes) > 1:
        raise ArgumentError(name, f"the fields of {name} must have one row per sample each, got {sorted(sizes)} rows")
    return Fields(tensors, tuple(k for k, _ in entries) if named else ())


def _field(name: str, value: Any) -> Any:
    if not isinstance(value, Tensor | np.ndarray):
        raise ArgumentError(
            name,
            f"{name} must be a tensor or an array with one row per sample, got {type(value).__name__}: rows of "
            f"different lengths go in by a DataLoader whose collate_fn pads them, such as credro.data.pad",
        )
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub":
            raise ArgumentError(name, f"{name} must hold numbers, got {value.dtype}")
        value = torch.as_tensor(np.require(value, requirements=["C", "W"]))
    if value.ndim == 0:
        raise ArgumentError(name, f"{name} must have one row per sample, got a single number")
    return value


def call(net: Callable[..., Any], x: Batch) -> Any:
    """What ``net`` gives for a batch: ``net(x)``, ``net(**batch)`` by name or ``net(*batch)`` in order."""
    if isinstance(x, Tensor):
        return net(x)
    return net(**x.value) if isinstance(x.value, dict) else net(*x.value)


def split(x: Batch, size: int) -> Iterator[Batch]:
    """A batch in pieces of ``size``."""
    if isinstance(x, Tensor):
        yield from torch.split(x, size)
    else:
        for start in range(0, len(x), size):
            yield x[start : start + size]


def stacked(batches: Sequence[Batch]) -> Batch:
    """Batches (B, ...) of several members as one (M, B, ...)."""
    first = batches[0]
    if isinstance(first, Tensor):
        return torch.stack([b for b in batches if isinstance(b, Tensor)])
    parts = [b.tensors for b in batches if isinstance(b, Fields)]
    return Fields(tuple(torch.stack(same) for same in zip(*parts, strict=True)), first.names)


def why_not(given: tuple[Field, ...], wanted: tuple[Field, ...]) -> str:
    """Why samples of the fields ``given`` do not go where ``wanted`` are taken; "" where they do."""
    if [f.name for f in given] != [f.name for f in wanted]:
        return f"samples must have the fields {listed(wanted)}; got {listed(given)}"
    for got, want in zip(given, wanted, strict=True):
        fits = len(got.shape) == len(want.shape) and all(
            b in (a, RAGGED) for a, b in zip(got.shape, want.shape, strict=True)
        )
        if not fits or _kind(got.dtype) != _kind(want.dtype):
            return f"samples must have the fields {listed(wanted)}; got {listed(given)}"
    return ""


def in_order(x: Fields, wanted: tuple[Field, ...]) -> Fields:
    """Named fields in the order of ``wanted``; others as they are."""
    if not x.names or set(x.names) != {f.name for f in wanted} or len(x.names) != len(wanted):
        return x
    by_name = dict(zip(x.names, x.tensors, strict=True))
    return Fields(tuple(by_name[f.name] for f in wanted), tuple(f.name for f in wanted))


def listed(fields: tuple[Field, ...]) -> str:
    """In words."""
    return "; ".join(map(str, fields)) if fields else "one tensor"


def varying(several: Iterator[tuple[Field, ...]]) -> tuple[Field, ...]:
    """What samples that were each looked at alone have in common: an axis on which they differ is ``RAGGED``."""
    found = next(several)
    for number, fields in enumerate(several, 1):
        same = [(f.name, len(f.shape), f.dtype) for f in fields] == [(f.name, len(f.shape), f.dtype) for f in found]
        if not same:
            raise ArgumentError(
                "data", f"sample {number} has the fields {listed(fields)}, those before it {listed(found)}"
            )
        found = tuple(
            Field(a.name, tuple(m if m == n else RAGGED for m, n in zip(a.shape, b.shape, strict=True)), a.dtype)
            for a, b in zip(found, fields, strict=True)
        )
    return found


def _kind(dtype: str) -> str:
    """What a dtype stands for: of floats and of whole numbers the width does not matter."""
    kind: torch.dtype = getattr(torch, dtype)
    return "bool" if kind is torch.bool else "float" if kind.is_floating_point else dtype if dtype == "uint8" else "int"


def pad(items: Sequence[tuple[Any, Any]], *, values: Mapping[str, float] | None = None, mask: str = "") -> Any:
    """A ``collate_fn`` for samples of different lengths: each field is filled at its end to the longest of the batch.

    Args:
        items: pairs (sample, label); a sample is a tensor, or a dict or tuple of them.
        values: what fields are filled with, by name; 0 where nothing is said. In order, names are "0", "1", ...
        mask: a field of this name is added, 1 where a sample has something and 0 where it was filled; of the length of
            the first field. Without one (and without one in the samples) a network sees what was filled in as if it
            were there.

    ``DataLoader(dataset, collate_fn=credro.data.pad)``, or
    ``functools.partial(credro.data.pad, values={"input_ids": 1}, mask="attention_mask")``.
    """
    samples = [sample for sample, _ in items]
    labels = torch.as_tensor(np.asarray([torch.as_tensor(label).numpy() for _, label in items]))
    if isinstance(samples[0], Mapping):
        rows = {str(k): [torch.as_tensor(s[k]) for s in samples] for k in samples[0]}
    else:
        several = samples[0] if isinstance(samples[0], tuple | list) else None
        parts = list(zip(*samples, strict=True)) if several is not None else [samples]
        rows = {str(i): [torch.as_tensor(v) for v in part] for i, part in enumerate(parts)}
    fill = dict(values or {})
    if unknown := [name for name in fill if name not in rows]:
        raise ArgumentError("values", f"values names {unknown[0]!r}, but the samples have {', '.join(rows)}")
    padded = {name: _padded(row, fill.get(name, 0)) for name, row in rows.items()}
    if mask:
        first = next(iter(rows.values()))
        padded[mask] = _padded([torch.ones(len(t), dtype=torch.long) for t in first], 0)
    if isinstance(samples[0], Mapping):
        return padded, labels
    ordered = tuple(padded.values())
    return (ordered if isinstance(samples[0], tuple | list) or mask else ordered[0]), labels


def _padded(rows: list[Tensor], value: float) -> Tensor:
    if rows[0].ndim == 0:
        return torch.stack(rows)
    sizes = [max(n) for n in zip(*(t.shape for t in rows), strict=True)]
    out = torch.full((len(rows), *sizes), value, dtype=functools.reduce(torch.promote_types, (t.dtype for t in rows)))
    for i, row in enumerate(rows):
        out[i][tuple(slice(n) for n in row.shape)] = row
    return out
