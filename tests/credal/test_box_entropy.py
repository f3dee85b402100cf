"""Upper and lower entropy of boxes against enumeration, search, bisection and SciPy (oracles.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from credro.credal.box_entropy import box_lower, box_upper
from tests.credal import oracles
from tests.credal.strategies import boxes

MAX_NODES = 1_000_000


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def around(p: np.ndarray) -> oracles.Bounds:
    return p.min(0), p.max(0)


def ensemble(rng, C, scale, noise):
    return around(softmax(scale * rng.standard_normal(C) + noise * rng.standard_normal((rng.integers(2, 7), C))))


def loose(rng, C):
    """Bounds that no distribution of the set attains."""
    p = rng.dirichlet(np.ones(C))
    return p * rng.random(C) * rng.integers(0, 2, C), np.minimum(1, p + rng.random(C))


def nested(rng, C):
    """Intervals inside one another: none dominates another."""
    middle, width = 1 / C, np.sort(rng.random(C)) / C
    return middle - width * rng.uniform(0.3, 1, C), middle + width * rng.uniform(0.3, 1, C)


def ties(rng, C):
    """At most two different intervals, repeated."""
    low, high = around(rng.dirichlet(np.ones(2), 2) / C)
    pick = rng.integers(0, 2, C)
    return low[pick], np.minimum(1, high[pick] + 1 / C)


def zero_widths(rng, C):
    members = softmax(rng.standard_normal((3, C)))
    fixed = rng.random(C) < 0.5
    return tuple(np.where(fixed, members.mean(0), bound) for bound in around(members))


def one_hot(rng, C):
    return around(np.eye(C)[rng.integers(0, C, 3)])


def tiny(rng, C):
    """Probabilities down to 1e-12 and below, some exactly 0."""
    p = rng.dirichlet(np.ones(C), 3) * 10.0 ** rng.integers(-14, 1, (3, C)) * (rng.random((3, C)) < 0.8)
    p[:, 0] += 0.1
    return around(p / p.sum(-1, keepdims=True))


def hard(rng, C):
    """Equal chord slopes, small whole widths: many fills tie exactly."""
    if C < 3:
        return nested(rng, C)
    weights = rng.integers(1, 6, C - 1)
    return oracles.equal_slopes(weights, weights[: C // 2].sum(), middle=0.5 / C, unit=0.1 / C)


def grid(rng, C):
    """Multiples of 1/8: bounds of different classes meet exactly, and so do sums of them."""
    a, b = rng.multinomial(8, np.full(C, 1 / C), 2) / 8
    return np.minimum(a, b), np.maximum(a, b)


KINDS = {
    "flat": lambda rng, C: around(rng.dirichlet(np.full(C, 3.0), 4)),
    "softmax": lambda rng, C: ensemble(rng, C, 1.5, 1.0),
    "peaky": lambda rng, C: ensemble(rng, C, 6.0, 2.0),
    "tight": lambda rng, C: ensemble(rng, C, 1.0, 1e-6),
    "loose": loose,
    "nested": nested,
    "ties": ties,
    "zero widths": zero_widths,
    "one-hot": one_hot,
    "tiny": tiny,
    "hard": hard,
    "grid": grid,
}


def draw(kind: str, C: int, n: int, seed: int) -> oracles.Bounds:
    """n boxes (n, C) of one kind."""
    rng = np.random.default_rng([seed, C, sorted(KINDS).index(kind)])
    lower, upper = zip(*(KINDS[kind](rng, C) for _ in range(n)), strict=True)
    return np.stack(lower), np.stack(upper)


def solve_lower(lower: np.ndarray, upper: np.ndarray, max_nodes: int = MAX_NODES):
    """Value (N,), distribution (N, C) and gap (N,)."""
    found = box_lower(torch.tensor(lower.T), torch.tensor(upper.T), max_nodes)
    return found.value.numpy(), found.distribution.T.numpy(), found.gap.numpy()


def solve_upper(lower: np.ndarray, upper: np.ndarray) -> oracles.Bounds:
    value, p = box_upper(torch.tensor(lower.T), torch.tensor(upper.T))
    return value.numpy(), p.T.numpy()


def assert_attained(p: np.ndarray, value: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    """``p`` lies in the box and has the entropy ``value``."""
    assert (p >= lower - 1e-12).all()
    assert (p <= upper + 1e-12).all()
    np.testing.assert_allclose(p.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(oracles.entropy(p), value, atol=1e-11)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("C", range(2, 10))
def test_lower_is_that_of_the_best_corner(kind, C):
    lower, upper = draw(kind, C, n=60 if C < 8 else 30, seed=0)
    value, p, gap = solve_lower(lower, upper)
    truth = [oracles.lower_by_enumeration(a, b) for a, b in zip(lower, upper, strict=True)]
    np.testing.assert_allclose(value, truth, atol=1e-9, rtol=0)
    assert (gap == 0).all()
    assert_attained(p, value, lower, upper)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_lower_is_that_of_the_best_corner_on_many_more(kind):
    for C in range(2, 10):
        lower, upper = draw(kind, C, n=2000 if C < 8 else 400, seed=1)
        truth = [oracles.lower_by_enumeration(a, b) for a, b in zip(lower, upper, strict=True)]
        np.testing.assert_allclose(solve_lower(lower, upper)[0], truth, atol=1e-9, rtol=0)


@settings(max_examples=200, deadline=None)
@given(boxes(max_classes=9))
def test_lower_of_any_box(bounds):
    lower, upper = bounds
    value, p, _ = solve_lower(lower, upper)
    truth = [oracles.lower_by_enumeration(a, b) for a, b in zip(lower, upper, strict=True)]
    np.testing.assert_allclose(value, truth, atol=1e-9, rtol=0)
    assert_attained(p, value, lower, upper)


@settings(max_examples=200, deadline=None)
@given(boxes(max_classes=9))
def test_upper_of_any_box(bounds):
    lower, upper = bounds
    value, p = solve_upper(lower, upper)
    truth = np.stack([oracles.upper_by_bisection(a, b) for a, b in zip(lower, upper, strict=True)])
    np.testing.assert_allclose(value, oracles.entropy(truth), atol=1e-11, rtol=0)
    assert_attained(p, value, lower, upper)


LARGE = {
    100: {"softmax": 30, "peaky": 30, "tight": 20, "tiny": 20, "zero widths": 20},
    1000: {"softmax": 4, "peaky": 4, "tight": 4, "tiny": 3, "zero widths": 4},
}


@pytest.mark.parametrize("C", LARGE)
def test_lower_of_many_classes_against_best_first_search(C):
    """The search knows no dominance rule, so this is also a test of that rule."""
    for kind, n in LARGE[C].items():
        lower, upper = draw(kind, C, n, seed=2)
        value, p, gap = solve_lower(lower, upper)
        truth = [oracles.lower_by_search(a, b) for a, b in zip(lower, upper, strict=True)]
        np.testing.assert_allclose(value, truth, atol=1e-9, rtol=0, err_msg=kind)
        assert (gap == 0).all()
        assert_attained(p, value, lower, upper)


@pytest.mark.parametrize("C", [10, 100, 1000])
def test_renumbering_the_classes_changes_nothing(C):
    rng = np.random.default_rng(3)
    for kind in ("softmax", "peaky", "tiny"):
        lower, upper = draw(kind, C, n=3, seed=3)
        order = rng.permutation(C)
        for solve in (solve_lower, solve_upper):
            value, renumbered = solve(lower, upper)[0], solve(lower[:, order], upper[:, order])[0]
            np.testing.assert_allclose(value, renumbered, atol=1e-11, rtol=0)


def test_search_and_enumeration_agree():
    """The two oracles check each other."""
    for kind in KINDS:
        for a, b in zip(*draw(kind, 6, n=5, seed=4), strict=True):
            assert oracles.lower_by_search(a, b) == pytest.approx(oracles.lower_by_enumeration(a, b), abs=1e-9)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("C", [2, 5, 9, 100])
def test_upper_meets_the_conditions_of_optimality(kind, C):
    """A level exists with p = level between the bounds, p >= level at lower and p <= level at upper bounds."""
    lower, upper = draw(kind, C, n=20, seed=5)
    value, p = solve_upper(lower, upper)
    assert_attained(p, value, lower, upper)
    can_fall = np.where(p > lower, p, -np.inf).max(-1)  # the largest that could give mass
    can_rise = np.where(p < upper, p, np.inf).min(-1)  # the smallest that could take it
    assert (can_fall <= can_rise + 1e-13).all()
    truth = np.stack([oracles.upper_by_bisection(a, b) for a, b in zip(lower, upper, strict=True)])
    np.testing.assert_allclose(p, truth, atol=1e-12)


@pytest.mark.parametrize("kind", ["flat", "softmax", "loose", "nested", "zero widths"])
def test_upper_against_a_convex_solver(kind):
    lower, upper = draw(kind, 6, n=5, seed=6)
    value, _ = solve_upper(lower, upper)
    for a, b, ours in zip(lower, upper, value, strict=True):
        start = a + (1 - a.sum()) / (b - a).sum() * (b - a)
        theirs = oracles.entropy(oracles.box_by_slsqp(a, b, start, sign=-1.0))
        assert ours >= theirs - 1e-9
        assert ours == pytest.approx(theirs, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(boxes(max_classes=9))
def test_no_point_of_the_set_lies_beyond(bounds):
    lower, upper = bounds
    smallest, largest = solve_lower(lower, upper)[0], solve_upper(lower, upper)[0]
    rng = np.random.default_rng(0)
    for n, (a, b) in enumerate(zip(lower, upper, strict=True)):
        points = oracles.corners(a, b)
        mixed = rng.dirichlet(np.full(len(points), 0.3), 50) @ points
        inside = oracles.entropy(mixed)
        assert (inside >= smallest[n] - 1e-9).all()
        assert (inside <= largest[n] + 1e-9).all()


def subset_sum(n: int = 14) -> oracles.Bounds:
    """Even weights and an odd target: no subset fits, and a search by bounds must look at a large part of all 2^n."""
    weights = 2 * np.random.default_rng(7).integers(500, 1000, n)
    lower, upper = oracles.equal_slopes(weights, weights[::2].sum() + 1, middle=0.04, unit=1.5e-5)
    return lower[None], upper[None]


@pytest.mark.parametrize("max_nodes", [1, 10, 100])
def test_a_search_cut_short_brackets_the_minimum(max_nodes):
    lower, upper = subset_sum()
    truth = oracles.lower_by_enumeration(lower[0], upper[0])
    value, p, gap = solve_lower(lower, upper, max_nodes)
    assert gap[0] > 0
    assert value[0] - gap[0] - 1e-12 <= truth <= value[0] + 1e-12
    assert_attained(p, value, lower, upper)


def test_the_same_search_ends_when_it_is_let():
    lower, upper = subset_sum()
    found = box_lower(torch.tensor(lower.T), torch.tensor(upper.T), MAX_NODES)
    assert found.value.item() == pytest.approx(oracles.lower_by_enumeration(lower[0], upper[0]), abs=1e-11)
    assert found.gap.item() == 0
    assert found.nodes.item() > 1000  # it really is hard


def test_a_hard_sample_does_not_disturb_its_neighbours():
    lower, upper = subset_sum()
    easy, easy_upper = draw("softmax", lower.shape[1], n=5, seed=8)
    alone = solve_lower(easy, easy_upper)[0]
    value, _, gap = solve_lower(np.concatenate([lower, easy]), np.concatenate([upper, easy_upper]), max_nodes=200)
    np.testing.assert_array_equal(value[1:], alone)
    assert (gap[1:] == 0).all()
    assert gap[0] > 0


def test_few_nodes_are_enough_for_softmax_ensembles():
    lower, upper = draw("softmax", 10, n=2000, seed=9)
    nodes = box_lower(torch.tensor(lower.T), torch.tensor(upper.T), MAX_NODES).nodes
    assert nodes.double().mean() < 8
    assert nodes.max() < 200


@pytest.mark.parametrize("C", [2, 10, 1000])
def test_identical_intervals_are_no_work(C):
    """[0, 2/C] for every class: half the classes full. Any order of filling ties; dominance leaves one."""
    lower, upper = np.zeros((1, C)), np.full((1, C), 2 / C)
    found = box_lower(torch.tensor(lower.T), torch.tensor(upper.T), MAX_NODES)
    assert found.value.item() == pytest.approx(np.log(C / 2), abs=1e-12)
    assert found.nodes.item() <= 3


def test_chains_take_linear_time():
    """Where every two intervals are comparable the answer is the greedy one, however many classes there are."""
    C = 200
    lower = np.linspace(0.0, 0.004, C)[None]
    upper = lower + 0.003 + np.linspace(0, 0.003, C)
    found = box_lower(torch.tensor(lower.T), torch.tensor(upper.T), MAX_NODES)
    p, room = lower[0].copy(), 1 - lower.sum()
    for k in reversed(range(C)):
        take = min(room, upper[0, k] - lower[0, k])
        p[k], room = p[k] + take, room - take
    assert found.value.item() == pytest.approx(float(oracles.entropy(p)), abs=1e-11)
    assert found.nodes.item() <= 2 * C
