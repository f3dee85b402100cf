"""Anybody's torch datasets and loaders: how their samples and labels are read, and put together to batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    default_collate,
)

from credro._names import ArgumentError
from credro.data.fields import Batch, Fields, as_fields, is_several

LABEL_KEYS = ("labels", "label")
"""Where a sample that is a dict holds its label."""


@dataclass(frozen=True, eq=False)
class Collated:
    """Samples of anybody's dataset, put together by its loader's collate function."""

    dataset: Any
    collate: Callable[[list[Any]], Any]
    several: bool = False  # a single tensor that varies in length counts as fields, of which there is one

    @property
    def alone(self) -> bool:
        """Whether a sample looks otherwise beside a longer one."""
        return self.several and self.collate is not default_collate

    def __call__(self, i: Tensor) -> Batch:
        """The samples at ``i``."""
        found = self.collate([self.dataset[n] for n in i.tolist()])[0]
        if is_several(found):
            return as_fields(found, "a sample's field")
        tensor = torch.as_tensor(found)
        return Fields((tensor,)) if self.several else tensor


@dataclass(frozen=True, eq=False)
class Labelled:
    """A dataset of dicts that hold their label, as Hugging Face's do, as pairs (the rest, label)."""

    source: Any
    key: str

    def __len__(self) -> int:
        """As many as the source has."""
        return len(self.source)

    def __getitem__(self, i: int) -> tuple[dict[str, Any], Any]:
        """Sample i without its label, and that."""
        item = dict(self.source[i])
        return item, item.pop(self.key)


def reader_of(source: Any, collate: Callable[[list[Any]], Any]) -> Collated:
    """How samples are read: several tensors, or one whose length varies from sample to sample, or one."""
    read = Collated(source, collate)
    try:
        one = read(torch.tensor([0]))
        read(torch.arange(min(2, len(source))))
    except (RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            "data", f"the samples of {type(source).__name__} cannot be put together to a batch ({error}): samples of "
            f"different lengths need a DataLoader whose collate_fn pads them, such as credro.data.pad",
        ) from error  # fmt: skip
    if isinstance(one, Fields):
        return replace(read, several=True)
    if collate is default_collate:
        return read
    sizes = {tuple(read(torch.tensor([i])).shape[1:]) for i in range(len(source))}  # type: ignore[union-attr]
    return replace(read, several=len(sizes) > 1)


def part_of(loader: DataLoader[Any]) -> Tensor | None:
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


def labels_of(source: Any) -> Tensor | list[str]:
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
    if isinstance(source[0][1], str) and all(isinstance(source[i][1], str) for i in range(n)):
        return [source[i][1] for i in range(n)]
    return torch.stack([_label(source, i) for i in range(n)])


def _label(source: Any, i: int) -> Tensor:
    label = source[i][1]
    try:
        return torch.as_tensor(label)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"labels must be numbers or tensors, or all names; that of item {i} of {type(source).__name__} is {label!r}"
        ) from error
