import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, roc_auc_score

from credro.metrics import accuracy_rejection, error_detection, rejection_for, risk_coverage

samples = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 2.0])), min_size=1, max_size=40)


def split(pairs):
    return np.array([c for c, _ in pairs]), np.array([e for _, e in pairs])


def every_order(pairs):
    """Accuracy of the k first of samples sorted by EU, k = 1..N, averaged over all orders of the ties, in fractions."""
    orders = [p for p in itertools.permutations(pairs) if all(a[1] <= b[1] for a, b in itertools.pairwise(p))]
    n = len(pairs)
    return [sum(Fraction(sum(c for c, _ in p[:k]), k) for p in orders) / len(orders) for k in range(1, n + 1)]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5])), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_against_every_order_of_the_ties(pairs):
    correct, eu = split(pairs)
    kept = every_order(pairs)
    curve = accuracy_rejection(correct, eu)
    n = len(pairs)
    expected = [float(a) for a in kept[::-1]] + [1.0]
    assert curve.accuracy.tolist() == expected  # rounded once, so equal to the last bit
    assert curve.rates.tolist() == [i / n for i in range(n + 1)]
    assert curve.area == pytest.approx(auc(curve.rates, expected), abs=1e-14)
    base = expected[0]
    normalised = [(a - base) / (1 - base) if base < 1 else 1.0 for a in expected]
    np.testing.assert_allclose(curve.normalised, normalised, atol=1e-14)
    assert curve.normalised_area == pytest.approx(auc(curve.rates, normalised), abs=1e-14)

    risks = risk_coverage(correct, eu)
    np.testing.assert_allclose(risks.risk, [1 - float(a) for a in kept], atol=1e-14)
    assert risks.coverage.tolist() == [k / n for k in range(1, n + 1)]
    assert risks.area == pytest.approx(float(sum(1 - a for a in kept) / n), abs=1e-14)

    for target in (0.0, 0.5, 0.75, 0.95, 1.0):
        reached = [i / n for i, a in enumerate(kept[::-1]) if a >= Fraction(str(target))]
        found = rejection_for(correct, eu, target)
        assert found == reached[0] if reached else math.isnan(found)


@given(samples)
@settings(max_examples=80, deadline=None)
def test_error_detection_against_scikit_learn(pairs):
    correct, score = split(pairs)
    found = error_detection(correct, score)
    if 0 < correct.sum() < len(correct):
        assert found.auroc == pytest.approx(roc_auc_score(~correct, score), abs=1e-12)
    else:
        assert math.isnan(found.auroc)  # nothing to find, or nothing to tell it from
    assert found.area == accuracy_rejection(correct, score).area


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5])), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_accuracy_at_90_percent_against_every_order_of_the_ties(pairs):
    kept = next(k for k in range(1, len(pairs) + 1) if 10 * k >= 9 * len(pairs))
    assert error_detection(*split(pairs)).accuracy_at_90 == float(every_order(pairs)[kept - 1])


def test_ninety_of_a_hundred():
    """Ten wrong ones: all with the largest score, then all with the smallest."""
    correct, score = np.arange(100) < 90, np.arange(100.0)
    best, worst = error_detection(correct, score), error_detection(correct, -score)
    assert (best.auroc, best.accuracy_at_90) == (1, 1)
    assert (worst.auroc, worst.accuracy_at_90) == (0, 80 / 90)
    assert error_detection(torch.from_numpy(correct), torch.from_numpy(score)) == best
    with pytest.raises(TypeError, match="score must hold real numbers, got bool"):
        error_detection(score, correct)
    with pytest.raises(ValueError, match="correct and score must have the same length, got 99 and 100"):
        error_detection(correct[1:], score)


