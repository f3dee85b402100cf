import math
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from credro.objectives import CVaR, cvar, deltas, kept

DRAWS = torch.Generator()


def losses_of(size, seed=0):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5


def test_the_papers_table_of_selected_samples():
    assert [kept(d, 128) for d in deltas(5, 0.7)] == [89, 99, 108, 118, 128]
    assert [kept(d, 80) for d in deltas(5, 0.7)] == [56, 62, 68, 74, 80]  # 0.775 * 80 is 62; floats say 61


def test_deltas_by_hand():
    assert deltas(5, 0.5) == [0.5, 0.625, 0.75, 0.875, 1.0]
    assert deltas(1, 0.7) == [0.7]
    assert deltas(2, 1.0) == [1.0, 1.0]
    assert deltas(3, 0.6, "exponential") == pytest.approx([0.6, 0.6 + 0.4 * 0.25, 1.0], abs=1e-15)
    assert deltas(3, 0.6, "logarithmic") == pytest.approx([0.6, 0.6 + 0.4 * math.sqrt(0.5), 1.0], abs=1e-15)


@pytest.mark.parametrize("spacing", ["uniform", "exponential", "logarithmic"])
@pytest.mark.parametrize("members", [2, 5, 20])
def test_deltas_rise_from_delta_g_to_one(members, spacing):
    shares = deltas(members, 0.55, spacing)
    assert shares[0] == 0.55
    assert shares[-1] == 1.0
    assert all(a < b for a, b in pairwise(shares))


@given(members=st.integers(2, 21), percent=st.integers(50, 100), batch=st.integers(1, 300))
def test_kept_is_the_floor_in_exact_arithmetic(members, percent, batch):
    start = Fraction(percent, 100)
    for i, delta in enumerate(deltas(members, percent / 100)):
        share = start + (1 - start) * Fraction(i, members - 1)
        assert kept(delta, batch) == max(1, share * batch // 1)


def test_kept_counts_thirds_exactly():
    assert kept(2 / 3, 126) == 84  # one of four members at delta_g = 0.5; as a decimal it would be 83
    assert kept(0.01, 10) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 0.5), "members must be at least 1, got 0"),
        ((5, 0.0), r"delta_g must lie in \(0, 1\], got 0.0"),
        ((5, 1.5), r"delta_g must lie in \(0, 1\], got 1.5"),
        ((5, float("nan")), r"delta_g must lie in \(0, 1\]"),
        ((5, 0.5, "cubic"), "spacing must be one of uniform, exponential, logarithmic, got 'cubic'"),
    ],
)
def test_bad_schedules_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        deltas(*arguments)
    with pytest.raises(ValueError, match=r"delta_g|spacing"):
        CVaR(delta_g=2.0, spacing="cubic")


def test_below_one_half_warns():
    with pytest.warns(UserWarning, match=r"delta_g = 0\.3 is below 0\.5"):
        assert deltas(3, 0.3) == pytest.approx([0.3, 0.65, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deltas(3, 0.5)


def linear_program(losses, level, cap):
    """Largest mean loss over weights in [0, cap / level] that sum to 1: CVaR as the worst reweighting."""
    count = len(losses)
    found = linprog(-losses, A_eq=np.ones((1, count)), b_eq=[1.0], bounds=[(0, cap / level)] * count)
    return -found.fun


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 30), percent=st.integers(5, 100), seed=st.integers(0, 99))
def test_cvar_is_the_worst_reweighting(size, percent, seed):
    delta, losses = percent / 100, losses_of(size, seed)
    k = kept(delta, size)
    assert float(cvar(losses, delta)) == pytest.approx(linear_program(losses.numpy(), k, 1), rel=1e-9)
    level = max(1.0, float(Fraction(percent, 100) * size))
    full = float(cvar(losses, delta, remainder=True))
    assert full == pytest.approx(linear_program(losses.numpy(), level, 1), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(4, 40), percent=st.integers(25, 100), seed=st.integers(0, 99))
def test_with_the_remainder_it_is_the_dual_form(size, percent, seed):
    """min over eta of eta + mean(relu(l - eta)) / delta: piecewise linear, so the minimum is at one of the losses."""
    delta, losses = percent / 100, losses_of(size, seed)

    def dual(eta):
        return float(eta + (losses - eta).clamp_min(0).mean() / delta)

    full = float(cvar(losses, delta, remainder=True))
    assert full == pytest.approx(min(dual(eta) for eta in losses), rel=1e-9)
    assert full <= minimize_scalar(dual, bounds=(0, 5), method="bounded").fun + 1e-9


def test_gradient_flows_to_the_worst_only():
    losses = torch.tensor([0.3, 2.0, 0.1, 1.0, 0.7], requires_grad=True)
    cvar(losses, 0.4).backward()
    assert losses.grad.tolist() == [0.0, 0.5, 0.0, 0.5, 0.0]
    losses.grad = None
    cvar(losses, 0.5, remainder=True).backward()  # 2.5 samples: weights 1, 1, one half
    assert losses.grad.tolist() == pytest.approx([0.0, 0.4, 0.0, 0.4, 0.2])


def test_delta_one_is_the_mean_bit_for_bit():
    losses = losses_of(128).float()
    assert torch.equal(cvar(losses, 1.0), losses.mean())
    assert torch.equal(cvar(losses, 1.0, remainder=True), losses.mean())


@pytest.mark.parametrize("shape", [(0,), (3, 2), ()])
def test_losses_must_be_one_per_sample(shape):
    with pytest.raises(ValueError, match=r"losses must have shape \(B,\)"):
        cvar(torch.zeros(shape), 0.5)


@pytest.mark.parametrize("delta", [0.0, -1.0, 1.5, float("nan")])
def test_delta_must_be_a_share(delta):
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\]"):
        cvar(torch.ones(3), delta)


def test_the_rule_gives_every_member_its_share():
    rule, losses = CVaR(delta_g=0.7), losses_of(128)
    worst_first = losses.sort(descending=True).values
    for member, count in enumerate([89, 99, 108, 118, 128]):
        assert rule.reduce(losses, member, 5, DRAWS) == pytest.approx(float(worst_first[:count].mean()), rel=1e-12)
    assert rule.describe(1, 5) == {"delta": 0.775}
    assert rule.config() == {"rule": "cvar", "delta_g": 0.7, "spacing": "uniform", "remainder": False}
