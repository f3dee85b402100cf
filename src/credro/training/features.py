"""Features of a trunk, computed once: in order, in batches, with progress, and kept by content of trunk and data."""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro._records import RecordError
from credro.data.base import Data
from credro.nets.tail import Front
from credro.nets.texts import TextTrunk
from credro.nets.trunk import AT_ONCE, Trunk
from credro.training.files import read_tensors, write_tensors

BATCH = 32 * AT_ONCE
SPARSE = 0.1
"""Features of n-grams, in rows of length 1, are divided by this for the heads: as they are they train slowly."""
EVERY = 5.0
"""Seconds between two words on how far it is."""
LARGE = 1e9
"""Bytes from which it is said beforehand how large the features are."""


def cache_folder() -> Path:
    """Where features are kept: CREDRO_CACHE, else the user's cache folder."""
    given = os.environ.get("CREDRO_CACHE")
    root = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "credro"
    return root / "features"


def with_features(trunk: Trunk, data: Data, *, progress: bool = False, cache: bool = True) -> Data:
    """The same samples as their features (N, F), which know what they were computed from (``Data.origin``).

    cache: keep them on disk, where samples repeat; a file that is damaged is said and made anew.
    """
    made = trunk.digest
    if data.origin is not None:
        if data.made_by.partition(" ")[0] != made:
            raise ArgumentError("data", f"{data.name!r} holds features of another trunk")
        return data
    check_kind(trunk, data)
    if isinstance(trunk, Front) and trunk.empty:  # nothing that is worth keeping
        prepared = Prepared(trunk, data)
        shape = tuple(prepared(torch.arange(min(1, len(data)))).shape[1:])
        return replace(data, samples=prepared, shape=shape, mean=(), std=(), prepared=True, origin=data, made_by=made)
    path = cache_folder() / f"{data.fingerprint()}-{made[:16]}.safetensors" if cache and data.repeats() else None
    features = _kept(path) if path is not None else None
    if features is None:
        features = _computed(trunk, data, progress)
        if path is not None:
            try:
                write_tensors(path, {"features": features})
            except OSError as error:  # they are here; only the next call will take as long
                warnings.warn(f"the features could not be kept for another time: {error}", stacklevel=3)
    shape = tuple(features.shape[1:])
    plain = replace(data, samples=features, shape=shape, fields=(), mean=(), std=(), origin=data, made_by=made)
    if (
        isinstance(trunk, TextTrunk) and trunk.scaled
    ):  # rare n-grams, divided by their deviation, would drown all others
        plain = replace(plain, mean=(0.0,) * shape[0], std=(SPARSE,) * shape[0])
    return replace(plain, prepared=isinstance(trunk, Front))  # the layers that follow want a map as it is


@dataclass(frozen=True, eq=False)
class Prepared:
    """Reads samples as a trunk's preprocessing leaves them."""

    trunk: Trunk
    data: Data

    def __call__(self, index: Tensor) -> Tensor:
        """Sample numbers (B,) to what the backbone takes (B, ...)."""
        return self.trunk.preprocessing(self.data.batch(index))


def say_size(name: str, samples: int, shape: tuple[int, ...]) -> None:
    """Say how much memory features take, where it is much."""
    if (size := 4.0 * samples * prod(shape)) > LARGE:
        warnings.warn(
            f"the features of {name!r}, {samples:,} of shape {shape}, take {size / 1e9:.1f} GB of memory, and as much "
            f"on disk; later layers, smaller images or fewer samples take less",
            stacklevel=4,
        )


def check_kind(trunk: Trunk, data: Data) -> None:
    """Refuse texts for a trunk that takes none, and anything else for one that takes texts."""
    if trunk.takes_texts and data.texts is None:
        column = "credro.data.load(path, text='column') reads the texts of a table"
        raise ArgumentError(
            "trunk", f"trunk takes texts, and {data.name!r} has samples of shape {data.shape}: {column}"
        )
    if data.texts is not None and not trunk.takes_texts:
        raise ArgumentError(
            "trunk", f"trunk takes numbers, and {data.name!r} holds texts: take 'tfidf', 'wordllama' or a folder of "
            f"transformers with a tokenizer",
        )  # fmt: skip


def _kept(path: Path) -> Tensor | None:
    if not path.exists():
        return None
    try:
        return read_tensors(path)[0]["features"]
    except (RecordError, KeyError) as error:
        warnings.warn(f"features that were kept are damaged and are computed anew: {error}", stacklevel=4)
        return None


def _computed(trunk: Trunk, data: Data, progress: bool) -> Tensor:
    out: Tensor | None = None  # filled in place: maps are too large to hold twice
    started = said = time.monotonic()
    texts = data.texts
    for start in range(0, len(data), BATCH):
        index = torch.arange(start, min(start + BATCH, len(data)))
        if isinstance(trunk, TextTrunk) and texts is not None:
            part = trunk.of_texts(texts[start : start + BATCH])
        else:
            part = trunk.features(data.batch(index))
        if not bool(part.isfinite().all()):
            bad = start + int((~part.isfinite()).flatten(1).any(1).nonzero()[0])
            raise ArgumentError("trunk", f"the trunk's features are NaN or infinite for sample {bad} of {data.name!r}")
        if out is None:
            say_size(data.name, len(data), tuple(part.shape[1:]))
            out = torch.empty(len(data), *part.shape[1:])
        out[start : start + len(part)] = part
        if progress and (now := time.monotonic()) - said >= EVERY:
            done = min(start + BATCH, len(data))
            left = (now - started) / done * (len(data) - done)
            print(f"features of {data.name}: {done:,} of {len(data):,} samples, {left:.0f} s left", file=sys.stderr)
            said = now
    if out is None:
        raise ArgumentError("data", f"{data.name!r} has no samples")
    return out
