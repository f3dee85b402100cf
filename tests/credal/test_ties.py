"""Subset sums of tied chords against enumeration of all corners."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import torch

import credro
from credro.credal import box_entropy
from credro.credal.box_entropy import box_lower
from tests.credal import oracles
from tests.credal.test_box_entropy import KINDS, draw


def tied(rng: np.random.Generator, C: int, noise: float, whole: bool) -> oracles.Bounds:
    """Equal slopes but for ``noise``; whole: integer weights, of which some subset often fits exactly."""
    weights = rng.integers(1, 9, C - 1).astype(float) if whole else rng.uniform(0.2, 1, C - 1)
    target = weights[: C // 2].sum() * (1 if whole else 0.93)
    low, high = oracles.equal_slopes(weights, target, middle=0.5 / C, unit=0.3 / C / weights.max())
    shift = noise * rng.uniform(-1, 1, C)
    shift[-1] = -shift[:-1].sum()
    return low + shift, high + shift


def solve(lower, upper, max_nodes=50_000, until=float("inf")):
    return box_lower(
        torch.tensor(np.array(lower)).T.contiguous(), torch.tensor(np.array(upper)).T.contiguous(), max_nodes, until
    )


@pytest.mark.parametrize("after", [1, 2, 4])
def test_looks_at_any_node_keep_the_minimum(monkeypatch, after):
    """However early subset sums are asked, and on whatever box, the value is that of the best corner."""
    monkeypatch.setattr(box_entropy, "LOOK_FOR_TIES", after)
    for kind in sorted(KINDS):
        for C in (2, 3, 5, 8):
            lower, upper = draw(kind, C, n=15, seed=11)
            truth = [oracles.lower_by_enumeration(a, b) for a, b in zip(lower, upper, strict=True)]
            found = solve(lower, upper)
            np.testing.assert_allclose(found.value.numpy(), truth, atol=1e-9, rtol=0, err_msg=f"{kind} {C}")
            assert (found.gap == 0).all()


@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_tied_and_nearly_tied_boxes(monkeypatch, noise, whole, early):
    if early:
        monkeypatch.setattr(box_entropy, "LOOK_FOR_TIES", 2)
    rng = np.random.default_rng(0)
    for C in (4, 9, 14):
        lower, upper = zip(*(tied(rng, C, noise, whole) for _ in range(20 if C < 14 else 3)), strict=True)
        truth = [oracles.lower_by_enumeration(a, b) for a, b in zip(lower, upper, strict=True)]
        found = solve(lower, upper)
        np.testing.assert_allclose(found.value.numpy(), truth, atol=1e-10, rtol=0)
        assert (found.value.numpy() - found.gap.numpy() <= np.array(truth) + 1e-11).all()


def test_twenty_tied_classes_are_solved_within_the_budget():
    rng = np.random.default_rng(1)
    lower, upper = zip(*(tied(rng, 20, 0.0, False) for _ in range(5)), strict=True)
    found = solve(lower, upper)
    assert (found.gap == 0).all()
    assert found.nodes.max() < 1.5 * box_entropy.LOOK_FOR_TIES


def test_a_call_has_a_budget_in_time():
    rng = np.random.default_rng(2)
    lower, upper = zip(*(tied(rng, 60, 1e-6, False) for _ in range(40)), strict=True)
    start = time.monotonic()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        value, gap = credro.lower_entropy(
            credro.Box(np.array(lower), np.array(upper)), max_seconds=0.2, return_gap=True
        )
    assert time.monotonic() - start < 10
    assert np.isfinite(value).all()
    assert (gap >= 0).all()
    assert (gap > 0).any()
    assert any(issubclass(w.category, credro.InexactWarning) for w in said)
    with pytest.raises(ValueError, match="max_seconds must be positive or None, got 0"):
        credro.lower_entropy(credro.Box([0.0, 0.0], [1.0, 1.0]), max_seconds=0)
