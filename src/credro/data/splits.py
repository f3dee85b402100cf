"""Seeded divisions of a set in two: by class, by group, and the first n of a shuffle.

All give sample numbers, for ``Data.subset`` or any tensor. The first part is the one that ``fraction`` speaks of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.base import Data

Array = npt.NDArray[np.float64]


def split(data_or_labels: Data | Tensor, fraction: float, *, seed: int, stratify: bool = True) -> tuple[Tensor, Tensor]:
    """Two parts, sorted, the first of ``round(fraction * N)`` samples drawn at random.

    stratify: every class gives ``fraction`` of its samples, to within one; needs labels (N,) that are classes.
    """
    labels = data_or_labels.labels if isinstance(data_or_labels, Data) else torch.as_tensor(data_or_labels)
    n = len(labels)
    first = _checked_size(n, fraction)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator)
    if not stratify:
        return _parts(order[:first], n)
    if labels.ndim != 1 or labels.is_floating_point():
        got = f"got {labels.dtype} of shape {tuple(labels.shape)}; pass stratify=False"
        raise ArgumentError("labels", f"labels must be class numbers (N,) to stratify by, {got}")
    _, kind, counts = torch.unique(labels.cpu(), return_inverse=True, return_counts=True)
    take = _allot(counts.double() * fraction, first, generator)
    # Within its class, the place of each sample of the shuffle: those that come first are taken.
    by_class = order[kind[order].argsort(stable=True)]
    place = torch.arange(n) - (counts.cumsum(0) - counts).repeat_interleave(counts)
    return _parts(by_class[place < take.repeat_interleave(counts)], n)


def split_groups(
    groups: Tensor | Sequence[object], fraction: float, *, seed: int, labels: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Two parts, sorted, with no group in common: no patient, hospital or scanner on both sides.

    groups: (N,) numbers or names. Groups come in random order, and one joins the first part when that brings the
    part's size nearer to ``fraction``, which is met to within half the largest group. With ``labels`` (N,) class counts
    are brought near their fraction as well, by the best of 30 orders. Neither part is left empty.
    """
    _, member = np.unique(np.asarray(groups), return_inverse=True)
    n, number = len(member), int(member.max(initial=-1)) + 1
    _checked_size(n, fraction, may_round_to_nothing=True)
    if number < 2:
        got = f"got {number} in {n} samples"
        raise ArgumentError("groups", f"groups must hold at least 2 different groups to divide, {got}")
    columns = [np.bincount(member, minlength=number)]
    if labels is not None:
        if len(labels) != n:
            counts = f"got {len(labels)} for {n} samples"
            raise ArgumentError("labels", f"labels must have one entry per sample: {counts}")
        kinds, kind = np.unique(labels.cpu().numpy(), return_inverse=True)
        columns += [np.bincount(member[kind == k], minlength=number) for k in range(len(kinds))]
    sizes = np.stack(columns, 1).astype(float)  # (groups, 1 + classes)
    target = fraction * sizes.sum(0)

    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(number, generator=generator).tolist() for _ in range(1 if labels is None else 30)]
    chosen = min((_greedy(order, sizes, target) for order in orders), key=lambda c: _miss(sizes[c].sum(0), target))
    return _parts(torch.from_numpy(np.flatnonzero(chosen[member])), n)


def limit(n_total: int, n: int, seed: int) -> Tensor:
    """``n`` of ``n_total`` sample numbers: the first part of a seeded shuffle, so a smaller n gives a part of it."""
    if not 0 <= n <= n_total:
        raise ArgumentError("n", f"n must lie in 0..{n_total}, got {n}")
    return torch.randperm(n_total, generator=torch.Generator().manual_seed(seed))[:n]


def _greedy(order: list[int], sizes: Array, target: Array) -> npt.NDArray[np.bool_]:
    """Which groups to take, (groups,): in ``order``, every one that brings the sum of ``sizes`` nearer the target."""
    chosen = np.zeros(len(order), bool)
    have = np.zeros_like(target)
    for g in order:
        if _miss(have + sizes[g], target) < _miss(have, target):
            chosen[g] = True
            have += sizes[g]
    if chosen.all() or not chosen.any():
        smallest = min(order, key=lambda g: float(sizes[g, 0]))
        chosen[smallest] = not chosen[smallest]
    return chosen


def _miss(have: Array, target: Array) -> float:
    return float(np.square(have - target).sum())


def _checked_size(n: int, fraction: float, may_round_to_nothing: bool = False) -> int:
    if not 0 < fraction < 1:
        raise ArgumentError("fraction", f"fraction must lie in (0, 1), got {fraction}")
    if n == 0:
        raise ArgumentError("data", "nothing to split: the set is empty")
    first = round(fraction * n)
    if not may_round_to_nothing and not 0 < first < n:
        raise ArgumentError("fraction", f"fraction {fraction} of {n} samples leaves one side empty")
    return first


def _allot(quota: Tensor, total: int, generator: torch.Generator) -> Tensor:
    """Whole numbers that add up to ``total``, each within one of its quota: largest remainders, ties at random."""
    quota = quota.mul(2**20).round().div(2**20)  # 0.1 * 30 is 3, whatever floats say
    take = quota.floor().long()
    shuffled = torch.randperm(len(quota), generator=generator)
    by_remainder = shuffled[(quota - take)[shuffled].argsort(descending=True, stable=True)]
    take[by_remainder[: total - int(take.sum())]] += 1
    return take


def _parts(first: Tensor, n: int) -> tuple[Tensor, Tensor]:
    inside = torch.zeros(n, dtype=torch.bool)
    inside[first] = True
    return inside.nonzero()[:, 0], (~inside).nonzero()[:, 0]
