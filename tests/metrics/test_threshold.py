import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom

from credro.metrics import clopper_pearson, threshold
from credro.metrics._limits import limits


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


def level(u):
    return 0.05 + 1e-9 + 0 * u  # the target itself, from just above: the worst there is


def falling(u):
    return (0.1 + 1e-9) * (1 - u)  # the more certain, the more often wrong; 0.05 in all


def waves(u):
    return 0.05 * (1 + np.cos(20 * np.pi * u))  # R goes from above the target to below and back, ten times


def stairs(u):
    return np.where(np.floor(10 * u) % 2 == 0, 0.08, 0.02)  # the same with jumps


def true_error(chance, limit, rounded):
    """P(wrong | eu < limit) in the population, by integration."""
    if rounded:
        values = np.arange(10) / 10
        below = values < limit - 1e-9
        return chance(values[below]).mean() if below.any() else 0.0
    limit = min(limit, 1.0)
    if chance is waves:  # quad would have to be told of every wave
        return 0.05 + 0.05 * np.sin(20 * np.pi * limit) / (20 * np.pi * limit)
    points = [p for p in (*np.arange(0.1, 1, 0.1), 0.15) if p < limit] or None
    return quad(lambda u: float(chance(np.float64(u))), 0, limit, points=points)[0] / limit


def simulate(chance, rounded, n, runs, seed):
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        eu = np.floor(10 * rng.random(n)) / 10 if rounded else rng.random(n)
        yield eu, rng.random(n) >= chance(eu)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("chance", [rising, flat, bowl, step, level, falling, waves, stairs])
@pytest.mark.parametrize("confidence", [0.95, 0.7])
def test_the_guarantee_holds_in_simulation(chance, rounded, confidence):
    """The true error exceeds the target in at most 1 - confidence of the draws, up to the luck of the simulation."""
    assert violations(chance, rounded, 600, confidence, runs=1000, seed=1) <= binom.ppf(0.999, 1000, 1 - confidence)


def violations(chance, rounded, n, confidence, runs, seed):
    """Draws in which a threshold was chosen whose true error is above 5 %."""
    failures = 0
    with pytest.MonkeyPatch.context() as patch:  # advice on what would help takes most of the time
        patch.setattr(sys.modules[threshold.__module__], "_remedy", lambda *_: (None, None, ""))
        for eu, correct in simulate(chance, rounded, n=n, runs=runs, seed=seed):
            result = threshold(eu, correct, 0.05, confidence)
            failures += result.found and true_error(chance, result.threshold, rounded) > 0.05
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("chance", [rising, flat, bowl, step, level, falling, waves, stairs])
@pytest.mark.parametrize("n", [120, 400, 3000])
def test_the_guarantee_holds_in_a_long_simulation(chance, rounded, n):
    runs = 10_000
    failures = violations(chance, rounded, n, 0.95, runs, seed=n)
    assert failures <= binom.ppf(0.999, runs, 0.05), f"{failures / runs:.4f}"


@pytest.mark.parametrize("n", [120, 600])
def test_the_worst_case_uses_what_is_allowed(n):
    """At a flat risk of the very target, 5 % of the draws may go wrong, and almost so many do: little is wasted."""
    runs = 2000
    failures = violations(level, False, n, 0.95, runs, seed=7)
    assert binom.ppf(0.001, runs, 0.03) <= failures <= binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize(("n", "e", "alpha", "steps"), [(12, 0.5, 0.2, 12), (12, 0.5, 0.2, 5), (11, 0.4, 0.3, 100)])
def test_limits_hold_in_every_sequence_of_errors(n, e, alpha, steps):
    """The chance that the walk is ever within the limits, summed over all 2^n sequences in exact fractions."""
    found, rate = limits(n, e, alpha, steps), Fraction(str(e))
    total = Fraction(0)
    for errors in itertools.product((0, 1), repeat=n):
        walk = np.cumsum(errors)
        counts = np.arange(1, n + 1)
        if found.passes(counts, walk).any():  # at every k, not only where the limit changes
            total += rate ** sum(errors) * (1 - rate) ** (n - sum(errors))
    assert 0 < total <= Fraction(str(alpha))
    assert total > Fraction(str(alpha)) / 2  # and they are no smaller than they must be


@pytest.mark.parametrize(("n", "e", "alpha"), [(300, 0.05, 0.05), (2000, 0.01, 0.1), (400, 0.3, 0.01)])
def test_limits_against_a_walk_followed_step_by_step(n, e, alpha):
    """One sample after the other, in a plain dynamic programme; the levels by SciPy."""
    found = limits(n, e, alpha, 100)
    state, crossed = np.zeros(n + 1), 0.0
    state[0] = 1
    at = dict(zip(found.sizes.tolist(), found.allowed.tolist(), strict=True))
    for k in range(1, n + 1):
        state[1:] = state[1:] * (1 - e) + state[:-1] * e
        state[0] *= 1 - e
        if k in at:
            crossed += state[: at[k] + 1].sum()
            state[: at[k] + 1] = 0
    assert 0.9 * alpha < crossed <= alpha
    some = found.allowed >= 0
    levels = binom.cdf(found.allowed[some], found.sizes[some], e)
    assert levels.max() < alpha
    assert alpha / levels.max() < 5  # Bonferroni would divide by 100


