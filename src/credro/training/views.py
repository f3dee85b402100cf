"""Several views of each sample: the features of the plain one and of augmented ones, computed once.

A member draws one of them per sample and epoch. Everything else, predictions and held-out data, sees the plain one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.augment import AUGMENTATIONS, Augmentation
from credro.data.base import Data, changed_keys
from credro.nets.tail import Front
from credro.nets.trunk import Trunk
from credro.training.features import say_size, with_features
from credro.training.streams import generator

SEED = 0
"""Of the augmentation: a sample's views depend on its number and on nothing else, so they are computed once."""


def with_views(
    trunk: Trunk, data: Data, views: int, augment: str | Augmentation, *, progress: bool = False, cache: bool = True
) -> Data:
    """Features of ``data`` with so many ``views`` of each sample (``Data.views``); see ``with_features``.

    Each view is kept by its content, so that a function that was changed is not answered by what another one made.
    """
    if views == 1:
        return without_views(with_features(trunk, data, progress=progress, cache=cache))
    if isinstance(trunk, Front) and trunk.empty:
        raise ArgumentError(
            "views", "views are computed by the frozen part of a trunk, and here none is frozen: every member trains "
            "in a copy of the whole. Augment while training: credro.Recipe(augment=...)"
        )  # fmt: skip
    if data.origin is not None:
        if data.views is None or data.views.shape[1] != views:
            raise ArgumentError("data", f"{data.name!r} holds features without {views} views: give the samples")
        return with_features(trunk, data)
    if isinstance(augment, str) and len(data.shape) != 3:
        raise ArgumentError(
            "augment", f"augment={augment!r} needs images (C, H, W), the samples have shape {data.shape}"
        )
    seen = [data] + [replace(data, samples=Augmented(data, augment, view)) for view in range(1, views)]
    found = [with_features(trunk, one, progress=progress, cache=cache) for one in seen]
    say_size(data.name, views * len(data), found[0].shape)
    every = torch.stack([one.batch(torch.arange(len(one))) for one in found], 1)
    key = hashlib.sha256(" ".join(one.fingerprint() for one in found).encode()).hexdigest()[:16]
    return replace(found[0], samples=every[:, 0], views=every, made_by=f"{trunk.digest} {key}")


def without_views(data: Data) -> Data:
    """The plain samples alone."""
    return data if data.views is None else replace(data, views=None, made_by=data.made_by.partition(" ")[0])


@dataclass(frozen=True, eq=False)
class Augmented:
    """Reads an augmented view of each sample of ``data``."""

    data: Data
    augment: str | Augmentation
    view: int

    def __call__(self, index: Tensor) -> Tensor:
        """Sample numbers (B,) to samples (B, *shape), each by a generator of its own."""
        change = self.augment if callable(self.augment) else AUGMENTATIONS[self.augment]
        plain = self.data.batch(index)
        out = [
            change(x, generator(SEED, "view", self.view, i))
            for x, i in zip(torch.split(plain, 1), index.tolist(), strict=True)
        ]
        for x in out:
            if not isinstance(x, Tensor) or (x.shape, x.dtype) != (plain[:1].shape, plain.dtype):
                got = (x.dtype, tuple(x.shape)) if isinstance(x, Tensor) else type(x).__name__
                wanted = (plain.dtype, tuple(plain[:1].shape))
                raise ArgumentError("augment", f"augment must give a batch like the one it gets, {wanted}, got {got}")
        return torch.cat(out)

    def sample_keys(self, index: Tensor) -> list[bytes] | None:
        """What decides each view without reading it; None where a function of the user's own does."""
        if callable(self.augment) or not callable(self.data.samples):
            return None
        return changed_keys(self.data.samples, index, [(self.augment, SEED, self.view, i) for i in index.tolist()])
