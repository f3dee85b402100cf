"""What ``predict`` takes: tensors, arrays, data frames, datasets, loaders, files and images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, arange
from torch.utils.data import DataLoader

from credro._names import ArgumentError
from credro.data.adapt import as_data, as_tensor
from credro.data.base import Data
from credro.data.datasets import LABEL_KEYS
from credro.data.fields import Field, Fields, as_fields, in_order, is_several, split, why_not
from credro.training.feed import batches

Samples = Any
"""A tensor or array of samples, a data frame, a ``Data``, a torch ``Dataset`` or a ``DataLoader``."""


def is_image(x: Samples) -> bool:
    """Whether ``x`` is one of Pillow's images, without importing Pillow."""
    return type(x).__module__.partition(".")[0] == "PIL"


def are_files(x: Samples) -> bool:
    """Whether ``x`` names files, or is one of Pillow's images or a list of them."""
    first = x[0] if isinstance(x, list | tuple) and x else x
    return isinstance(first, str | Path) or is_image(first)


def sample_names(x: Samples) -> tuple[Any, ...]:
    """Files of samples that come from files, row labels of a data frame; nothing where samples have numbers only."""
    if isinstance(x, Data):
        return tuple(map(str, x.paths))
    return tuple(x.index.tolist()) if hasattr(x, "columns") and hasattr(x, "index") else ()


def in_batches(x: Samples, size: int, shape: tuple[int, ...], fields: tuple[Field, ...] = ()) -> Iterator[Any]:
    """Samples as they are stored, (B, ...) at a time. shape: of one sample, to tell one from a batch of them.

    fields: of samples of several tensors; what comes then is checked to have them.
    """
    if fields:
        for batch in _batches_of_fields(x, size, fields):
            known = in_order(batch, fields)
            if unlike := why_not(known.described(), fields):
                raise ArgumentError("x", unlike)
            yield known
        return
    if isinstance(x, tuple):
        x = as_data(x)
    elif _holds_numbers(x):
        x = as_tensor(x, "x")
    if isinstance(x, Tensor):
        if tuple(x.shape) == shape:
            raise ArgumentError("x", f"x is one sample, of shape {shape}: give a batch of them, x[None]")
        yield from split(x, size) if len(x) else ()
    elif isinstance(x, Data):
        for part in batches(len(x), size):
            yield x.batch(arange(part.start, part.stop))
    else:  # anybody's dataset: with or without labels, and read once only
        for item in x if isinstance(x, DataLoader) else DataLoader(x, batch_size=size):
            yield item[0] if isinstance(item, list | tuple) else item


def _batches_of_fields(x: Samples, size: int, fields: tuple[Field, ...]) -> Iterator[Fields]:
    """The same for samples of several tensors: a dict, a tuple, or what gives them, with labels or without."""
    if isinstance(x, Mapping | Fields) or _in_order(x, fields):
        yield from (part for part in split(as_fields(x), size) if isinstance(part, Fields))
        return
    if isinstance(x, tuple):
        x = as_data(x)
    if isinstance(x, Data):
        every = (x.batch(arange(part.start, part.stop)) for part in batches(len(x), size))
    else:
        every = (item for item in (x if isinstance(x, DataLoader) else DataLoader(x, batch_size=size)))
    for item in every:
        several = item if isinstance(item, Mapping | Fields) or _in_order(item, fields) else None
        if several is None and isinstance(item, list | tuple) and item:
            several = item[0] if is_several(item[0]) else (item[0],)  # a sample and its label
        if several is None:
            raise ArgumentError("x", f"x must give samples of {len(fields)} tensors, got {type(item).__name__}")
        if isinstance(several, Mapping):
            known = {f.name for f in fields}
            several = {k: v for k, v in several.items() if k in known or k not in LABEL_KEYS}
        yield as_fields(several)


def _in_order(x: Any, fields: tuple[Field, ...]) -> bool:
    """Whether ``x`` is one batch of fields without names, and not a pair of those and labels."""
    return isinstance(x, tuple | list) and not fields[0].name and len(x) == len(fields) > 1 and is_several(x)


def _holds_numbers(x: Samples) -> bool:
    """Whether ``x`` is an array, a data frame or a list of samples, and not a dataset of (sample, label) pairs."""
    if isinstance(x, Tensor | Data) or not isinstance(x, list):
        return hasattr(x, "__array__")
    try:
        return bool(x) and np.asarray(x[0]).dtype.kind in "fiub"
    except ValueError:  # a sample and its label have no common shape
        return False
