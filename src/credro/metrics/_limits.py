"""How many errors among the k most certain samples still show that the error rate there is at most a target.

Let W be the walk that counts the errors when every sample is wrong with probability e = ``max_error``, whatever its
score. ``allowed`` is a number of errors b(k) for every k such that W is ever at or below b with probability alpha at
most: P(some k: W(k) <= b(k)) <= alpha. It is computed exactly, by following the distribution of W from one k to the
next and taking out what has crossed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ._arrays import Booleans, Floats, Integers

HALVINGS = 16
"""Bisections of the level: it is found within a fraction of a per cent."""
NOTHING = 1e-20
"""States of the walk that are less probable are dropped, and counted as if they had crossed."""


@dataclass(frozen=True, eq=False)
class Limits:
    """sizes: (G,) numbers of samples at which the limit changes, rising. allowed: (G,) errors; -1: not even none."""

    sizes: Integers
    allowed: Integers

    def passes(self, counts: Integers, errors: Integers) -> Booleans:
        """Whether so few ``errors`` among ``counts`` (K,) samples show it.

        Between two sizes the limit is that of the smaller: the walk only rises, so this costs no probability.
        """
        at = np.searchsorted(self.sizes, counts, side="right") - 1
        shown: Booleans = (at >= 0) & (errors <= self.allowed[np.maximum(at, 0)])
        return shown


@lru_cache(maxsize=128)
def limits(n: int, max_error: float, alpha: float, steps: int) -> Limits:
    """The limits for ``n`` samples. They depend on these numbers alone: they are fixed before any sample is seen.

    At size k a limit is an exact binomial test at the level gamma * sqrt(k / n): a large coverage is wanted more than a
    small one. gamma is the largest for which the walk crosses with probability ``alpha`` at most.
    """
    sizes = np.unique(np.ceil(np.arange(1, steps + 1) * n / steps).astype(np.int64))
    tails = [_binomial(int(k), max_error) for k in sizes]
    tails = [(low, np.cumsum(p)) for low, p in tails]
    jumps = {int(d): _binomial(int(d), max_error) for d in np.unique(np.diff(sizes, prepend=0))}
    weights = np.sqrt(sizes / n)

    def at(gamma: float) -> Integers:
        rows = zip(tails, gamma * weights, strict=True)
        return np.array([low + int(np.searchsorted(p, level, side="right")) - 1 for (low, p), level in rows])

    high, low = alpha, alpha / len(sizes)  # the lower is Bonferroni's: it always holds
    if _crossing(sizes, at(high), jumps) <= alpha:
        return Limits(sizes, at(high))
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _crossing(sizes, at(middle), jumps) <= alpha else (low, middle)
    return Limits(sizes, at(low))


def _crossing(sizes: Integers, allowed: Integers, jumps: dict[int, tuple[int, Floats]]) -> float:
    """P(W(k) <= allowed at some size k)."""
    low, p, before = 0, np.ones(1), 0
    for size, limit in zip(sizes.tolist(), allowed.tolist(), strict=True):
        start, jump = jumps[size - before]
        low, p, before = low + start, np.convolve(p, jump), size
        if limit >= low:
            low, p = limit + 1, p[limit + 1 - low :]
        if not (p > NOTHING).any():
            return 1.0
        p = p[: int(np.flatnonzero(p > NOTHING)[-1]) + 1]
    return 1 - float(p.sum())


def _binomial(count: int, e: float) -> tuple[int, Floats]:
    """The probabilities of low, low + 1, ... errors among ``count``: all that double precision can see of them."""
    mode, reach = math.floor((count + 1) * e), 20 + math.ceil(9 * math.sqrt(count * e * (1 - e)))
    up = np.arange(mode, min(count, mode + reach))
    down = np.arange(mode, max(0, mode - reach), -1)
    above = np.cumprod((count - up) / (up + 1) * (e / (1 - e)))
    below = np.cumprod(down / (count - down + 1) * ((1 - e) / e))
    p: Floats = np.concatenate([below[::-1], [1.0], above])
    return int(mode - len(below)), p / p.sum()
