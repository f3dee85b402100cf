"""Upper and lower entropy of boxes, exactly. docs/exactness.md has the proofs.

Inside, classes come first and samples (or search nodes) last, ``(C, K)``: sums over classes then run along whole rows
of samples, which is several times faster on small C than the other way round.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import torch
from torch import Tensor

from credro.credal.bounds import TINY, reachable
from credro.credal.ties import Ties

TOL = 1e-12
"""A node whose lower bound is within this of the best value found (nats) cannot improve it beyond rounding."""
SLACK = 1e-13
"""By how much a sum may miss 1 through rounding alone."""
FRONTIER = 1 << 20
"""How many numbers the search nodes that are looked at together may hold in one tensor."""

LOOK_FOR_TIES = 20_000
"""After so many nodes a sample that is still open gets a better value, and a bound, from ``Ties``: boxes without ties
are mostly done by then, and it would cost them more than it saves (docs/exactness.md)."""


def f(p: Tensor) -> Tensor:
    """``-p log p`` with 0 at 0."""
    return p.clamp_min(TINY).log().mul_(p).neg_()


def box_upper(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Largest entropy (K,) and its distribution (C, K) in the boxes ``lower``, ``upper`` (C, K).

    Water-filling: the maximiser is ``clip(level, lower, upper)`` with the level at which the sum is 1. The sum is
    piecewise linear in the level with break points at the 2C bounds: sort them, find the piece, solve it.
    """
    points, order = torch.cat([lower, upper]).sort(0)
    # One more class rises with the level above its lower bound, one less above its upper bound.
    rising = torch.where(order < len(lower), 1.0, -1.0).to(lower.dtype).cumsum(0)
    total = lower.sum(0) + torch.cat([torch.zeros_like(points[:1]), (rising[:-1] * points.diff(dim=0)).cumsum(0)])
    piece = ((total <= 1).sum(0) - 1).clamp_(0, len(points) - 2).unsqueeze(0)
    start, end = points.gather(0, piece), points.gather(0, piece + 1)
    level = (start + (1 - total.gather(0, piece)) / rising.gather(0, piece).clamp_min(1)).clamp_(start, end)
    # Which classes are free is known now: solve their common level once more, without the running sums' rounding.
    p = torch.minimum(torch.maximum(level, lower), upper)
    free = (lower <= start) & (upper >= end)
    count = free.sum(0, keepdim=True)
    missing = (1 - p.sum(0, keepdim=True)) / count.clamp_min(1)
    p = torch.where(free, p + missing, p)
    p = torch.minimum(torch.maximum(p, lower), upper)
    return f(p).sum(0), p


class LowerEntropy(NamedTuple):
    """Result of the search for the smallest entropy. K samples, C classes."""

    value: Tensor  # (K,) nats
    distribution: Tensor  # (C, K)
    gap: Tensor  # (K,) how far below ``value`` the minimum might still be: 0 unless the budget ran out
    nodes: Tensor  # (K,) search nodes looked at


class _Nodes(NamedTuple):
    """Sub-boxes still to be looked at."""

    owner: Tensor  # (K,) number of the sample
    lower: Tensor  # (C, K)
    upper: Tensor  # (C, K)
    bound: Tensor  # (K,) no point of the sub-box has a smaller entropy

    def at(self, index: Tensor) -> _Nodes:
        lower, upper = self.lower.index_select(1, index), self.upper.index_select(1, index)
        return _Nodes(self.owner[index], lower, upper, self.bound[index])


