import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, mean_squared_error

from credro.metrics import accuracy, brier, ece, member_accuracy, nll, reliability


def draw(n=500, classes=5, seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    return softmax(scale * rng.normal(size=(n, classes)), axis=1), rng.integers(0, classes, n)


def brute_bins(probs, labels, bins):
    """Samples of each bin (b/B, (b+1)/B], one by one."""
    found = [[] for _ in range(bins)]
    for p, y in zip(probs, labels, strict=True):
        k = max(range(len(p)), key=lambda c: p[c])
        b = next(b for b in range(bins) if p[k] <= (b + 1) / bins or b == bins - 1)
        found[b].append((p[k], k == y))
    return found


@pytest.mark.parametrize("bins", [1, 5, 10, 15])
@pytest.mark.parametrize("digits", [1, 12])  # one digit: confidences on the edges themselves
def test_reliability_against_brute_force(bins, digits):
    rng = np.random.default_rng(bins)
    top = rng.uniform(0.5, 1, 400).round(digits)
    probs = np.stack([top, 1 - top], 1)
    labels = rng.integers(0, 2, 400)
    result = reliability(probs, labels, bins)
    expected, total = brute_bins(probs, labels, bins), 0.0
    for b, members in enumerate(expected):
        assert result.count[b] == len(members)
        if not members:
            assert math.isnan(result.confidence[b])
            assert math.isnan(result.accuracy[b])
            continue
        confidence, right = np.mean(members, axis=0)
        assert result.confidence[b] == pytest.approx(confidence)
        assert result.accuracy[b] == pytest.approx(right)
        total += len(members) * abs(confidence - right)
    assert result.ece == ece(probs, labels, bins) == pytest.approx(total / 400)
    np.testing.assert_allclose(result.edges, np.linspace(0, 1, bins + 1))


@pytest.mark.parametrize("bins", [4, 10])
def test_reliability_against_scikit_learn(bins):
    probs, labels = draw(2000)
    confidence, right = probs.max(1), probs.argmax(1) == labels
    accuracies, confidences = calibration_curve(right, confidence, n_bins=bins)
    result = reliability(probs, labels, bins)
    filled = result.count > 0
    np.testing.assert_allclose(result.accuracy[filled], accuracies)
    np.testing.assert_allclose(result.confidence[filled], confidences)


def test_ece_of_a_calibrated_and_an_overconfident_forecaster():
    probs = np.tile([0.75, 0.25], (400, 1))
    labels = np.array([0, 0, 0, 1] * 100)
    assert ece(probs, labels) == 0
    assert ece(np.tile([1.0, 0.0], (400, 1)), labels) == pytest.approx(0.25)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_brier_nll_accuracy_against_scikit_learn(classes):
    probs, labels = draw(700, classes, seed=classes)
    names = list(range(classes))
    assert brier(probs, labels) == pytest.approx(
        classes * mean_squared_error(np.eye(classes)[labels], probs), abs=1e-13
    )
    if classes == 2:
        assert brier(probs, labels) == pytest.approx(2 * brier_score_loss(labels, probs[:, 1]), abs=1e-13)
    assert nll(probs, labels) == pytest.approx(log_loss(labels, probs, labels=names), abs=1e-13)
    assert accuracy(probs, labels) == accuracy_score(labels, probs.argmax(1))
    assert accuracy(probs.argmax(1), labels) == accuracy_score(labels, probs.argmax(1))
    assert accuracy(np.log(probs), labels) == accuracy(probs, labels)


def test_a_zero_probability_for_the_true_class():
    probs, labels = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])
    assert nll(probs, labels) == pytest.approx(log_loss(labels, probs))
    assert nll(probs, labels, floor=0) == math.inf
    assert nll(probs, labels, floor=1e-3) == pytest.approx((math.log(1000) + math.log(2)) / 2)
    assert brier(probs, labels) == pytest.approx((2 + 0.5) / 2)
    assert nll(np.array([[1.0, 0.0]]), np.array([0])) == 0


@given(st.integers(1, 30), st.integers(2, 4), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_order_of_samples_does_not_matter(n, classes, seed):
    probs, labels = draw(n, classes, seed)
    order = np.random.default_rng(seed).permutation(n)
    for measure in (ece, brier, nll, accuracy):
        assert measure(probs, labels) == pytest.approx(measure(probs[order], labels[order]), abs=1e-12)


@given(st.integers(1, 30), st.integers(2, 4), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_renumbering_the_classes_does_not_matter(n, classes, seed):
    probs, labels = draw(n, classes, seed)
    order = np.random.default_rng(seed).permutation(classes)
    for measure in (ece, brier, nll, accuracy):
        renumbered = measure(probs[:, order], np.argsort(order)[labels])
        assert measure(probs, labels) == pytest.approx(renumbered, abs=1e-12)


def test_members():
    stack = np.stack([draw(300, 4, seed)[0] for seed in range(3)])
    labels = draw(300, 4)[1]
    expected = [accuracy_score(labels, p.argmax(1)) for p in stack]
    assert member_accuracy(stack, labels).tolist() == expected
    result = member_accuracy(torch.tensor(stack), torch.tensor(labels))
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_torch_of_low_precision(dtype):
    probs, labels = draw(300, 100)
    rounded = torch.tensor(probs).to(dtype)
    assert nll(rounded, torch.tensor(labels)) == nll(rounded.double().numpy(), labels)
    result = reliability(rounded, torch.tensor(labels, dtype=torch.int32))
    assert result.confidence.dtype == torch.float64
    assert result.count.sum() == 300


GOOD = np.array([[0.5, 0.5], [0.1, 0.9]])


@pytest.mark.parametrize(
    ("probs", "labels", "error", "message"),
    [
        (GOOD, [0, 2], ValueError, r"labels must lie in \[0, 2\), got 2"),
        (GOOD, [0, -1], ValueError, r"labels must lie in \[0, 2\), got -1"),
        (GOOD, [0], ValueError, "labels must have one entry per sample: got 1 for 2 samples"),
        (GOOD, [0.0, 1.0], TypeError, "labels must be integer class numbers, got float64"),
        (GOOD[None], [0, 1], ValueError, r"average the members first, probs.mean\(0\)"),
        (GOOD[0], [0, 1], ValueError, r"probs must have shape \(N, C\), got \(2,\)"),
        (GOOD * 2, [0, 1], ValueError, "probs must sum to 1 in every row, got a row that sums to 2"),
        (np.array([[1.5, -0.5]]), [0], ValueError, "probs must not be negative, got -0.5"),
        (np.array([[math.nan, 1]]), [0], ValueError, "probs must be finite"),
        (np.zeros((0, 2)), [], ValueError, "probs must not be empty"),
    ],
)
@pytest.mark.parametrize("function", [ece, brier, nll, reliability])
def test_errors(function, probs, labels, error, message):
    with pytest.raises(error, match=message):
        function(probs, np.array(labels))


def test_arguments_out_of_range():
    for bins in (0, 2.5, True):
        with pytest.raises(ValueError, match="bins must be a whole number of at least 1"):
            ece(GOOD, np.array([0, 1]), bins)
    with pytest.raises(ValueError, match=r"floor must lie in \[0, 1\), got -1"):
        nll(GOOD, np.array([0, 1]), floor=-1)
    with pytest.raises(ValueError, match="predicted must have one entry per sample"):
        accuracy(np.array([1, 0, 1]), np.array([0, 1]))
    with pytest.raises(ValueError, match=r"probs must have shape \(M, N, C\)"):
        member_accuracy(GOOD, np.array([0, 1]))
