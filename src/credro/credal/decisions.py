"""Which classes remain possible decisions when all that is known is a credal set.

Utility is 1 for the true class and 0 for any other, so that the expected utility of class k is ``p_k``. Every rule is
a set of classes, a boolean mask (..., C); none is ever empty, and

    E-admissibility  is within  maximality  is within  interval dominance,

and a smaller set never leaves more classes: a hull's decision is within its box's. In comparisons ``tol`` is in favour
of a class, so that rounding does not rule one out; classes that tie remain together.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from credro.credal.arrays import chunks, give
from credro.credal.bounds import reachable
from credro.credal.entropy import InexactWarning, upper_entropy
from credro.credal.games import not_losing
from credro.credal.measures import intersection_probability
from credro.credal.sets import CredalSet, Hull

TOL = 1e-12
"""How much a probability or a sum of them may miss a comparison through rounding."""

Rule = Callable[[Tensor, Tensor, Tensor | None, float], Tensor]
"""(reachable bounds (n, C) twice, members (M, n, C) of hulls or None for boxes, tol) -> boolean (n, C)."""


@torch.no_grad()
def decide(credal_set: CredalSet, rule: str = "maximality", *, tol: float = TOL) -> Any:
    """The classes that remain: boolean (..., C), at least one per sample.

    rule: class k remains unless
    ``interval_dominance``: some class's lower probability is above k's upper probability;
    ``maximality``: some class j is more probable than k under every p of the set;
    ``e_admissibility``: no p of the set makes k a most probable class;
    ``gamma_maximin``: another class's lower probability is larger (ties remain);
    ``gamma_maximax``: another class's upper probability is larger (ties remain).
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0, got {tol}")
    *lead, C = credal_set.shape
    N = math.prod(lead)
    if isinstance(credal_set, Hull):
        kept = torch.empty(N, C, dtype=torch.bool, device=credal_set.device)
        for part in chunks(N, credal_set.count * C):
            members = credal_set.part(part)
            kept[part] = RULES[rule](*reachable(members.amin(0), members.amax(0)), members, tol)
    else:
        lower, upper = (b.reshape(N, C) for b in credal_set.bounds)
        kept = torch.empty(N, C, dtype=torch.bool, device=lower.device)
        for part in chunks(N, C):
            kept[part] = RULES[rule](*reachable(lower[part], upper[part]), None, tol)
    return give(kept.reshape(credal_set.shape), credal_set.numpy)


def max_entropy_point(credal_set: CredalSet) -> Any:
    """The distribution (..., C) of the set with the largest entropy: its most cautious point prediction."""
    return upper_entropy(credal_set, return_distribution=True)[1]


def label(credal_set: CredalSet, by: str = "mean") -> Any:
    """One class (...) per sample: the most probable one, by a point of the set or by its bounds.

    by: ``mean`` of the members (the intersection probability for a box that was not made of members),
    ``intersection``, ``max_entropy``, ``lower`` (Gamma-maximin) or ``upper`` (Gamma-maximax). The first of equals.
    """
    if by not in SCORES:
        raise ValueError(f"by must be one of {', '.join(SCORES)}, got {by!r}")
    return SCORES[by](credal_set).argmax(-1)


def _interval_dominance(lower: Tensor, upper: Tensor, _: Tensor | None, tol: float) -> Tensor:
    return upper >= lower.amax(-1, keepdim=True) - tol


def _maximality(lower: Tensor, upper: Tensor, members: Tensor | None, tol: float) -> Tensor:
    """Class k goes if ``min (p_j - p_k)`` over the set is above 0 for some j.

    On a box this is interval dominance: reachable bounds allow ``p_j = l_j`` and ``p_k = u_k`` at once, because
    ``l_j >= 1 - sum of the other u`` leaves ``1 - l_j - u_k <= u(rest)`` and ``u_k <= 1 - sum of the other l`` leaves
    ``1 - l_j - u_k >= l(rest)``. So ``min (p_j - p_k) = l_j - u_k``. On a hull it is the smallest over the members.
    """
    kept = _interval_dominance(lower, upper, members, tol)
    if members is None:
        return kept
    # Whoever is ruled out is ruled out by one that remains, so those already gone need not be looked at again.
    index, there, front = _front(members, kept)
    for j in range(front.shape[-1]):
        there &= ~(there[:, j, None] & ((front[..., j, None] - front).amin(0) > tol))
    return torch.zeros_like(kept).scatter_(-1, index, there)


