import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom

from credro.evaluation import clopper_pearson, threshold


@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.9975, 1 - 1e-6]))
@settings(max_examples=150, deadline=None)
def test_clopper_pearson_against_scipy(count, share, confidence):
    errors = round(share * count)
    expected = beta.ppf(confidence, errors + 1, count - errors) if errors < count else 1.0
    assert clopper_pearson(errors, count, confidence) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("errors", [0, 1, 1000, 50_000, 500_000, 999_999])
def test_clopper_pearson_at_size(errors):
    bound = clopper_pearson(errors, 10**6, 0.99)
    assert bound == pytest.approx(beta.ppf(0.99, errors + 1, 10**6 - errors), rel=1e-8)
    assert binom.cdf(errors, 10**6, bound) == pytest.approx(0.01, rel=1e-5)


def test_clopper_pearson_at_the_ends():
    assert clopper_pearson(0, 59, 0.95) == pytest.approx(1 - 0.05 ** (1 / 59), rel=1e-12)
    assert clopper_pearson(7, 7) == 1
    assert clopper_pearson(0, 0) == 1
    with pytest.raises(ValueError, match=r"errors must lie in \[0, count = 3\], got 4"):
        clopper_pearson(4, 3)


# Populations: EU is uniform on (0, 1), or rounded to tenths; the chance of an error given EU is a function of it.
def rising(u):
    return 0.25 * u**2


def flat(u):
    return 0.051 + 0 * u  # just above the target wherever one cuts: accepting anything at all is a mistake


def bowl(u):
    return np.where(u < 0.15, 0.16, 0.02 + 0.1 * (u > 0.6))  # the lowest EU is the worst: no monotone risk


def step(u):
    return np.where(u < 0.5, 0.049, 0.06)  # crosses the target slowly just above a half: mistakes are easy


def true_error(chance, limit, rounded):
    """P(wrong | eu < limit) in the population, by integration."""
    if rounded:
        values = np.arange(10) / 10
        below = values < limit - 1e-9
        return chance(values[below]).mean() if below.any() else 0.0
    limit = min(limit, 1.0)
    points = [p for p in (0.15, 0.5, 0.6) if p < limit] or None
    return quad(lambda u: float(chance(np.float64(u))), 0, limit, points=points)[0] / limit


def simulate(chance, rounded, n, runs, seed):
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        eu = np.floor(10 * rng.random(n)) / 10 if rounded else rng.random(n)
        yield eu, rng.random(n) >= chance(eu)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("chance", [rising, flat, bowl, step])
@pytest.mark.parametrize("confidence", [0.95, 0.7])
def test_the_guarantee_holds_in_simulation(chance, rounded, confidence):
    """The true error exceeds the target in at most 1 - confidence of the draws, up to the luck of the simulation."""
    runs = 1000
    failures = 0
    for eu, correct in simulate(chance, rounded, n=600, runs=runs, seed=1):
        result = threshold(eu, correct, 0.05, confidence)
        failures += result.found and true_error(chance, result.threshold, rounded) > 0.05
    assert failures <= binom.ppf(0.999, runs, 1 - confidence)


def test_the_simulation_would_catch_a_search_without_correction():
    """The same check fails for the obvious rule: the largest threshold whose own 95 % bound is below the target."""
    failures, runs = 0, 200
    for eu, correct in simulate(flat, False, n=600, runs=runs, seed=2):
        order = np.argsort(eu)
        wrong = np.cumsum(~correct[order])
        kept = np.arange(1, 601)
        bounds = beta.ppf(0.95, wrong + 1, kept - wrong)
        failures += bool((bounds <= 0.05).any())
    assert failures > binom.ppf(0.999, runs, 0.05)


def test_one_coverage_alone_is_exact():
    """steps=1 accepts everything or nothing: found exactly where the plain bound is below the target."""
    for eu, correct in simulate(lambda u: 0.03 + 0 * u, False, n=300, runs=50, seed=3):
        wrong = int((~correct).sum())
        assert threshold(eu, correct, steps=1).found == (beta.ppf(0.95, wrong + 1, 300 - wrong) <= 0.05)


def test_it_accepts_most_of_what_an_oracle_would():
    """rising: the error below t is t^2 / 12, so t = sqrt(0.6) = 0.77 is the best possible."""
    coverages = [threshold(eu, c).coverage for eu, c in simulate(rising, False, n=5000, runs=20, seed=4)]
    assert 0.65 < np.mean(coverages) <= 0.775


