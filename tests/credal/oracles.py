"""Slow and simple answers to what credro.credal answers fast: plain numpy and SciPy, one sample at a time.

Nothing here is shared with the library, so that agreement means something.
"""

from __future__ import annotations

import heapq
import itertools

import numpy as np

Bounds = tuple[np.ndarray, np.ndarray]


def entropy(p: np.ndarray) -> np.ndarray:
    """Shannon entropy in nats over the last axis."""
    p = np.asarray(p, dtype=np.float64)
    return -(p * np.log(p, out=np.zeros_like(p), where=p > 0)).sum(-1)


def corners(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Every corner of one box (V, C): all classes but one at a bound, in all 2^(C-1) ways, the last takes the rest."""
    C = len(lower)
    found = []
    choice = np.array(list(itertools.product((False, True), repeat=C - 1)), dtype=bool)
    for free in range(C):
        rest = np.delete(np.arange(C), free)
        p = np.empty((len(choice), C))
        p[:, rest] = np.where(choice, upper[rest], lower[rest])
        p[:, free] = 1 - p[:, rest].sum(1)
        ok = (p[:, free] >= lower[free] - 1e-12) & (p[:, free] <= upper[free] + 1e-12)
        p[:, free] = p[:, free].clip(lower[free], upper[free])
        found.append(p[ok])
    return np.concatenate(found)


def lower_by_enumeration(lower: np.ndarray, upper: np.ndarray) -> float:
    """Smallest entropy of one box: a concave function is smallest at a corner, and these are all of them."""
    return float(entropy(corners(lower, upper)).min())


def lower_by_search(lower: np.ndarray, upper: np.ndarray, max_nodes: int = 200_000) -> float:
    """Smallest entropy of one box by best-first search: node by node, pruned by the chord bound alone."""
    best, count = np.inf, itertools.count()
    heap = [(-np.inf, next(count), np.array(lower), np.array(upper))]
    for _ in range(max_nodes):
        if not heap or heap[0][0] >= best - 1e-13:
            return float(best)
        _, _, low, high = heapq.heappop(heap)
        at_low, width = -_xlogx(low), high - low
        slope = np.full(len(low), np.inf)
        np.divide(-_xlogx(high) - at_low, width, out=slope, where=width > 0)
        p, room, bound, cut = low.copy(), 1 - low.sum(), at_low.sum(), None
        for k in np.argsort(slope, kind="stable"):
            if room <= 1e-15 or width[k] == 0:
                break
            take = min(room, width[k])
            p[k], bound, room = low[k] + take, bound + slope[k] * take, room - take
            cut = k if take < width[k] else cut
        if abs(room) > 1e-12:
            continue  # no distribution in this half
        best = min(best, float(entropy(p)))
        if cut is not None and bound < best - 1e-13:
            left, right = high.copy(), low.copy()
            left[cut] = right[cut] = p[cut]
            heapq.heappush(heap, (bound, next(count), low, left))
            heapq.heappush(heap, (bound, next(count), right, high))
    raise AssertionError(f"the oracle gave up after {max_nodes} nodes")


def _xlogx(p: np.ndarray) -> np.ndarray:
    return p * np.log(np.maximum(p, 1e-300))


def upper_by_bisection(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The distribution of largest entropy of one box: ``clip(level, lower, upper)``, the level found by halving."""
    low, high = 0.0, 1.0
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.clip(level, lower, upper).sum() < 1 else (low, level)
    return np.clip(high, lower, upper)


def box_by_slsqp(lower: np.ndarray, upper: np.ndarray, start: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Where SciPy ends when it minimises ``sign * entropy`` over one box from ``start``."""
    from scipy.optimize import minimize

    found = minimize(
        lambda p: sign * float(entropy(p)),
        start,
        jac=lambda p: -sign * (np.log(np.maximum(p, 1e-300)) + 1),
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x)


def hull_upper_by_slsqp(members: np.ndarray, rng: np.random.Generator, starts: int = 5) -> float:
    """Largest entropy that SciPy finds over the mixtures of ``members`` (M, C), from several starts."""
    from scipy.optimize import minimize

    M = len(members)
    best = -np.inf
    for start in (np.full(M, 1 / M), *rng.dirichlet(np.ones(M), starts)):
        found = minimize(
            lambda w: -float(entropy(np.maximum(w, 0) @ members)),
            start,
            jac=lambda w: members @ (np.log(np.maximum(np.maximum(w, 0) @ members, 1e-300)) + 1),
            bounds=[(0, 1)] * M,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        w = np.maximum(found.x, 0)
        best = max(best, float(entropy((w / w.sum()) @ members)))
    return best


def equal_slopes(weights: np.ndarray, target: float, middle: float, unit: float) -> Bounds:
    """A box that hides a subset-sum problem: widths ``unit * weights``, all chords of one slope, one fixed class.

    Every class's interval surrounds ``middle``, so none dominates another, and filling any of them costs the same per
    unit of mass: the least entropy is that of the chords alone if and only if some of the weights sum to ``target``.
    """
    width = unit * np.asarray(weights, dtype=np.float64)
    slope = -(np.log(middle) + 1)
    low, high = np.maximum(middle - width, 0), np.full_like(width, middle)
    for _ in range(200):  # the chord's slope falls as its interval moves right
        mid = (low + high) / 2
        steep = (_xlogx(mid) - _xlogx(mid + width)) / width > slope
        low, high = np.where(steep, mid, low), np.where(steep, high, mid)
    rest = 1 - low.sum() - unit * target
    assert rest > 0
    return np.append(low, rest), np.append(low + width, rest)
