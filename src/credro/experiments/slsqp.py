"""The entropy gap as the paper and other libraries compute it: SciPy's SLSQP, called once a sample. For comparison.

SLSQP has its default options and a numerical gradient. Box: it starts at the members' mean, under the bounds and one
equation, once for each end. Hull: it starts at equal weights, for the upper end alone; the lower is the smallest
entropy of a member.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from credro.credal.sets import Box

Array = npt.NDArray[np.float64]
LIMIT = 60.0
"""Seconds that SLSQP may take for one end of one sample: at C = 1000 each of its steps solves a dense system."""


def entropy(p: Array) -> float:
    """In nats, with 0 log 0 = 0."""
    return -float((p * np.log(np.maximum(p, 1e-300))).sum())


def slsqp(objective: Callable[[Array], float], start: Array, bounds: list[tuple[float, float]]) -> float:
    """The value at which SciPy ends, NaN if it takes longer than LIMIT."""
    import scipy.optimize

    deadline = time.perf_counter() + LIMIT

    def watched(x: Array) -> float:
        if time.perf_counter() > deadline:
            raise TimeoutError
        return objective(x)

    minimize: Any = scipy.optimize.minimize
    sum_is_one = {"type": "eq", "fun": lambda x: x.sum() - 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps clipped to the bounds
        try:
            return float(minimize(watched, start, bounds=bounds, constraints=sum_is_one, method="SLSQP").fun)
        except TimeoutError:
            return float("nan")


def box_gap(lower: Array, upper: Array, start: Array) -> float:
    """Entropy gap of one box: bounds (C,), and the point where both searches start."""
    bounds = list(zip(lower.tolist(), upper.tolist(), strict=True))
    return -slsqp(lambda p: -entropy(p), start, bounds) - slsqp(entropy, start, bounds)


def hull_gap(members: Array) -> float:
    """Entropy gap of the hull of the members (M, C) of one sample."""
    M = len(members)
    upper = -slsqp(lambda w: -entropy(w @ members), np.full(M, 1 / M), [(0.0, 1.0)] * M)
    return upper - min(entropy(p) for p in members)


def gaps(box: Box, count: int) -> tuple[Tensor, float]:
    """Entropy gaps (n,) of the first ``count`` boxes (N, C), and the seconds they took."""
    lower, upper = (bound[:count].cpu().numpy() for bound in box.bounds)
    start = np.asarray(box.mean[:count])
    begin = time.perf_counter()
    found = [box_gap(*sample) for sample in zip(lower, upper, start, strict=True)]
    return torch.tensor(found, dtype=torch.float64), time.perf_counter() - begin
