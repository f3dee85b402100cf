"""Matrix games, a batch of small ones at once: can the row player be sure not to lose?

``max over w in the simplex of min_j (w A)_j`` is a linear programme. The simplex method on the column player's side
starts from a feasible basis, and at every step both players' current mixtures bound the value from both sides:
``min_j (w A)_j <= value <= max_i (A y)_i``. A game is decided by such a bound, computed from A itself, never by the
state of the tableau.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPS = 1e-13
"""Pivots and reduced costs below this are rounding."""
DANTZIG = 4
"""After this many pivots per row and column Bland's rule takes over: slower, but it cannot cycle."""
MAX_PIVOTS = 40
"""Pivots per row and column after which a game is left open."""


def not_losing(game: Tensor, tol: float) -> tuple[Tensor, Tensor]:
    """Whether the value of each game (n, M, J) is at least ``-tol``, (n,), and which games stayed open (n,).

    Entries lie in [-1, 1]. A game whose optimum is found but where rounding alone separates it from ``-tol`` counts as
    not losing; an open game, which ran out of pivots, does as well.
    """
    n, M, J = game.shape
    holds, spent = (torch.ones(n, dtype=torch.bool, device=game.device) for _ in range(2))
    which = torch.arange(n, device=game.device)
    # Shifted to positive entries: maximise sum(y) subject to (A + 2) y <= 1, y >= 0, from the basis of the slacks.
    ones = game.new_ones(n, M, 1)
    tableau = torch.cat([game + 2, torch.eye(M).to(game).expand(n, M, M), ones], -1)
    cost = torch.cat([game.new_ones(n, J), game.new_zeros(n, M + 1)], -1)
    basis = torch.arange(J, J + M, device=game.device).repeat(n, 1)
    for step in range(MAX_PIVOTS * (M + J)):
        lost = _column_bound(game, tableau, basis) < -tol
        won = _row_bound(game, cost) >= -tol
        gain = cost[:, :-1]
        done = lost | won | (gain.amax(-1) <= EPS)
        holds[which[lost]] = False
        spent[which[done]] = False
        if bool(done.any()):
            which, game, tableau, cost, basis = (t[~done] for t in (which, game, tableau, cost, basis))
        if not len(which):
            break
        _pivot(tableau, cost, basis, bland=step > DANTZIG * (M + J))
    return holds, spent


def _row_bound(game: Tensor, cost: Tensor) -> Tensor:
    """What the row player is sure of (n,) with the mixture that the slacks' prices name."""
    w = (-cost[:, game.shape[2] : -1]).clamp_min(0)
    value: Tensor = (w.unsqueeze(1) @ game).squeeze(1).amin(-1) / w.sum(-1)
    return value.nan_to_num(-torch.inf)  # no price yet: no mixture


def _column_bound(game: Tensor, tableau: Tensor, basis: Tensor) -> Tensor:
    """What the column player is sure not to pay more than (n,) with the mixture of the basis."""
    y = torch.zeros_like(tableau[:, 0, :-1]).scatter_(1, basis, tableau[..., -1].clamp_min(0))[:, : game.shape[2]]
    value: Tensor = (game @ y.unsqueeze(-1)).squeeze(-1).amax(-1) / y.sum(-1)
    return value.nan_to_num(torch.inf)


def _pivot(tableau: Tensor, cost: Tensor, basis: Tensor, *, bland: bool) -> None:
    """One step of the simplex method for every game, in place. tableau: (n, M, K + 1), cost: (n, K + 1)."""
    every = torch.arange(len(basis), device=basis.device)
    gain = cost[:, :-1]
    enter = (gain > EPS).to(torch.uint8).argmax(-1) if bland else gain.argmax(-1)
    column = tableau[every, :, enter]
    ratio = (tableau[..., -1] / column).where(column > EPS, torch.inf)
    if bland:  # of the rows that tie, the one whose basic variable comes first
        tied = ratio <= ratio.amin(-1, keepdim=True) * (1 + EPS)
        leave = basis.where(tied, tableau.shape[2]).argmin(-1)
    else:
        leave = ratio.argmin(-1)
    row = tableau[every, leave] / column[every, leave].unsqueeze(-1)
    tableau -= column.unsqueeze(-1) * row.unsqueeze(1)
    tableau[every, leave] = row
    cost -= cost[every, enter].unsqueeze(-1) * row
    basis[every, leave] = enter
