"""Choosing some of a prediction's samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def index_of(index: Any, count: int) -> Tensor:
    """The sample numbers (B,) that a subscript stands for: a number, a slice, a mask (N,) or numbers (B,)."""
    if isinstance(index, slice):
        return torch.tensor(range(count)[index], dtype=torch.long)
    at = index.detach().cpu() if isinstance(index, Tensor) else torch.from_numpy(np.array(index))
    if at.numel() == 0 and at.dtype != torch.bool:
        return torch.arange(0)
    if at.ndim == 0 and at.dtype != torch.bool:
        at = at[None]
    if at.dtype == torch.bool:
        if tuple(at.shape) != (count,):
            raise IndexError(f"a mask must have one entry for each of {count} samples, got shape {tuple(at.shape)}")
        return at.nonzero()[:, 0]
    if at.ndim != 1 or at.is_floating_point() or at.is_complex():
        raise IndexError(f"samples are chosen by numbers, a slice or a mask, got {at.dtype} of shape {tuple(at.shape)}")
    at = at.long()
    if bool(((at < -count) | (at >= count)).any()):
        bad = at[(at < -count) | (at >= count)][0]
        raise IndexError(f"sample {int(bad)} is out of range: there are {count}, numbered from 0")
    return torch.where(at < 0, at + count, at)


def pick(values: Tensor, at: Tensor, axis: int = 0) -> Tensor:
    """Entries ``at`` (B,) along ``axis``."""
    return values.index_select(axis, at.to(values.device))


def sample_names(samples: tuple[Any, ...], at: Tensor) -> tuple[Any, ...]:
    """Names of the chosen samples; of those without names, their numbers."""
    return tuple(samples[i] for i in at.tolist()) if samples else tuple(at.tolist())


def carry(whole: object, part: object, at: Tensor, names: Iterable[str]) -> None:
    """Give ``part`` what ``whole`` has computed already, of the chosen samples."""
    for name in names:
        if name in vars(whole):
            vars(part)[name] = pick(vars(whole)[name], at)
