"""Upper and lower entropy of hulls against SciPy, their certificate, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from credro.credal import simplex
from credro.credal.hull_entropy import CERTIFIED, entropy, hull_lower, hull_upper
from tests.credal import oracles
from tests.credal.strategies import ensembles


def solve(probs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value (N,), distribution (N, C), gap (N,) of the hulls of ``probs`` (M, N, C)."""
    return tuple(x.numpy() for x in hull_upper(torch.tensor(probs).transpose(0, 1)))


def certificate(p: np.ndarray, members: np.ndarray) -> float:
    """How far the entropy of ``p`` can be from the largest over the hull: it lies below its tangent at p."""
    g = -(np.log(np.maximum(p, 1e-300)) + 1)
    return float((members @ g).max() - p @ g)


@settings(max_examples=100, deadline=None)
@given(ensembles(max_members=8, max_classes=9))
def test_every_upper_entropy_is_certified(probs):
    value, p, gap = solve(probs)
    assert (gap <= CERTIFIED).all()
    np.testing.assert_allclose(value, oracles.entropy(p), atol=1e-12)
    for n, point in enumerate(p):
        assert certificate(point, probs[:, n]) <= CERTIFIED + 1e-12
        assert value[n] >= oracles.entropy(probs[:, n]).max() - CERTIFIED


def test_certificate_bounds_the_distance_to_the_best_mixture():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(6, 0.5), (4, 30))
    value, _, _ = solve(probs)
    mixtures = np.einsum("km,mnc->knc", rng.dirichlet(np.ones(4), 5000), probs)
    assert (oracles.entropy(mixtures).max(0) <= value + CERTIFIED).all()


@pytest.mark.parametrize(("M", "C"), [(2, 3), (5, 10), (20, 10), (5, 100)])
def test_upper_against_scipy_from_many_starts(M, C):
    rng = np.random.default_rng([M, C])
    logits = 2 * rng.standard_normal((4, C)) + 1.5 * rng.standard_normal((M, 4, C))
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    value, _, _ = solve(probs)
    for n, ours in enumerate(value):
        theirs = oracles.hull_upper_by_slsqp(probs[:, n], rng, starts=4)
        assert ours >= theirs - 2 * CERTIFIED
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_two_members_against_golden_section():
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(5), (2, 20))
    value, _, _ = solve(probs)
    for (a, b), ours in zip(probs.transpose(1, 0, 2), value, strict=True):

        def along(t, a=a, b=b):
            return -oracles.entropy((1 - t) * a + t * b)

        inside = -minimize_scalar(along, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).fun
        assert ours == pytest.approx(max(inside, oracles.entropy(a), oracles.entropy(b)), abs=1e-8)


def test_one_hot_members_mix_to_the_uniform_distribution():
    value, p, _ = solve(np.eye(5)[:, None, :])
    assert value[0] == pytest.approx(np.log(5), abs=1e-8)
    np.testing.assert_allclose(p[0], 0.2, atol=1e-4)


def test_members_far_more_than_classes_and_affinely_dependent():
    rng = np.random.default_rng(2)
    base = rng.dirichlet(np.ones(4), (3, 20))
    mixed = np.einsum("km,mnc->knc", rng.dirichlet(np.ones(3), 60), base)  # inside the hull of the first three
    few, _, _ = solve(base)
    many, _, gap = solve(np.concatenate([base, mixed, base]))
    np.testing.assert_allclose(many, few, atol=2e-8)
    assert (gap <= CERTIFIED).all()


def test_all_of_many_ensembles_are_solved():
    """Plain predictor-corrector steps cycle on one of these for ever; the damped steps finish it."""
    generator = torch.Generator().manual_seed(0)

    def draw(M: int, scale: float, noise: float) -> torch.Tensor:
        shared = torch.randn(10_000, 10, generator=generator, dtype=torch.float64) * scale
        return (shared + noise * torch.randn(M, 10_000, 10, generator=generator, dtype=torch.float64)).softmax(-1)

    draw(5, 2, 1.0), draw(5, 6, 1.5)
    _, _, gap = hull_upper(draw(20, 2, 1.0).transpose(0, 1)[8900:9000])
    assert (gap <= CERTIFIED).all()


def test_damped_steps_alone_are_enough(monkeypatch):
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(10, 0.3), (8, 50))
    quick, _, _ = solve(probs)
    monkeypatch.setattr(simplex, "QUICK_STEPS", 0)
    slow, _, gap = solve(probs)
    assert (gap <= CERTIFIED).all()
    np.testing.assert_allclose(slow, quick, atol=2e-8)


@pytest.mark.parametrize("smallest", [1e-12, 1e-100, 1e-300, 0.0])
def test_tiny_probabilities(smallest):
    p = np.array([[1 - smallest, smallest, 0.0], [0.5, 0.5 - smallest, smallest], [0.2, 0.8, 0.0]])
    value, _, gap = solve(p[:, None])
    assert gap[0] <= CERTIFIED
    assert value[0] == pytest.approx(oracles.hull_upper_by_slsqp(p, np.random.default_rng(0)), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(ensembles())
def test_lower_is_that_of_a_member_and_of_no_mixture(probs):
    value, p = hull_lower(torch.tensor(probs).transpose(0, 1))
    np.testing.assert_allclose(value.numpy(), oracles.entropy(probs).min(0), atol=1e-12)
    np.testing.assert_allclose(oracles.entropy(p.numpy()), value.numpy(), atol=1e-12)
    mixed = np.einsum("km,mnc->knc", np.random.default_rng(0).dirichlet(np.ones(len(probs)), 100), probs)
    assert (oracles.entropy(mixed) >= value.numpy() - 1e-12).all()


def test_the_gradient_of_entropy_is_finite_at_zero():
    p = torch.tensor([0.0, 0.25, 0.75], dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(entropy(p), p)
    assert torch.isfinite(grad).all()
    torch.testing.assert_close(grad[1:], -(p.detach()[1:].log() + 1))
