"""Features of a trunk, computed once: in order, in batches, with progress, and kept by content of trunk and data."""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro._records import RecordError
from credro.data.base import Data
from credro.nets.texts import TextTrunk
from credro.nets.trunk import AT_ONCE, Trunk
from credro.training.files import read_tensors, write_tensors

BATCH = 32 * AT_ONCE
SPARSE = 0.1
"""Features of n-grams, in rows of length 1, are divided by this for the heads: as they are they train slowly."""
EVERY = 5.0
"""Seconds between two words on how far it is."""


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
        if data.made_by != made:
            raise ArgumentError("data", f"{data.name!r} holds features of another trunk")
        return data
    check_kind(trunk, data)
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
    scaled = isinstance(trunk, TextTrunk) and trunk.scaled
    mean = (0.0,) * shape[0] if scaled else ()  # rare n-grams, divided by their deviation, would drown all others
    std = (SPARSE,) * len(mean)
    return replace(data, samples=features, shape=shape, mean=mean, std=std, prepared=False, origin=data, made_by=made)


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
    parts: list[Tensor] = []
    started = said = time.monotonic()
    texts = data.texts
    for start in range(0, len(data), BATCH):
        if isinstance(trunk, TextTrunk) and texts is not None:
            parts.append(trunk.of_texts(texts[start : start + BATCH]))
        else:
            parts.append(trunk.features(data.batch(torch.arange(start, min(start + BATCH, len(data))))))
        if not bool(parts[-1].isfinite().all()):
            bad = start + int((~parts[-1].isfinite()).any(1).nonzero()[0])
            raise ArgumentError("trunk", f"the trunk's features are NaN or infinite for sample {bad} of {data.name!r}")
        if progress and (now := time.monotonic()) - said >= EVERY:
            done = min(start + BATCH, len(data))
            left = (now - started) / done * (len(data) - done)
            print(f"features of {data.name}: {done:,} of {len(data):,} samples, {left:.0f} s left", file=sys.stderr)
            said = now
    return torch.cat(parts)