def _e_admissibility(lower: Tensor, upper: Tensor, members: Tensor | None, tol: float) -> Tensor:
    """Class k remains if some p of the set has ``p_k >= p_j`` for all j.

    Box: if and only if ``t = u_k`` (reachable) satisfies ``l_j <= t`` for all j and ``sum_j min(u_j, t) >= 1``. If so,
    p_k = t and the others fit between l_j and min(u_j, t), for their lower bounds sum to at most 1 - t. And if some p
    of the set has k on top, raise p_k to t and lower the others, which stay below it.
    Hull: if some mixture of the members does: a matrix game, ``max_w min_j sum_i w_i (p_ik - p_ij) >= 0``.
    """
    top, order = upper.sort(-1, descending=True)
    rank = torch.arange(upper.shape[-1], device=upper.device)
    capped = rank * top + top.flip(-1).cumsum(-1).flip(-1)  # those above count as t, those below as they are
    fits = torch.zeros_like(upper, dtype=torch.bool).scatter_(-1, order, capped >= 1 - tol)
    kept = _maximality(lower, upper, members, tol)
    if members is None:
        return kept & fits
    index, there, front = _front(members, kept)
    sure = (front >= front.amax(-1, keepdim=True) - tol).any(0)  # most probable to some member
    asked = there & ~sure & fits.gather(-1, index)
    there &= sure & fits.gather(-1, index)
    there[asked] = _most_probable_somewhere(front, asked, tol)
    return torch.zeros_like(kept).scatter_(-1, index, there)


def _most_probable_somewhere(front: Tensor, asked: Tensor, tol: float) -> Tensor:
    """For each true entry of ``asked`` (n, S), whether a mixture of the members ``front`` (M, n, S) favours it."""
    front = front.transpose(0, 1)
    M, S = front.shape[1:]
    sample, k = asked.nonzero(as_tuple=True)
    answers, left = [asked.new_zeros(0)], 0
    for pairs in chunks(len(k), M * (S + M + 1)):
        members = front[sample[pairs]]
        own = members.gather(-1, k[pairs].view(-1, 1, 1).expand(-1, M, 1))
        holds, spent = not_losing(own - members, tol)
        answers.append(holds)
        left += int(spent.sum())
    if left:
        warnings.warn(
            f"e_admissibility: {left} classes were kept without a proof that a mixture of the members favours them",
            InexactWarning,
            stacklevel=6,
        )
    return torch.cat(answers)


def _gamma_maximin(lower: Tensor, _: Tensor, __: Tensor | None, tol: float) -> Tensor:
    return lower >= lower.amax(-1, keepdim=True) - tol


def _gamma_maximax(_: Tensor, upper: Tensor, __: Tensor | None, tol: float) -> Tensor:
    return upper >= upper.amax(-1, keepdim=True) - tol


def _front(members: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The classes that remain, moved to the front so that the others cost nothing.

    Their numbers (n, S), which of these S places are taken (n, S), and the members there (M, n, S), 0 where not taken.
    """
    S = int(kept.sum(-1).max())
    index = kept.to(torch.uint8).argsort(stable=True, descending=True)[:, :S]
    there = kept.gather(-1, index)
    return index, there, members.gather(-1, index.expand(len(members), -1, -1)).where(there, 0.0)


RULES: dict[str, Rule] = {
    "interval_dominance": _interval_dominance,
    "maximality": _maximality,
    "e_admissibility": _e_admissibility,
    "gamma_maximin": _gamma_maximin,
    "gamma_maximax": _gamma_maximax,
}

SCORES: dict[str, Callable[[CredalSet], Any]] = {
    "mean": lambda credal_set: credal_set.mean,
    "intersection": intersection_probability,
    "max_entropy": max_entropy_point,
    "lower": lambda credal_set: credal_set.tighten().lower,
    "upper": lambda credal_set: credal_set.tighten().upper,
}