def bonferroni(eu, correct, max_error=0.05, alpha=0.05, steps=20):
    """Coverage by the rule of version 0.1: 20 coverages, each tested at its part of alpha."""
    n, ranked, counts = len(eu), np.sort(eu), []
    for m in range(1, steps + 1):
        count = n * (steps - m + 1) // steps
        if (1 - max_error) ** count > alpha / m:
            break
        counts.append(count)
    for count in counts:
        accepted = eu < (ranked[count] if count < n else math.inf)
        if accepted.any() and binom.cdf((~correct[accepted]).sum(), accepted.sum(), max_error) <= alpha / len(counts):
            return accepted.mean()
    return 0.0


@pytest.mark.parametrize(("n", "gain"), [(150, 0.1), (300, 0.1), (1000, 0.05), (5000, 0.02)])
def test_it_accepts_more_than_bonferroni(n, gain):
    draws = list(simulate(rising, False, n=n, runs=60, seed=8))
    ours, theirs = (np.mean([f(*d) for d in draws]) for f in (lambda *d: threshold(*d).coverage, bonferroni))
    assert ours > theirs + gain


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
    assert 0.68 < np.mean(coverages) <= 0.775


@pytest.mark.parametrize("rounded", [False, True])
def test_the_largest_threshold_within_the_limits_is_taken(rounded):
    """By brute force over every score that occurs."""
    for eu, correct in simulate(rising, rounded, n=800, runs=20, seed=5):
        result = threshold(eu, correct, max_error=0.05, confidence=0.9, steps=10)
        bounds = limits(800, 0.05, 0.1, 10)
        qualifying = []
        for limit in [*np.unique(eu), math.inf]:
            accepted = eu < limit
            wrong, count = int((~correct[accepted]).sum()), int(accepted.sum())
            allowed = [a for size, a in zip(bounds.sizes, bounds.allowed, strict=True) if size <= count]
            if allowed and wrong <= allowed[-1]:
                qualifying.append((count, wrong, limit))
        assert result.found == bool(qualifying)
        if qualifying:
            count, wrong, limit = max(qualifying)
            assert (result.accepted, result.coverage, result.threshold) == (count, count / 800, limit)
            assert result.error == pytest.approx(wrong / count)
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
    assert result.accepts(torch.tensor([0.1, 99.0])).tolist() == [True, True]


def test_nothing_is_accepted_where_nothing_qualifies():
    eu = np.linspace(0, 1, 400)
    result = threshold(eu, np.arange(400) % 2 == 0)
    assert (result.threshold, result.found, result.coverage, result.accepted) == (-math.inf, False, 0, 0)
    assert math.isnan(result.error)
    assert not result.accepts(eu).any()
    assert "no threshold: an error of at most 0.05 cannot be shown" in result.note
    assert (
        "the lowest error observed at any coverage is 0.48, of 21 samples: the model is not good enough" in result.note
    )
    assert result.needed is None


def test_it_says_how_many_samples_would_do():
    """What it asks for is about enough: with so many samples of the same population most draws give a threshold."""
    for eu, correct in simulate(rising, False, n=90, runs=10, seed=9):
        result = threshold(eu, correct, max_error=0.03)
        if not result.found and result.needed is not None:
            assert (
                f"about {result.needed:,} held-out samples are needed, if the others are like these 90" in result.note
            )
            assert 100 <= result.needed <= 64 * 100  # 99 without an error are the least
            repeated = np.tile(eu, 1 + result.needed // 90), np.tile(correct, 1 + result.needed // 90)
            assert threshold(*repeated, max_error=0.03).found
            break
    else:
        pytest.fail("no draw without a threshold")


def test_it_says_which_target_can_be_met():
    eu, correct = next(simulate(lambda u: 0.2 + 0 * u, False, n=300, runs=1, seed=10))
    result = threshold(eu, correct, 0.05)
    assert result.reachable in (0.2, 0.25, 0.3)
    assert f"these show max_error={result.reachable:g}" in result.note
    assert threshold(eu, correct, result.reachable).found
    assert not threshold(eu, correct, 0.15).found
    assert threshold(eu, np.zeros(300, bool)).reachable is None


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
    with pytest.raises(ValueError, match="score must be one of epistemic, total, confidence, got 'eu'"):
        threshold(eu, correct, score="eu")
    with pytest.raises(ValueError, match="same length, got 99 and 100"):
        threshold(eu, correct[1:])
    with pytest.raises(ValueError, match="eu must be finite"):
        threshold(np.where(eu > 3, np.nan, eu), correct)
