"""From data to batches on the training device: order, augmentation, normalisation, each from the member's streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro._records import Record
from credro.data.augment import AUGMENTATIONS, normalise
from credro.data.base import Data
from credro.data.fields import Batch, Field, Fields, as_fields
from credro.data.stats import channel_stats
from credro.training.balance import balanced_order
from credro.training.recipe import Recipe
from credro.training.streams import generator

AHEAD = 3  # batches read before they are needed, where samples come from files
T = TypeVar("T")


@dataclass(frozen=True)
class Inputs(Record):
    """How a stored sample becomes network input; kept with the run, so that prediction does the same.

    mean, std: one number per channel or feature, on samples scaled to [0, 1]; empty: samples go in as they are.
    whole: whole numbers, such as tokens, stay whole numbers, and do not become floats.
    fields: of samples of several tensors, which go in as they are, but for the width of floats.
    """

    shape: tuple[int, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    whole: bool = False
    fields: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        """A mean and a standard deviation for every channel or feature, or none."""
        if not self.mean and not self.std:
            return
        if not self.shape or (len(self.mean), len(self.std)) != (self.shape[0], self.shape[0]):
            raise ArgumentError(
                "mean",
                f"mean and std must have one entry per channel of {self.shape}, got {len(self.mean)}, {len(self.std)}",
            )

    @property
    def fills(self) -> bool:
        """Whether a missing value (NaN) is filled in: it is in a table, by the mean of its feature."""
        return bool(self.mean) and len(self.shape) == 1

    @classmethod
    def of(cls, data: Data) -> Inputs:
        """The set's customary normalisation, or that of its own samples; none for a user's prepared samples."""
        if data.fields or data.prepared:
            return cls.unchanged(data)
        mean, std = (data.mean, data.std) if data.mean else channel_stats(data)
        return cls(data.shape, tuple(mean), tuple(std))

    @classmethod
    def unchanged(cls, data: Data) -> Inputs:
        """Samples go in as floats (tokens as whole numbers), and otherwise as they are."""
        return cls(data.shape, whole=not data.fields and holds_whole_numbers(data), fields=data.fields)

    def __call__(self, x: Any) -> Any:
        """Stored samples (B, *shape) to floats. A missing value (NaN) of a table becomes the feature's mean."""
        if isinstance(x, Fields):
            return x.map(lambda t: t.to(torch.get_default_dtype()) if t.is_floating_point() else t)
        if not self.mean:
            if self.whole and not x.is_floating_point():
                return x
            return x.to(torch.get_default_dtype())  # NumPy's doubles would not meet the network's floats
        x = normalise(x if x.dtype == torch.uint8 else x.float(), self.mean, self.std)
        return x.nan_to_num_(0.0) if self.fills else x


def holds_whole_numbers(data: Data) -> bool:
    """Whether samples are whole numbers, such as tokens; bytes are pixels."""
    dtype = data.batch(torch.arange(min(1, len(data)))).dtype
    return not dtype.is_floating_point and dtype not in (torch.uint8, torch.bool)


def batches(count: int, size: int) -> list[slice]:
    """Slices of ``size`` over ``count`` samples; a last batch of a single one joins its neighbour.

    BatchNorm has no variance over a single sample.
    """
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] == 1:
        starts.pop()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


def layout(x: Any, recipe: Recipe) -> Any:
    """A batch as the recipe wants it in memory; only images (B, C, H, W) have a choice."""
    if isinstance(x, Fields):
        return x.map(lambda t: layout(t, recipe))
    return x.contiguous(memory_format=torch.channels_last) if recipe.channels_last and x.ndim == 4 else x


class Feed:
    """A member's training batches. Reading ``epoch(e)`` twice gives the same batches twice."""

    def __init__(self, data: Data, inputs: Inputs, recipe: Recipe, device: torch.device, member: int) -> None:
        """Samples held in memory are moved to the device once."""
        self.data, self.inputs, self.recipe, self.device, self.member = data, inputs, recipe, device, member
        self.augment = recipe.augment if callable(recipe.augment) else AUGMENTATIONS[recipe.augment]
        self.slices = batches(len(data), recipe.batch_size)
        self.labels = data.labels.to(device)
        self.samples = data.samples.to(device) if isinstance(data.samples, Tensor | Fields) else None
        self.views = 1 if data.views is None else data.views.shape[1]
        if data.views is not None:
            self.samples = data.views.to(device).flatten(0, 1)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.slices)

    def order(self, epoch: int) -> Tensor:
        """The order (N,) of the samples in this epoch; with a balanced sampler some occur often and others not."""
        draws = generator(self.recipe.seed, self.member, "order", epoch)
        if self.recipe.sampler == "balanced":
            return balanced_order(self.data.labels, draws)
        return torch.randperm(len(self.data), generator=draws)

    def rows(self, epoch: int) -> Tensor:
        """Where in ``samples`` each sample (N,) is found in this epoch: of several views of it, one is drawn."""
        every = torch.arange(len(self.data))
        if self.views == 1:
            return every
        draws = generator(self.recipe.seed, self.member, "view", epoch)
        return every * self.views + torch.randint(self.views, (len(every),), generator=draws)

    def epoch(self, epoch: int) -> Iterator[tuple[Any, Tensor]]:
        """Pairs of network input (B, *shape), or ``Fields``, and target (B, ...)."""
        order = self.order(epoch)
        draws = generator(self.recipe.seed, self.member, "augment", epoch)
        for index, x in self._raw([order[s] for s in self.slices], self.rows(epoch)):
            given = self.inputs(augmented(self.augment, x, draws))
            yield layout(given, self.recipe), self.labels[index.to(self.device)]

    def _raw(self, indices: list[Tensor], rows: Tensor) -> Iterator[tuple[Tensor, Any]]:
        if self.samples is not None:
            for index in indices:
                where = rows[index].to(self.device)
                whole = self.samples
                # index_select is three times as fast as []
                yield index, whole.index_select(0, where) if isinstance(whole, Tensor) else whole[where]
        else:
            yield from zip(indices, read_ahead(self.data.batch, indices, self.device), strict=True)


def augmented(augment: Callable[..., Any], x: Batch, draws: torch.Generator) -> Batch:
    """What an augmentation makes of a batch; a user's own gets fields as the dict or tuple they were."""
    if isinstance(x, Fields):
        return as_fields(augment(x.value, draws), "augment")
    changed: Tensor = augment(x, draws)
    return changed


def read_ahead(read: Callable[[Tensor], Any], indices: list[Tensor], device: torch.device) -> Iterator[Any]:
    """``read`` of each index in order, with a few batches read in the background."""
    with ThreadPoolExecutor(AHEAD) as pool:
        waiting: list[Future[Any]] = []
        for index in indices:
            waiting.append(pool.submit(read, index))
            if len(waiting) > AHEAD:
                yield waiting.pop(0).result().to(device)
        while waiting:
            yield waiting.pop(0).result().to(device)
