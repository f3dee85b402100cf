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

from credro.members import CVaR, Mean, RandomSubset, cvar, deltas, kept

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
    levels = deltas(members, 0.55, spacing)
    assert levels[0] == 0.55
    assert levels[-1] == 1.0
    assert all(a < b for a, b in pairwise(levels))


@given(members=st.integers(2, 21), percent=st.integers(50, 100), batch=st.integers(1, 300))
def test_kept_is_the_floor_in_exact_arithmetic(members, percent, batch):
    start = Fraction(percent, 100)
    for i, delta in enumerate(deltas(members, percent / 100)):
        level = start + (1 - start) * Fraction(i, members - 1)
        assert kept(delta, batch) == max(1, level * batch // 1)


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
def test_delta_must_be_a_fraction(delta):
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\]"):
        cvar(torch.ones(3), delta)


def test_every_member_has_its_level():
    risk, losses = CVaR(delta_g=0.7), losses_of(128)
    worst_first = losses.sort(descending=True).values
    for i, count in enumerate([89, 99, 108, 118, 128]):
        own = risk.member(i, 5)
        assert own.reduce(losses, DRAWS) == pytest.approx(float(worst_first[:count].mean()), rel=1e-12)
    assert risk.member(1, 5).traits() == {"delta": 0.775}
    assert risk.config() == {"kind": "cvar", "delta_g": 0.7, "spacing": "uniform", "delta": None, "remainder": False}


def test_one_level_for_all_members():
    risk = CVaR(delta=0.25)
    assert {risk.member(i, 4).level for i in range(4)} == {0.25}
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\]"):
        CVaR(delta=0.0)


def test_a_schedule_cannot_be_asked_before_it_belongs_to_a_member():
    with pytest.raises(ValueError, match="a level for each member"):
        CVaR().reduce(losses_of(4), DRAWS)


def test_members_with_equal_levels_are_trained_alike_whatever_the_schedule():
    assert CVaR(delta_g=0.5).member(1, 3).identity() == CVaR(delta_g=0.75).member(0, 5).identity()
    assert CVaR(delta_g=0.5).member(0, 3).identity() != CVaR(delta_g=0.75).member(0, 3).identity()
    assert CVaR(delta_g=0.5).member(4, 5).identity() == Mean().member(4, 5).identity()
    assert RandomSubset().member(4, 5).identity() != Mean().member(4, 5).identity()  # it draws, and shifts its stream


def test_the_mean_is_the_mean():
    losses = losses_of(31)
    assert float(Mean().member(2, 5).reduce(losses, DRAWS)) == pytest.approx(float(losses.sum()) / 31, rel=1e-12)


POWERS = 2.0 ** torch.arange(10, dtype=torch.float64)  # a sum of powers of two says which were taken


def taken(total):
    return {i for i in range(10) if int(total) >> i & 1}


def test_random_subset_takes_as_many_as_cvar_and_every_sample_equally_often():
    risk, draws, times = RandomSubset(delta_g=0.5), torch.Generator().manual_seed(0), torch.zeros(10)
    for _ in range(4000):
        chosen = taken(round(float(risk.member(0, 5).reduce(POWERS, draws)) * 5))
        assert len(chosen) == 5
        times[list(chosen)] += 1
    # 4000 draws of one half: a standard deviation of 32; 4.5 of them over ten samples
    assert (times - 2000).abs().max() < 4.5 * 32
    for i, count in enumerate([5, 6, 7, 8, 10]):
        assert len(taken(round(float(risk.member(i, 5).reduce(POWERS, draws)) * count))) == count


def test_random_subset_draws_from_the_members_generator_alone():
    risk = RandomSubset().member(0, 5)
    before = torch.get_rng_state()
    first = risk.reduce(POWERS, torch.Generator().manual_seed(3))
    torch.manual_seed(99)
    assert risk.reduce(POWERS, torch.Generator().manual_seed(3)) == first
    torch.set_rng_state(before)


def test_keep_rest_weighs_the_chosen_by_one_over_delta():
    losses = POWERS.clone().requires_grad_()
    RandomSubset(delta_g=0.5, keep_rest=True).member(0, 5).reduce(losses, torch.Generator().manual_seed(0)).backward()
    total = 5 * 2 + 5 * 1
    assert sorted(losses.grad.tolist()) == pytest.approx([1 / total] * 5 + [2 / total] * 5)
