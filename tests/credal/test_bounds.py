"""Reachable bounds and the intersection probability, against linear programs and the definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy.optimize import linprog

from credro.credal.bounds import intersection, reachable
from tests.credal.strategies import boxes


def extreme(lower: np.ndarray, upper: np.ndarray, k: int, sign: int) -> float:
    """Smallest (sign 1) or largest (sign -1) probability of class k in one box, by linear programming."""
    objective = sign * np.eye(len(lower))[k]
    bounds = list(zip(lower, upper, strict=True))
    return sign * linprog(objective, A_eq=np.ones((1, len(lower))), b_eq=[1], bounds=bounds).fun


@settings(max_examples=20, deadline=None)
@given(boxes(max_classes=5, max_samples=2))
def test_reachable_bounds_are_those_of_linear_programs(bounds):
    lower, upper = bounds
    low, high = (x.numpy() for x in reachable(torch.tensor(lower), torch.tensor(upper)))
    for n in range(len(lower)):
        for k in range(lower.shape[1]):
            assert low[n, k] == pytest.approx(extreme(lower[n], upper[n], k, 1), abs=1e-6)  # as exact as that solver
            assert high[n, k] == pytest.approx(extreme(lower[n], upper[n], k, -1), abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(boxes(max_classes=9))
def test_reachable_bounds_stay_ordered_and_are_a_fixed_point(bounds):
    low, high = reachable(torch.tensor(bounds[0]), torch.tensor(bounds[1]))
    assert (low <= high).all()
    again = reachable(low, high)
    torch.testing.assert_close(again, (low, high), atol=1e-14, rtol=0)


def test_reachable_along_another_axis():
    low, high = torch.tensor([[0.0, 0.0], [0.1, 0.2]]), torch.tensor([[0.5, 0.6], [0.9, 0.9]])
    across = reachable(low.T, high.T)
    torch.testing.assert_close(reachable(low, high, dim=0), (across[0].T, across[1].T))


@settings(max_examples=100, deadline=None)
@given(boxes(max_classes=9))
def test_intersection_probability_is_one_point_of_the_set_on_the_diagonal(bounds):
    lower, upper = bounds
    p = intersection(torch.tensor(lower), torch.tensor(upper)).numpy()
    np.testing.assert_allclose(p.sum(-1), 1, atol=1e-12)
    assert (p >= lower - 1e-12).all()
    assert (p <= upper + 1e-12).all()
    width = upper - lower
    share = (p - lower)[..., None] * width[..., None, :]  # (p_i - l_i) w_j == (p_j - l_j) w_i: one share for all
    np.testing.assert_allclose(share, share.swapaxes(-1, -2), atol=1e-12)


def test_intersection_probability_by_hand():
    p = intersection(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.3, 0.4, 0.7]))
    torch.testing.assert_close(p, torch.tensor([0.2, 0.3, 0.5]))
