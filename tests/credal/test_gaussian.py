"""Sets of Gaussian mixtures against SciPy and against mixtures drawn at random."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from credro.credal.gaussian import Gaussians

RNG = np.random.default_rng(0)
numbers = st.floats(-50, 50, allow_subnormal=False)
spreads = st.floats(0, 20, allow_subnormal=False)


def members(count=4, samples=6):
    return RNG.normal(size=(count, samples)) * 3, RNG.gamma(2.0, size=(count, samples))


def variance(weights, mean, std):
    return weights @ (std**2 + mean**2) - (weights @ mean) ** 2


def test_the_centre_is_the_papers_formula():
    mean, std = members()
    centre, deviation = Gaussians(mean, std).centre
    np.testing.assert_allclose(centre, mean.mean(0))
    np.testing.assert_allclose(deviation**2, (std**2 + mean**2).mean(0) - mean.mean(0) ** 2)


def test_the_largest_variance_is_scipys():
    mean, std = members(5, 20)
    mean[:, 3], std[:, 4] = 1.0, 0.0
    lower, upper = Gaussians(mean, std).variance_bounds
    np.testing.assert_allclose(lower, (std**2).min(0))
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    for n in range(20):
        found = minimize(  # concave in the weights: a local solver finds the one optimum
            lambda w, n=n: -variance(w, mean[:, n], std[:, n]),
            np.full(5, 0.2),
            bounds=[(0, 1)] * 5,
            constraints=[simplex],
            tol=1e-12,
        )
        assert upper[n] == pytest.approx(-found.fun, rel=1e-5)


def some_members(count):
    means, stds = (arrays(float, (count, 1), elements=kind) for kind in (numbers, spreads))
    return st.tuples(means, stds, arrays(float, count, elements=st.floats(0.01, 1)))


@given(st.integers(1, 5).flatmap(some_members))
def test_every_mixture_lies_within_the_bounds(given_members):
    mean, std, weights = given_members
    weights = weights / weights.sum()
    gaussians = Gaussians(mean, std)
    low, high = (float(v[0]) for v in gaussians.variance_bounds)
    slack = 1e-9 * (1 + high)
    assert low - slack <= variance(weights, mean[:, 0], std[:, 0]) <= high + slack
    smallest, largest = (float(v[0]) for v in gaussians.mean_bounds)
    assert smallest - 1e-9 <= weights @ mean[:, 0] <= largest + 1e-9


def test_probabilities_quantiles_and_intervals_hold_for_random_mixtures():
    mean, std = members(3, 8)
    gaussians = Gaussians(mean, std)
    below, above = gaussians.cdf(0.5)
    np.testing.assert_allclose(below, norm.cdf(0.5, mean, std).min(0))
    np.testing.assert_allclose(above, norm.cdf(0.5, mean, std).max(0))
    first, last = gaussians.quantile(0.3)
    start, end = gaussians.interval(0.8)

    def share(y, weights, n):
        return weights @ norm.cdf(y, mean[:, n], std[:, n])

    for weights in RNG.dirichlet([0.4] * 3, 50):
        for n in range(8):
            quantile = brentq(lambda y, w=weights, n=n: share(y, w, n) - 0.3, -200, 200)
            assert first[n] - 1e-9 <= quantile <= last[n] + 1e-9
            assert share(start[n], weights, n) <= 0.1 + 1e-9
            assert 1 - share(end[n], weights, n) <= 0.1 + 1e-9
    for n in range(8):  # no shorter one does: a member alone attains each end
        assert norm.cdf(start[n], mean[:, n], std[:, n]).max() == pytest.approx(0.1)
        assert norm.sf(end[n], mean[:, n], std[:, n]).max() == pytest.approx(0.1)


def test_members_without_deviation_are_sure():
    sure = Gaussians(np.array([[1.0], [3.0]]), np.zeros((2, 1)))
    assert [float(v[0]) for v in sure.cdf(2.0)] == [0.0, 1.0]
    assert [float(v[0]) for v in sure.cdf(3.0)] == [1.0, 1.0]
    assert [float(v[0]) for v in sure.variance_bounds] == [0.0, 1.0]  # half of each: (3 - 1)^2 / 4
    assert [float(v[0]) for v in sure.interval(0.9)] == [1.0, 3.0]


def test_one_member_is_itself():
    one = Gaussians(torch.tensor([[2.0]]), torch.tensor([[3.0]]))
    assert one.shape == (1,)
    assert [float(v) for v in one.variance_bounds] == [9.0, 9.0]
    assert [float(v) for v in one.centre] == [2.0, 3.0]


def test_kinds_and_devices_are_kept():
    mean, std = members()
    assert isinstance(Gaussians(mean, std).variance_bounds[1], np.ndarray)
    made = Gaussians(torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32))
    assert isinstance(made.interval()[0], torch.Tensor)
    assert made.centre[0].dtype == torch.float64


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), r"one shape, got \(2, 3\) and \(3, 2\)"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "at least one member"),
        (np.array([[0.0], [np.nan]]), np.ones((2, 1)), r"mean is not finite at \[1, 0\]"),
        (np.zeros((2, 1)), np.array([[1.0], [-2.0]]), r"std is negative at \[1, 0\]: -2"),
    ],
)
def test_bad_members_are_named(mean, std, words):
    with pytest.raises(ValueError, match=words):
        Gaussians(mean, std)


def test_bad_shares_are_named():
    gaussians = Gaussians(*members())
    with pytest.raises(ValueError, match=r"q must lie in \(0, 1\), got 1.0"):
        gaussians.quantile(1.0)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\), got 90"):
        gaussians.interval(90)
