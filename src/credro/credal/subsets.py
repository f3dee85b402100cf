"""Quantities of a credal set that are defined over events, sets of classes: there are 2^C of them.

Bounds are ``lower``, ``upper`` (n, C), members ``members`` (M, n, C); all float64 and differentiable.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache
from math import comb

import torch
from torch import Tensor


def event_sums(x: Tensor) -> Tensor:
    """The sum of ``x`` (..., C) over every event, (..., 2^C): event number e holds class k where bit k of e is set."""
    sums = x.new_zeros(*x.shape[:-1], 1)
    for k in range(x.shape[-1]):
        sums = torch.cat([sums, sums + x[..., k, None]], -1)
    return sums


@lru_cache
def hartley_weights(classes: int) -> Tensor:
    """How much the lower probability of each event (2^C,) counts in the generalised Hartley measure.

    ``sum_A m(A) log|A|`` with the Moebius inverse ``m(A) = sum_{B in A} (-1)^|A - B| P_(B)`` is linear in ``P_``. Put
    together by B, with b = |B| and n = C - b, the weight is ``sum_j (-1)^j comb(n, j) log(b + j)``: an n-th difference
    of the logarithm, negative for every b < C. This sum cancels badly in float64, so it is taken in decimals, once;
    the sum over events does not: all weights together are of the order of log C, where m itself can lose digits.
    """
    with localcontext() as context:
        context.prec = 60
        log = [Decimal(0)] + [Decimal(i).ln() for i in range(1, classes + 1)]
        by_size = [
            float(sum(((-1) ** j * comb(classes - b, j) * log[b + j] for j in range(classes - b + 1)), Decimal(0)))
            for b in range(1, classes + 1)
        ]
    size = event_sums(torch.ones(classes, dtype=torch.float64)).long()
    return torch.tensor([0.0, *by_size], dtype=torch.float64)[size]  # the empty event has probability 0


def box_hartley(lower: Tensor, upper: Tensor) -> Tensor:
    """Generalised Hartley measure (n,) of boxes: ``P_(A) = max(sum_A l, 1 - sum_{not A} u)``."""
    low, high = event_sums(lower), event_sums(upper)
    outside = high[..., -1:] - high  # the sum over the complement
    return torch.maximum(low, 1 - outside) @ hartley_weights(lower.shape[-1]).to(lower)


def hull_hartley(members: Tensor) -> Tensor:
    """Generalised Hartley measure (n,) of hulls: ``P_(A) = min_i p_i(A)``."""
    return event_sums(members).amin(0) @ hartley_weights(members.shape[-1]).to(members)


def box_imprecision(lower: Tensor, upper: Tensor) -> Tensor:
    """``max_A P^(A) - P_(A)`` (n,) of boxes, exactly, in O(2^(C/2)).

    With widths ``w = u - l`` the imprecision of an event is ``min(w(A), w(not A), sum u - 1, 1 - sum l)``. The last two
    do not depend on A, so the best event has the largest ``w(A)`` that is at most half of all widths: a subset-sum
    problem (NP-hard in general). Sort the sums over one half of the classes; for each sum over the other half look up
    the best partner.
    """
    with torch.no_grad():
        width = upper - lower
        half = width.shape[-1] // 2
        first, second = event_sums(width[..., :half]), event_sums(width[..., half:])
        second, order = second.sort(-1)
        total = width.sum(-1, keepdim=True)
        # Rounding must not push a sum that is exactly one half over it.
        room = total / 2 * (1 + 1e-12) - first
        partner = (torch.searchsorted(second, room, right=True) - 1).clamp_min(0)
        reach = first + second.gather(-1, partner)
        best = torch.minimum(reach, total - reach).argmax(-1, keepdim=True)
        event = torch.cat(
            [_holds(best, half), _holds(order.gather(-1, partner.gather(-1, best)), width.shape[-1] - half)], -1
        )
    return torch.minimum(_caps(lower, upper), _parts(upper - lower, event))


def box_imprecision_bound(lower: Tensor, upper: Tensor) -> Tensor:
    """An upper bound (n,) on ``box_imprecision`` in O(C).

    ``min(sum u - 1, 1 - sum l)``, and what is beside the widest class where that holds more than half of all widths:
    no event can then be better than that class alone.
    """
    width = upper - lower
    return torch.minimum(_caps(lower, upper), width.sum(-1) - width.amax(-1))


def hull_imprecision(members: Tensor) -> Tensor:
    """``max_A P^(A) - P_(A)`` (n,) of hulls: the largest total variation distance between two members.

    ``max_A max_ij p_i(A) - p_j(A)``, and for a pair the best event holds the classes where p_i is larger: O(M^2 C).
    """
    most = members.new_zeros(members.shape[1])
    for i in range(1, len(members)):
        most = torch.maximum(most, (members[i] - members[:i]).abs().sum(-1).amax(0) / 2)
    return most


def _holds(event: Tensor, classes: int) -> Tensor:
    """Which classes the events (n, 1) hold: boolean (n, classes)."""
    return (event >> torch.arange(classes, device=event.device)) % 2 == 1


def _caps(lower: Tensor, upper: Tensor) -> Tensor:
    return torch.minimum(upper.sum(-1) - 1, 1 - lower.sum(-1))


def _parts(width: Tensor, event: Tensor) -> Tensor:
    return torch.minimum((width * event).sum(-1), (width * ~event).sum(-1))
