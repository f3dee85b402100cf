"""The interior-point method against closed forms and SciPy, and its certificate against the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from credro.credal import simplex
from credro.credal.simplex import distance_to_hull, minimise


def quadratic(gram: torch.Tensor, linear: torch.Tensor):
    """0.5 w' G w - b' w for each problem."""

    def grad_hess(w, which):
        return (gram[which] @ w.unsqueeze(-1)).squeeze(-1) - linear[which], gram[which]

    return grad_hess


@pytest.mark.parametrize("quick_steps", [simplex.QUICK_STEPS, 0])
def test_projection_onto_the_simplex(monkeypatch, quick_steps):
    """0.5 |w - b|^2 is smallest at max(b - t, 0) with the t that makes the sum 1. Both kinds of step find it."""
    monkeypatch.setattr(simplex, "QUICK_STEPS", quick_steps)
    b = torch.randn(200, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    w, gap = minimise(quadratic(torch.eye(7, dtype=b.dtype).expand(200, 7, 7), b), 200, 7, tol=1e-12, like=b)
    t = torch.full((200, 1), -10.0, dtype=b.dtype), torch.full((200, 1), 10.0, dtype=b.dtype)
    for _ in range(100):
        middle = (t[0] + t[1]) / 2
        more = (b - middle).clamp_min(0).sum(-1, keepdim=True) > 1
        t = torch.where(more, middle, t[0]), torch.where(more, t[1], middle)
    truth = (b - t[0]).clamp_min(0)
    torch.testing.assert_close(w, truth, atol=2e-6, rtol=0)  # a gap of 1e-12 in value leaves 1e-6 in w
    assert (gap <= 1e-12).all()
    value, best = (0.5 * (x - b).square().sum(-1) for x in (w, truth))
    assert (value - best <= gap + 1e-14).all()


def test_the_certificate_holds_when_the_steps_run_out():
    generator = torch.Generator().manual_seed(1)
    b = torch.randn(50, 6, dtype=torch.float64, generator=generator)
    problem = quadratic(torch.eye(6, dtype=b.dtype).expand(50, 6, 6), b)
    w, gap = minimise(problem, 50, 6, tol=1e-12, like=b, max_steps=2)
    best, _ = minimise(problem, 50, 6, tol=1e-12, like=b)
    value, truth = (0.5 * (x - b).square().sum(-1) for x in (w, best))
    assert (gap > 1e-12).any()
    assert (value - truth <= gap + 1e-12).all()
    assert (w > 0).all()
    torch.testing.assert_close(w.sum(-1), torch.ones(50, dtype=b.dtype))


def test_no_problems():
    like = torch.zeros(0, 3, dtype=torch.float64)
    w, gap = minimise(quadratic(like.new_zeros(0, 3, 3), like), 0, 3, tol=1e-9, like=like)
    assert w.shape == (0, 3)
    assert gap.shape == (0,)


@pytest.mark.parametrize(("M", "C"), [(1, 3), (2, 3), (5, 4), (12, 5)])
def test_distance_to_a_hull_against_nonnegative_least_squares(M, C):
    rng = np.random.default_rng([M, C])
    members, points = rng.dirichlet(np.ones(C), (40, M)), rng.dirichlet(np.ones(C), 40)
    found = distance_to_hull(torch.tensor(members), torch.tensor(points)).numpy()
    for member, point, distance in zip(members, points, found, strict=True):
        heavy = 1e5  # weights that must sum to 1 become a heavily weighted equation
        w, _ = nnls(np.vstack([member.T, np.full(M, heavy)]), np.append(point, heavy))
        assert distance == pytest.approx(np.linalg.norm(w @ member - point), abs=1e-6)


def test_mixtures_have_distance_zero():
    rng = np.random.default_rng(2)
    members = rng.dirichlet(np.ones(6), (100, 4))
    mixtures = np.einsum("nm,nmc->nc", rng.dirichlet(np.ones(4), 100), members)
    assert distance_to_hull(torch.tensor(members), torch.tensor(mixtures)).max() < 1e-9
    assert distance_to_hull(torch.tensor(members), torch.tensor(members[:, 0])).max() < 1e-9
