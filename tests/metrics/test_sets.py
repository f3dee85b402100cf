import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from credro.metrics import accuracy, coverage_and_size, discounted_accuracy, u65, u80

rows = st.integers(2, 5).flatmap(
    lambda c: st.lists(
        st.tuples(st.lists(st.booleans(), min_size=c, max_size=c), st.integers(0, c - 1)), min_size=1, max_size=20
    )
)


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


@given(rows)
@settings(max_examples=100, deadline=None)
def test_against_brute_force(drawn):
    mask, labels = np.array([m for m, _ in drawn]), np.array([y for _, y in drawn])
    sets = [{k for k, kept in enumerate(m) if kept} for m, _ in drawn]
    z = [1 / len(s) if y in s else 0.0 for s, (_, y) in zip(sets, drawn, strict=True)]
    assert discounted_accuracy(mask, labels) == pytest.approx(mean(z))
    assert u65(mask, labels) == pytest.approx(mean(1.6 * v - 0.6 * v**2 for v in z))
    assert u80(mask, labels) == pytest.approx(mean(2.2 * v - 1.2 * v**2 for v in z))

    result = coverage_and_size(mask, labels)
    held = [(s, y in s) for s, y in zip(sets, labels.tolist(), strict=True)]
    assert result.coverage == pytest.approx(mean(right for _, right in held))
    assert result.size == pytest.approx(mean(len(s) for s in sets))
    assert result.determinacy == pytest.approx(mean(len(s) == 1 for s in sets))
    assert result.single_accuracy == pytest.approx(mean(r for s, r in held if len(s) == 1), nan_ok=True)
    assert result.set_accuracy == pytest.approx(mean(r for s, r in held if len(s) > 1), nan_ok=True)
    assert result.set_size == pytest.approx(mean(len(s) for s in sets if len(s) > 1), nan_ok=True)


@given(rows, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_does_not_matter(drawn, random):
    before = np.array([m for m, _ in drawn]), np.array([y for _, y in drawn])
    random.shuffle(drawn)
    after = np.array([m for m, _ in drawn]), np.array([y for _, y in drawn])
    assert u65(*before) == pytest.approx(u65(*after))
    assert coverage_and_size(*before).coverage == coverage_and_size(*after).coverage


def test_the_utilities_are_named_after_a_right_pair():
    pair, label = np.array([[True, True, False]]), np.array([1])
    assert u65(pair, label) == pytest.approx(0.65)
    assert u80(pair, label) == pytest.approx(0.80)
    assert discounted_accuracy(pair, label) == 0.5


def test_point_predictions_give_accuracy():
    generator = torch.Generator().manual_seed(0)
    predicted, labels = (torch.randint(0, 4, (100,), generator=generator) for _ in range(2))
    mask = torch.nn.functional.one_hot(predicted, 4)  # 0/1 integers do as well as booleans
    wanted = accuracy(predicted, labels)
    result = coverage_and_size(mask, labels)
    assert (result.coverage, result.size, result.determinacy, result.single_accuracy) == (wanted, 1, 1, wanted)
    assert math.isnan(result.set_accuracy)
    assert u65(mask.bool(), labels) == pytest.approx(wanted)
    assert u80(mask.bool(), labels) == pytest.approx(wanted)


def test_an_empty_set_is_wrong_and_worth_nothing():
    mask, labels = np.zeros((2, 3), bool), np.array([0, 1])
    assert (u65(mask, labels), u80(mask, labels), coverage_and_size(mask, labels).size) == (0, 0, 0)


@pytest.mark.parametrize("function", [coverage_and_size, discounted_accuracy, u65, u80])
def test_errors(function):
    mask = np.ones((2, 3), bool)
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 3\), got 3"):
        function(mask, np.array([0, 3]))
    with pytest.raises(ValueError, match="got 1 for 2 samples"):
        function(mask, np.array([0]))
    with pytest.raises(ValueError, match=r"decision must be boolean or 0/1, got 0\.3"):
        function(np.full((2, 3), 0.3), np.array([0, 1]))
    with pytest.raises(ValueError, match=r"decision must have shape \(N, C\), got \(2,\)"):
        function(np.ones(2, bool), np.array([0, 1]))
    with pytest.raises(ValueError, match="decision must not be empty"):
        function(np.ones((0, 3), bool), np.array([], dtype=int))