def box_lower(lower: Tensor, upper: Tensor, max_nodes: int, until: float = math.inf) -> LowerEntropy:
    """Smallest entropy in the boxes ``lower``, ``upper`` (C, K), by branch and bound over all samples at once.

    Bound: on ``[l_k, u_k]`` the chord of ``-p log p`` lies below it, and the best fill of the chords is a fractional
    knapsack (``_relax``). Branch: split the one class left between its bounds at its value. Prune twice: by the bound,
    and by order (``_children``): if class i has both bounds at least as high as class j's, some minimiser has i at its
    upper or j at its lower bound.
    max_nodes: per sample; a sample that needs more keeps its best value and reports the gap that is left. until: when,
    by ``time.monotonic()``, all samples still open are left so.
    """
    samples = lower.shape[1]
    frontier = max(1, FRONTIER // len(lower))
    lower, upper = reachable(lower, upper, dim=0)  # narrower intervals have better chords
    best = torch.full((samples,), torch.inf, dtype=lower.dtype, device=lower.device)
    where = torch.empty_like(lower)
    floor = torch.full_like(best, torch.inf)  # the smallest bound of the nodes given up
    used = torch.zeros(samples, dtype=torch.long, device=lower.device)
    proved = torch.full_like(best, -torch.inf)  # a bound for the whole box from subset sums
    looked = torch.zeros_like(used, dtype=torch.bool)
    waiting = [_Nodes(torch.arange(samples, device=lower.device), lower, upper, torch.full_like(best, -torch.inf))]
    while waiting:
        nodes = waiting.pop()
        if len(nodes.owner) > frontier:  # depth first in slices, so that memory stays bounded
            order = nodes.bound.argsort()
            waiting.append(nodes.at(order[frontier:]))
            nodes = nodes.at(order[:frontier])
        found = _relax(nodes.lower, nodes.upper)
        # A sample's whole box is never empty, whatever its rounding.
        found = found._replace(feasible=found.feasible | nodes.bound.isneginf())
        used.index_add_(0, nodes.owner, torch.ones_like(nodes.owner))
        _keep_best(best, where, nodes, found)
        bound = torch.maximum(torch.maximum(found.bound, nodes.bound), proved[nodes.owner])
        open_ = found.feasible & (bound < best[nodes.owner] - TOL)
        long = nodes.owner[open_ & (used[nodes.owner] >= LOOK_FOR_TIES) & ~looked[nodes.owner]]
        for n in sorted(set(long.tolist())):
            if time.monotonic() < until:
                ties = Ties(lower[:, n], upper[:, n], best[n], where[:, n])
                proved[n] = ties.bound()
                best[n], where[:, n], looked[n] = ties.value, ties.point, True
        if len(long):
            bound = torch.maximum(bound, proved[nodes.owner])
            open_ &= bound < best[nodes.owner] - TOL
        spent = open_ & (used[nodes.owner] >= max_nodes)
        if time.monotonic() >= until:
            spent = open_
        if spent.any():
            floor.scatter_reduce_(0, nodes.owner[spent], bound[spent], "amin")
            open_ &= ~spent
        if bool(open_.any()):
            waiting.append(_children(nodes, found, bound.where(open_, torch.inf), best, lower, upper))
    gap = (best - floor).clamp_min(0)
    return LowerEntropy(best, where, gap.where(gap > TOL, 0.0), used)


class _Relaxed(NamedTuple):
    """The best fill of the chords of K nodes."""

    value: Tensor  # (K,) entropy at the filled point
    bound: Tensor  # (K,) no point of the sub-box has a smaller entropy; infinite if the filled point is the best
    cut: Tensor  # (K,) the class that was filled in part
    at: Tensor  # (K,) and its value
    price: Tensor  # (K,) and its chord's slope
    feasible: Tensor  # (K,) whether the sub-box has any point at all
    slope: Tensor  # (C, K) of the chords; huge where an interval has no width
    order: Tensor  # (C, K) in which the classes are filled
    fill: Tensor  # (C, K) what each class in that order got above its lower bound

    def chosen(self, index: Tensor) -> _Relaxed:
        """Some of the nodes."""
        return _Relaxed(*(x.index_select(-1, index) for x in self))

    def point(self, lower: Tensor, index: Tensor) -> Tensor:
        """The filled points (C, n) of some of the nodes."""
        if len(index) == self.fill.shape[1]:
            return lower.scatter_add(0, self.order, self.fill)
        fill = self.fill.index_select(1, index)
        return lower.index_select(1, index).scatter_add_(0, self.order.index_select(1, index), fill)


def _relax(lower: Tensor, upper: Tensor) -> _Relaxed:
    """Fill the classes in the order of their chords' slopes. lower, upper: (C, K)."""
    width = upper - lower
    at_lower = f(lower)
    slopes = f(upper).sub_(at_lower).div_(width).masked_fill_(width <= 0, 1e300)
    slope, order = slopes.sort(0)
    width = width.gather(0, order)
    before = width.cumsum(0).sub_(width)
    rest = 1 - lower.sum(0)
    feasible = (rest >= -SLACK) & (before[-1] + width[-1] >= rest - SLACK)
    fill = torch.minimum(torch.sub(rest, before, out=before).clamp_min_(0), width)
    bound = at_lower.sum(0) + (slope * fill).sum(0)
    # The last class that gets anything is the only one that can be strictly between its bounds.
    last = ((fill > 0).sum(0, keepdim=True) - 1).clamp_min_(0)
    k, price = order.gather(0, last), slope.gather(0, last)
    start, added = lower.gather(0, k), fill.gather(0, last)
    at = start + added
    chord = at_lower.gather(0, k) + price * added
    partly = (at > start) & (at < upper.gather(0, k))
    excess = torch.where(partly, (f(at) - chord).clamp_min_(0), 0.0).squeeze(0)
    exact = excess <= 0
    cut = (k.squeeze(0), at.squeeze(0), price.squeeze(0))
    return _Relaxed(bound + excess, bound.masked_fill(exact, torch.inf), *cut, feasible, slopes, order, fill)


def _children(nodes: _Nodes, found: _Relaxed, bound: Tensor, best: Tensor, lower: Tensor, upper: Tensor) -> _Nodes:
    """Those halves of each node, cut at the class filled in part, that may hold something better than ``best``.

    bound: (K,) of the nodes, infinite for those that need no halves. lower, upper: (C, samples), the original bounds.
    Left, ``p_k <= value``: class k is below its upper bound, so every class that it dominates is at its lower bound.
    Right, ``p_k >= value``: class k is above its lower bound, so every class that dominates it is at its upper bound.
    """
    if (open_ := bound.isfinite()).count_nonzero() * 2 < len(bound):  # carrying a few along costs less than choosing
        index = open_.nonzero().squeeze(1)
        nodes, bound, found = nodes.at(index), bound[index], found.chosen(index)
    whole = len(nodes.owner) == lower.shape[1] and nodes.lower is lower
    low, high = (lower, upper) if whole else (lower.index_select(1, nodes.owner), upper.index_select(1, nodes.owner))
    k, value, price = found.cut[None], found.at[None], found.price[None]
    low_k, high_k = low.gather(0, k), high.gather(0, k)
    below, above = (low <= low_k) & (high <= high_k), (low >= low_k) & (high >= high_k)
    same = below & above
    if int(same.count_nonzero()) > len(bound):  # of equal intervals the first dominates
        after = torch.arange(len(lower), device=k.device)[:, None] > k
        below, above = below & (~same | after), above & (~same | ~after)
    left_upper = torch.where(below, low, nodes.upper).scatter_(0, k, value)
    right_lower = torch.where(above, high, nodes.lower).scatter_(0, k, value)
    # A class that an earlier cut holds on the other side contradicts that: no minimiser is lost with such a child.
    left = (left_upper.sum(0) >= 1 - SLACK) & (left_upper >= nodes.lower).all(0)
    right = (right_lower.sum(0) <= 1 + SLACK) & (right_lower <= nodes.upper).all(0)
    # Lagrangian bounds of the halves from the node's own slopes, before anything is sorted again. Left: what class k
    # loses above ``value`` goes at best to the next class, or stays with k along its steeper chord. Right: class k can
    # only grow at the cost of the last class filled before it.
    start, end, at = nodes.lower.gather(0, k), nodes.upper.gather(0, k), f(value)
    rise, fall = (at - f(start)) / (value - start), (f(end) - at) / (end - value)
    following = found.slope.masked_fill(below | (found.slope < price), torch.inf).scatter_(0, k, rise).amin(0)
    previous = found.slope.masked_fill(above | (found.slope > price), -torch.inf).scatter_(0, k, -torch.inf).amax(0)
    left_bound = found.bound + ((value - start).squeeze(0) * (following - found.price))
    right_bound = found.value + ((end - value).squeeze(0) * (fall.squeeze(0) - previous)).clamp_max_(0)
    limit = best[nodes.owner] - TOL
    halves = []
    for child, possible, child_bound in (
        (nodes._replace(upper=left_upper), left, left_bound),
        (nodes._replace(lower=right_lower), right, right_bound),
    ):
        child_bound = torch.maximum(child_bound, bound)
        halves.append(child._replace(bound=child_bound).at((possible & (child_bound < limit)).nonzero().squeeze(1)))
    return _Nodes(*(torch.cat(both, -1) for both in zip(*halves, strict=True)))


def _keep_best(best: Tensor, where: Tensor, nodes: _Nodes, found: _Relaxed) -> None:
    """Write each sample's smallest value and its point into ``best`` (K,) and ``where`` (C, K)."""
    better = (found.feasible & (found.value < best[nodes.owner])).nonzero().squeeze(1)
    if not len(better):
        return
    owner, value = nodes.owner[better], found.value[better]
    best.scatter_reduce_(0, owner, value, "amin")
    winner = better[value == best[owner]]
    where[:, nodes.owner[winner]] = found.point(nodes.lower, winner)
