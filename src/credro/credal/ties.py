"""Lower entropy of one box whose chords (nearly) tie: subset sums in place of a search node by node.

At a price ``lam`` of mass every corner of the box has the entropy ``L + sum of the costs of its classes``. A class at
the bound that it prefers costs nothing, at the other bound ``|d_j|``, ``d_j = (s_j - lam) w_j``; the one class k
strictly between its bounds costs ``g_k(r) - min(0, d_k)``, concave in its fill r. Once a value within e of L is known,
only classes with ``|d_j| <= e``, the *core*, can be at the bound they do not prefer (docs/exactness.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from credro.credal.bounds import TINY
from credro.credal.subsets import event_sums

SLACK = 1e-13
"""By how much a sum may miss through rounding alone: a subset that fits exactly must not be missed for it."""
FEW = 12
"""Classes whose 2^n states are all tried."""
EXACT = 24
"""Largest core whose subset sums prove a bound, by two halves of 2^(n/2)."""
MANY = 30
"""Classes among which a subset is looked for where the core is larger."""


class Ties:
    """One box, ``lower`` and ``upper`` (C,), at the price of its best chord fill, and the best corner known."""

    def __init__(self, lower: Tensor, upper: Tensor, value: Tensor, point: Tensor) -> None:
        """``value``, ``point`` (C,): the smallest entropy found so far, and where."""
        self.lower, self.width = lower, upper - lower
        self.value, self.point = float(value), point
        rise = _f(upper) - _f(lower)
        slope = (rise / self.width).masked_fill(self.width <= 0, torch.inf)
        ordered, order = slope.sort()
        room = 1 - lower.sum()
        full = self.width[order].cumsum(0)
        self.price = ordered[int((full < room).sum().clamp_max(len(lower) - 1))]
        self.cost = rise - self.price * self.width
        self.high = self.cost < 0
        self.level = float(_f(lower).sum() + self.price * room + self.cost.clamp_max(0).sum())
        self.room = room

    def bound(self) -> float:
        """A lower bound for the entropy from the subset sums of the core, after a look for a better corner."""
        core = self._core()
        if len(core) > EXACT:
            self._look(self._nearest(MANY), proves=False)
            core = self._core()
        if len(core) > EXACT:
            return self.level
        return self._look(core, proves=True)

    def _core(self) -> Tensor:
        return ((self.cost.abs() <= self.value - self.level + 1e-12) & (self.width > 0)).nonzero().squeeze(1)

    def _nearest(self, count: int) -> Tensor:
        cost = self.cost.abs().masked_fill(self.width <= 0, torch.inf)
        nearest = cost.argsort()[:count]
        return nearest[cost[nearest].isfinite()]

    def _look(self, chosen: Tensor, *, proves: bool) -> float:
        """The smallest ``L + cost of the class between`` over all states of ``chosen``; keeps the best corner it meets.

        Every class may be the one between where this is to prove a bound, else the chosen ones.
        """
        least = torch.inf
        for k in (self.width > 0).nonzero().squeeze(1).tolist() if proves else chosen.tolist():
            others = chosen[chosen != k]
            state = self.high.clone()
            state[others] = False
            state[k] = False
            room = self.room - (self.width * state).sum()
            if len(others) < FEW:
                least = min(least, self._all(k, others, state, room))
            else:
                least = min(least, self._halves(k, others, state, room))
        return self.level + least

    def _between(self, k: int, fill: Tensor) -> Tensor:
        """What class k costs with ``fill`` above its lower bound."""
        low = self.lower[k]
        return _f(low + fill) - _f(low) - self.price * fill - self.cost[k].clamp_max(0)

    def _flips(self, others: Tensor) -> Tensor:
        """Cost of each state of ``others``, (2^n,)."""
        base = (-self.cost[others] * self.high[others]).sum()
        return base + event_sums(self.cost[others])

    def _all(self, k: int, others: Tensor, state: Tensor, room: Tensor) -> float:
        fill = room - event_sums(self.width[others])
        possible = (fill >= -SLACK) & (fill <= self.width[k] + SLACK)
        if not bool(possible.any()):
            return torch.inf
        fill = fill.clamp(0, float(self.width[k]))
        events = possible.nonzero().squeeze(1)
        between = self._between(k, fill[events])
        total = between + self._flips(others)[events]
        at = int(total.argmin())
        if self.level + float(total[at]) < self.value:
            self._keep(k, others, state, int(events[at]), float(fill[events[at]]))
        return float(total.min())

    def _halves(self, k: int, others: Tensor, state: Tensor, room: Tensor) -> float:
        """The cost between is concave in the fill: its least value is at the smallest or the largest fill there is."""
        half = len(others) // 2
        first, second = event_sums(self.width[others[:half]]), event_sums(self.width[others[half:]])
        second, order = second.sort()
        rest = room - first
        below = torch.searchsorted(second, rest + SLACK, right=True) - 1  # the smallest fill that is not negative
        above = torch.searchsorted(second, rest - self.width[k] - SLACK)  # the largest that class k can take
        least = torch.inf
        for partner, inside in ((below, below >= 0), (above, above < len(second))):
            partner = partner.clamp(0, len(second) - 1)
            fill = rest - second[partner]
            possible = inside & (fill >= -SLACK) & (fill <= self.width[k] + SLACK)
            if not bool(possible.any()):
                continue
            fill = fill.clamp(0, float(self.width[k]))
            between = self._between(k, fill).masked_fill(~possible, torch.inf)
            least = min(least, float(between.min()))
            at = int(between.argmin())
            self._keep(k, others, state, at | int(order[partner[at]]) << half, float(fill[at]))
        return least

    def _keep(self, k: int, others: Tensor, state: Tensor, event: int, fill: float) -> None:
        """Keep the corner with ``others`` in the states of ``event`` and class k at ``fill``, if it is better."""
        state = state.clone()
        state[others] = (event >> torch.arange(len(others), device=others.device)) % 2 == 1
        p = self.lower + self.width * state
        p[k] = self.lower[k] + fill
        # The chosen class takes what rounding left of the sum.
        p[k] = (p[k] + 1 - p.sum()).clamp(self.lower[k], self.lower[k] + self.width[k])
        value = float(_f(p).sum())
        if value < self.value and abs(float(p.sum()) - 1) <= 1e-12:
            self.value, self.point = value, p


def _f(p: Tensor) -> Tensor:
    return -p * p.clamp_min(TINY).log()
