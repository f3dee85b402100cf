"""Upper and lower entropy of convex hulls. Members of a sample are the rows of an (M, C) matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from credro.credal.bounds import TINY
from credro.credal.simplex import minimise

CERTIFIED = 1e-8
"""The certified gap in nats to which the upper entropy of a hull is solved."""


def entropy(p: Tensor) -> Tensor:
    """Shannon entropy in nats over the last axis, with 0 log 0 = 0; the gradient stays finite at 0."""
    return -(p * p.clamp_min(TINY).log()).sum(-1)


def hull_upper(members: Tensor, tol: float = CERTIFIED) -> tuple[Tensor, Tensor, Tensor]:
    """Largest entropy (N,), its distribution (N, C) and the certified gap (N,). members: (N, M, C).

    Concave maximisation over the mixing weights. With ``p = sum_i w_i p_i`` and ``g = -(log p + 1)`` the entropy is at
    most ``max_i <g, p_i> - <g, p>`` below the optimum, because it lies below its tangent.
    """

    now: Tensor | None = None  # the problems still open,
    part = flipped = scaled = members  # their members, those transposed, and room for one product

    def grad_hess(w: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal now, part, flipped, scaled
        if now is not which:
            now, part = which, members.contiguous() if len(which) == len(members) else members[which]
            # Products of untransposed matrices are several times faster.
            flipped, scaled = part.transpose(1, 2).contiguous(), torch.empty_like(part)
        # A class that no member gives any probability plays no part: its zeros stay zeros.
        p = (w.unsqueeze(1) @ part).squeeze(1).clamp_min_(TINY)
        grad = (p.log().unsqueeze(1) @ flipped).squeeze(1)
        return grad, torch.mul(part, p.reciprocal_().unsqueeze(1), out=scaled) @ flipped

    with torch.no_grad():
        weights, gap = minimise(grad_hess, *members.shape[:2], tol=tol, like=members)
    # The weights are optimal, so their own change does not matter: the gradient flows through the members alone.
    p = (weights.unsqueeze(1) @ members).squeeze(1)
    return entropy(p), p, gap


def hull_lower(members: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest entropy (N,) and its distribution (N, C): a concave function is smallest at a corner, a member."""
    value, which = entropy(members).min(1)
    return value, members[torch.arange(len(members), device=members.device), which]