def test_the_largest_qualifying_coverage_of_the_grid_is_taken():
    """By brute force over the documented grid, with SciPy's bound."""
    for eu, correct in simulate(rising, False, n=800, runs=20, seed=5):
        result = threshold(eu, correct, max_error=0.05, confidence=0.9, steps=10)
        ranked = np.sort(eu)
        tried = [800 - 80 * j for j in range(10)]
        tried = [k for j, k in enumerate(tried) if 0.95**k <= 0.1 / (j + 1)]
        qualifying = []
        for k in tried:
            accepted = eu < (ranked[k] if k < 800 else math.inf)
            wrong, count = (~correct[accepted]).sum(), accepted.sum()
            if beta.ppf(1 - 0.1 / len(tried), wrong + 1, count - wrong) <= 0.05:
                qualifying.append((count, wrong))
        assert result.found == bool(qualifying)
        if qualifying:
            count, wrong = max(qualifying)
            assert (result.accepted, result.coverage) == (count, count / 800)
            assert result.error == pytest.approx(wrong / count)
            assert result.bound == pytest.approx(beta.ppf(1 - 0.1 / len(tried), wrong + 1, count - wrong))
            assert (result.confidence, result.max_error) == (0.9, 0.05)
            assert result.accepts(eu).sum() == count


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_order_does_not_matter(seed):
    eu, correct = next(simulate(rising, True, 300, 1, seed))
    order = np.random.default_rng(seed).permutation(300)
    assert repr(threshold(eu, correct)) == repr(threshold(eu[order], correct[order]))  # repr: NaN equals itself


def test_everything_is_accepted_where_all_is_right():
    result = threshold(torch.rand(5000, generator=torch.Generator().manual_seed(0)), torch.ones(5000, dtype=torch.bool))
    assert (result.threshold, result.found, result.coverage, result.error) == (math.inf, True, 1, 0)
    assert result.bound == pytest.approx(1 - (0.05 / 20) ** (1 / 5000))
    assert result.accepts(torch.tensor([0.1, 99.0])).tolist() == [True, True]


def test_nothing_is_accepted_where_nothing_qualifies():
    eu = np.linspace(0, 1, 400)
    result = threshold(eu, np.arange(400) % 2 == 0)
    assert (result.threshold, result.found, result.coverage, result.accepted) == (-math.inf, False, 0, 0)
    assert math.isnan(result.error)
    assert math.isnan(result.bound)
    assert not result.accepts(eu).any()
    assert "no threshold: an error of at most 0.05 cannot be shown" in result.note


def test_too_few_samples_say_how_many_are_needed():
    """0.95^58 > 0.05 >= 0.95^59."""
    few = threshold(np.arange(58.0), np.ones(58, bool))
    assert not few.found
    assert "59 samples are needed, got 58" in few.note
    assert threshold(np.arange(59.0), np.ones(59, bool)).found


def test_ties_are_rejected_together():
    """Half the samples share one EU, and that half is often wrong: the threshold is that very value."""
    eu = np.r_[np.linspace(0, 0.5, 1000, endpoint=False), np.full(1000, 0.5)]
    correct = np.r_[np.ones(1000, bool), np.arange(1000) % 3 > 0]
    result = threshold(eu, correct)
    assert (result.threshold, result.accepted, result.error) == (0.5, 1000, 0)


def test_a_threshold_on_float32_cuts_where_it_was_chosen():
    eu = torch.rand(2000, generator=torch.Generator().manual_seed(1))
    correct = torch.rand(2000, generator=torch.Generator().manual_seed(2)) > 0.3 * eu**2
    result = threshold(eu, correct)
    assert 0 < result.accepted < 2000
    assert result.accepts(eu).sum() == (eu < result.threshold).sum() == result.accepted


def test_errors():
    eu, correct = np.arange(100.0), np.ones(100, bool)
    with pytest.raises(TypeError, match="eu must hold real numbers, got bool"):
        threshold(correct, eu)
    with pytest.raises(ValueError, match=r"max_error must lie in \(0, 1\), got 5"):
        threshold(eu, correct, max_error=5)
    with pytest.raises(ValueError, match=r"confidence must lie in \(0, 1\), got 1"):
        threshold(eu, correct, confidence=1)
    with pytest.raises(ValueError, match="steps must be a whole number of at least 1, got 0"):
        threshold(eu, correct, steps=0)
    with pytest.raises(ValueError, match="same length, got 99 and 100"):
        threshold(eu, correct[1:])
    with pytest.raises(ValueError, match="eu must be finite"):
        threshold(np.where(eu > 3, np.nan, eu), correct)
