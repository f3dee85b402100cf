import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from credro.metrics import aupr, auroc, evaluate_ood, fpr_at

# few distinct values, so that ties are the rule
tied = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), min_size=1, max_size=30)


def pooled(eu_id, eu_ood):
    return np.r_[np.zeros(len(eu_id)), np.ones(len(eu_ood))], np.r_[eu_id, eu_ood]


def brute_fpr(eu_id, eu_ood, numerator, denominator):
    """FPR at the largest threshold with TPR >= numerator / denominator, by trying each."""
    for t in sorted({*eu_id, *eu_ood}, reverse=True):
        if sum(s >= t for s in eu_ood) * denominator >= numerator * len(eu_ood):
            return sum(s >= t for s in eu_id) / len(eu_id)
    raise AssertionError("the smallest threshold always qualifies")


@given(tied, tied)
@settings(max_examples=150, deadline=None)
def test_against_brute_force_and_scikit_learn_with_ties(eu_id, eu_ood):
    result = evaluate_ood(np.array(eu_id), np.array(eu_ood))
    pairs = [(o > i) + 0.5 * (o == i) for o in eu_ood for i in eu_id]
    assert result.auroc == pytest.approx(sum(pairs) / len(pairs), abs=1e-14)
    truth, score = pooled(eu_id, eu_ood)
    assert result.auroc == pytest.approx(roc_auc_score(truth, score), abs=1e-12)
    assert result.aupr == pytest.approx(average_precision_score(truth, score), abs=1e-12)
    assert result.fpr95 == brute_fpr(eu_id, eu_ood, 95, 100)
    assert result.mean_id == pytest.approx(np.mean(eu_id))
    assert result.mean_ood == pytest.approx(np.mean(eu_ood))
    if sum(eu_ood) > 0:
        assert result.gap == pytest.approx(1 - np.mean(eu_id) / np.mean(eu_ood))
    else:
        assert math.isnan(result.gap)


@given(tied, tied, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_order_does_not_matter(eu_id, eu_ood, random):
    before = evaluate_ood(np.array(eu_id), np.array(eu_ood))
    random.shuffle(eu_id)
    random.shuffle(eu_ood)
    after = evaluate_ood(np.array(eu_id), np.array(eu_ood))
    assert (before.auroc, before.aupr, before.fpr95) == (after.auroc, after.aupr, after.fpr95)
    assert before.mean_id == pytest.approx(after.mean_id)


@given(tied, tied)
@settings(max_examples=50, deadline=None)
def test_swapping_the_classes_mirrors_auroc(eu_id, eu_ood):
    a, b = np.array(eu_id), np.array(eu_ood)
    assert auroc(a, b) + auroc(b, a) == pytest.approx(1, abs=1e-14)
    assert auroc(np.exp(3 * a), np.exp(3 * b)) == auroc(a, b)  # only the order counts


@pytest.mark.parametrize("digits", [1, 2, 8])
def test_against_scikit_learn_at_size(digits):
    rng = np.random.default_rng(digits)
    eu_id, eu_ood = rng.gamma(1, 1, 3000).round(digits), rng.gamma(2, 1, 2000).round(digits)
    truth, score = pooled(eu_id, eu_ood)
    assert auroc(eu_id, eu_ood) == pytest.approx(roc_auc_score(truth, score), abs=1e-12)
    assert aupr(eu_id, eu_ood) == pytest.approx(average_precision_score(truth, score), abs=1e-12)
    fpr, tpr, _ = roc_curve(truth, score, drop_intermediate=False)
    for level in (0.5, 0.8, 0.95, 1.0):
        assert fpr_at(eu_id, eu_ood, level) == pytest.approx(fpr[tpr >= level][0], abs=1e-12)


def test_the_rate_is_counted_exactly():
    """55 of 100 is 55 %, though 0.55 * 100 exceeds 55 in floats."""
    assert 0.55 * 100 > 55
    eu_ood = np.r_[np.ones(55), np.zeros(45)]
    assert fpr_at(np.array([0.0, 0.5]), eu_ood, 0.55) == 0.0


def test_perfect_useless_and_reversed():
    low, high = np.arange(10.0), np.arange(10.0) + 100
    best = evaluate_ood(low, high)
    assert (best.auroc, best.aupr, best.fpr95) == (1, 1, 0)
    worst = evaluate_ood(high, low)
    assert (worst.auroc, worst.fpr95) == (0, 1)
    same = evaluate_ood(np.ones(30), np.ones(10))
    assert (same.auroc, same.aupr, same.fpr95, same.gap) == (0.5, 0.25, 1, 0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_torch_of_any_precision_is_numpy_in_float64(dtype):
    generator = torch.Generator().manual_seed(0)
    eu_id = torch.rand(500, generator=generator).to(dtype).requires_grad_()
    eu_ood = (torch.rand(400, generator=generator) + 0.2).to(dtype)
    assert evaluate_ood(eu_id, eu_ood) == evaluate_ood(eu_id.detach().double().numpy(), eu_ood.double().numpy())


@pytest.mark.parametrize(
    ("eu_id", "eu_ood", "error", "message"),
    [
        ([1.0, math.nan], [1.0], ValueError, r"eu_id must be finite.*1 of 2 places.*\(1,\)"),
        ([1.0], [math.inf], ValueError, "eu_ood must be finite"),
        ([], [1.0], ValueError, "eu_id must not be empty"),
        ([[1.0]], [1.0], ValueError, r"eu_id must have shape \(N,\), got \(1, 1\)"),
        ([1.0], [True], TypeError, "eu_ood must hold real numbers, got bool"),
        ([1.0], ["a"], TypeError, "eu_ood must hold real numbers"),
    ],
)
def test_errors(eu_id, eu_ood, error, message):
    with pytest.raises(error, match=message):
        evaluate_ood(np.array(eu_id), np.array(eu_ood))


def test_tpr_out_of_range():
    with pytest.raises(ValueError, match=r"tpr must lie in \[0, 1\], got 95"):
        fpr_at(np.ones(2), np.ones(2), 95)