@given(samples, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_does_not_matter(pairs, random):
    before = accuracy_rejection(*split(pairs))
    area = risk_coverage(*split(pairs)).area
    random.shuffle(pairs)
    after = accuracy_rejection(*split(pairs))
    assert before.accuracy.tolist() == after.accuracy.tolist()
    assert (before.area, before.normalised_area) == (after.area, after.normalised_area)
    assert area == risk_coverage(*split(pairs)).area


@given(samples)
@settings(max_examples=60, deadline=None)
def test_at_the_ends_of_a_group_ties_are_rejected_together(pairs):
    correct, eu = split(pairs)
    curve = accuracy_rejection(correct, eu)
    for limit in np.unique(eu):
        kept = eu <= limit
        assert curve.accuracy[(~kept).sum()] == correct[kept].mean()


def test_the_best_order_of_the_errors_has_no_excess():
    """Against the oracle: EU that is the error itself, made distinct."""
    rng = np.random.default_rng(0)
    correct = rng.random(200) < 0.8
    oracle = np.where(correct, 0.0, 1.0) + rng.random(200) / 2
    best = risk_coverage(correct, oracle)
    assert best.excess_area == pytest.approx(0, abs=1e-15)
    other = risk_coverage(correct, rng.random(200))
    assert other.excess_area == pytest.approx(other.area - best.area)
    assert other.excess_area > 0.05
    assert rejection_for(correct, oracle, 1.0) == (~correct).sum() / 200


def test_a_constant_eu_gains_nothing():
    correct = np.array([True] * 7 + [False] * 3)
    curve = accuracy_rejection(correct, np.zeros(10))
    np.testing.assert_allclose(curve.accuracy[:-1], 0.7, rtol=0, atol=0)
    assert curve.accuracy[-1] == 1
    assert math.isnan(rejection_for(correct, np.zeros(10), 0.71))
    assert rejection_for(correct, np.zeros(10), 0.7) == 0


def test_a_classifier_without_error():
    curve = accuracy_rejection(np.ones(5, bool), np.arange(5.0))
    assert curve.normalised.tolist() == [1] * 6
    assert (curve.area, curve.normalised_area) == (1, 1)


def test_a_classifier_without_a_hit():
    curve = accuracy_rejection(np.zeros(4, bool), np.arange(4.0))
    assert curve.accuracy.tolist() == [0, 0, 0, 0, 1]
    assert curve.area == pytest.approx(1 / 8)
    assert math.isnan(rejection_for(np.zeros(4, bool), np.arange(4.0), 0.01))


def test_nineteen_of_twenty_is_95_percent():
    assert rejection_for(np.array([True] * 19 + [False]), np.arange(20.0)[::-1].copy(), 0.95) == 0


def test_kinds_and_flags():
    correct, eu = torch.tensor([1, 0, 1]), torch.tensor([0.1, 0.3, 0.2], dtype=torch.float32)
    curve, risks = accuracy_rejection(correct, eu), risk_coverage(correct.float(), eu)
    assert curve.accuracy.dtype == risks.risk.dtype == torch.float64
    assert curve.accuracy.tolist() == pytest.approx([2 / 3, 1, 1, 1])
    assert risks.risk.tolist() == pytest.approx([0, 0, 1 / 3])
    assert isinstance(accuracy_rejection(correct, eu.numpy()).rates, np.ndarray)


@pytest.mark.parametrize(
    ("correct", "eu", "error", "message"),
    [
        ([True, False], [0.1], ValueError, "correct and eu must have the same length, got 2 and 1"),
        ([True], [math.nan], ValueError, "eu must be finite"),
        ([], [], ValueError, "must not be empty"),
        ([0.1, 0.2], [True, False], TypeError, "eu must hold real numbers, got bool"),
        ([0.5], [0.1], ValueError, "correct must be boolean or 0/1, got 0.5"),
        ([math.nan], [0.1], ValueError, "correct must be boolean or 0/1, got nan"),
        ([[True]], [0.1], ValueError, r"correct must have shape \(N,\), got \(1, 1\)"),
    ],
)
@pytest.mark.parametrize("function", [accuracy_rejection, risk_coverage, rejection_for])
def test_errors(function, correct, eu, error, message):
    with pytest.raises(error, match=message):
        function(np.array(correct), np.array(eu))


def test_target_out_of_range():
    with pytest.raises(ValueError, match=r"accuracy must lie in \[0, 1\], got 95"):
        rejection_for(np.array([True]), np.array([0.1]), 95)
