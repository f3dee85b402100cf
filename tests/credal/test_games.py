"""Matrix games against SciPy's linear programmes, ordinary and degenerate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from credro.credal import games
from credro.credal.games import not_losing


def value(game):
    """Largest v such that some mixture w of the rows gives every column at least v."""
    M, J = game.shape
    result = linprog(
        np.r_[np.zeros(M), -1],
        A_ub=np.c_[-game.T, np.ones(J)],
        b_ub=np.zeros(J),
        A_eq=np.r_[np.ones(M), 0][None],
        b_eq=[1],
        bounds=[(0, None)] * M + [(None, None)],
    )
    assert result.success
    return -result.fun


def shifted_to_zero(A, *, by):
    """The games with their values moved to ``by``, so that they are hard to tell from 0."""
    return np.stack([a - value(a) + by for a in A])


@pytest.mark.parametrize(("M", "J"), [(1, 3), (2, 2), (3, 7), (8, 4), (20, 12)])
def test_random_games(M, J):
    rng = np.random.default_rng(M)
    A = rng.uniform(-0.6, 0.4, (25, M, J)) + 0.2 * rng.random((25, 1, 1))
    holds, spent = not_losing(torch.from_numpy(A), 1e-12)
    v = np.array([value(a) for a in A])
    clear = abs(v) > 1e-7
    assert clear.all()
    assert (holds.numpy() == (v > 0)).all()
    assert not spent.any()


@pytest.mark.parametrize("by", [1e-9, -1e-9])
def test_values_within_a_billionth_of_zero(by):
    A = np.random.default_rng(0).uniform(-0.5, 0.5, (30, 5, 6))
    holds, spent = not_losing(torch.from_numpy(shifted_to_zero(A, by=by)), 1e-12)
    assert (holds.numpy() == (by > 0)).all()
    assert not spent.any()


def test_degenerate_games_on_a_grid():
    rng = np.random.default_rng(1)
    A = rng.integers(-2, 3, (150, 4, 4)) / 4
    A[:50, 1] = A[:50, 0]  # equal rows
    A[50:100, :, 1] = A[50:100, :, 0]  # equal columns
    A[100:, :, 3] = 0  # the row player can at best draw
    holds, spent = not_losing(torch.from_numpy(A), 1e-12)
    v = np.array([value(a) for a in A])
    assert (holds.numpy() == (v > -1e-9)).all()  # on the grid a value this close to 0 is 0
    assert (abs(v) < 1e-9).sum() > 20
    assert not spent.any()


def test_blands_rule_alone_comes_to_the_same_answers(monkeypatch):
    monkeypatch.setattr(games, "DANTZIG", -1)
    A = np.random.default_rng(2).integers(-2, 3, (60, 4, 5)) / 4
    holds, spent = not_losing(torch.from_numpy(A), 1e-12)
    assert (holds.numpy() == np.array([value(a) > -1e-9 for a in A])).all()
    assert not spent.any()


def test_a_game_without_pivots_left_stays_open_and_counts_as_not_losing(monkeypatch):
    monkeypatch.setattr(games, "MAX_PIVOTS", 0)
    holds, spent = not_losing(torch.full((2, 3, 4), -0.5, dtype=torch.float64), 1e-12)
    assert holds.all()
    assert spent.all()


def test_no_games():
    holds, spent = not_losing(torch.zeros(0, 3, 4, dtype=torch.float64), 1e-12)
    assert holds.shape == spent.shape == (0,)
