"""How much uncertainty a credal set holds, one number a sample.

Larger is more uncertain; nothing is negative, and everything but ``aleatoric`` and ``total`` is 0 for a set of one
distribution. Entropies are in nats unless ``base`` is given (2 for bits). Results have the leading shape (...) of the
set, are float64, of the kind (numpy, torch) that came in, and differentiable in the bounds or members.

Bounds of a ``Box`` are taken as they stand: where they may be looser than the set they describe, ``tighten()`` first.
Those of ``Box.of(probs)`` never are: the member that gives class k its smallest probability ``l_k`` gives the others at
most their ``u_j``, so ``l_k >= 1 - sum_{j != k} u_j``; likewise for the upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from credro.credal.arrays import chunks, give
from credro.credal.bounds import intersection
from credro.credal.entropy import MAX_NODES, lower_entropy, nats_per, upper_entropy
from credro.credal.sets import Box, CredalSet, Hull
from credro.credal.subsets import box_hartley, box_imprecision, box_imprecision_bound, hull_hartley, hull_imprecision

MAX_HARTLEY_CLASSES = 16
"""Above this the 2^C events of a sample are refused."""
MAX_IMPRECISION_CLASSES = 30
"""Above this the search for the most imprecise event of a box, 2^(C/2) a sample, is refused."""


def total(credal_set: CredalSet, *, base: float | None = None) -> Any:
    """Total uncertainty (...): the largest entropy in the set."""
    return upper_entropy(credal_set, base=base)


def aleatoric(credal_set: CredalSet, *, base: float | None = None, max_nodes: int = MAX_NODES) -> Any:
    """Aleatoric uncertainty (...): the smallest entropy in the set. max_nodes: see ``lower_entropy``."""
    return lower_entropy(credal_set, base=base, max_nodes=max_nodes)


def epistemic(credal_set: CredalSet, *, base: float | None = None, max_nodes: int = MAX_NODES) -> Any:
    """Epistemic uncertainty (...): the entropy gap ``max H - min H`` over the set. max_nodes: see ``lower_entropy``."""
    gap = upper_entropy(credal_set, base=base) - lower_entropy(credal_set, base=base, max_nodes=max_nodes)
    return _not_negative(gap) if isinstance(gap, Tensor) else gap.clip(0)


def mutual_information(probs: Any, *, base: float | None = None) -> Any:
    """Mutual information (...) between the label and the choice of a member: ``H(mean p_i) - mean H(p_i)``.

    probs: (M, ..., C). Taken as the mean divergence of the members from their mean, the same number without the
    cancellation of two entropies that are almost equal.
    """
    return _by_sample(Hull(probs), _mean_divergence, base=base)


def interval_length(credal_set: CredalSet) -> Any:
    """Averaged interval length PIL (...): the mean over the classes of ``u_k - l_k``."""
    return credal_set.width.mean(-1)


def interval_width(credal_set: CredalSet) -> Any:
    """Interval width ``u - l`` (...) of class 1, for two classes."""
    if (C := credal_set.shape[-1]) != 2:
        raise ValueError(f"interval_width is for two classes, got C = {C} (interval_length averages over any number)")
    return credal_set.width[..., 1]


def generalized_hartley(credal_set: CredalSet, *, base: float | None = None) -> Any:
    """Generalised Hartley measure (...): ``sum_A m(A) log|A|``, m the Moebius inverse of the lower probability.

    Non-specificity: 0 for one distribution, log C for all of them, and never smaller for a larger set (the weights of
    ``subsets.hartley_weights`` are negative for all events but the whole space). 2^C events: at most 16 classes.
    """
    if (C := credal_set.shape[-1]) > MAX_HARTLEY_CLASSES:
        raise ValueError(f"generalized_hartley looks at 2^C events: at most {MAX_HARTLEY_CLASSES} classes, got C = {C}")
    measure = box_hartley if isinstance(credal_set, Box) else hull_hartley
    return _by_sample(credal_set, measure, numbers=1 << C, base=base)


def max_mean_imprecision(credal_set: CredalSet, *, bound: bool = False) -> Any:
    """Maximum mean imprecision (...): the largest ``P^(A) - P_(A)`` of any event A.

    It is also the largest total variation distance between two distributions of the set. Hull: exact for any C, the
    largest distance between two members. Box: a subset-sum problem, solved exactly for at most 30 classes.
    bound: give a box's upper bound in linear time, ``min(sum u - 1, 1 - sum l)`` or less, whatever C is.
    """
    if isinstance(credal_set, Hull):
        return _by_sample(credal_set, hull_imprecision)
    if bound:
        return _by_sample(credal_set, box_imprecision_bound)
    if (C := credal_set.shape[-1]) > MAX_IMPRECISION_CLASSES:
        raise ValueError(
            f"max_mean_imprecision of a box is exact for at most {MAX_IMPRECISION_CLASSES} classes, got C = {C}: "
            f"pass bound=True for its upper bound, or use the Hull"
        )
    return _by_sample(credal_set, box_imprecision, numbers=1 << (C + 1) // 2)


def intersection_probability(credal_set: CredalSet) -> Any:
    """Intersection probability (..., C): ``l + a (u - l)`` with one ``a`` for all classes such that the sum is 1.

    A hull's is that of the smallest box around it. Loose bounds give another point than tight ones.
    """
    box = credal_set if isinstance(credal_set, Box) else credal_set.box()
    return give(intersection(*box.bounds), credal_set.numpy)


def _by_sample(
    credal_set: CredalSet, measure: Callable[..., Tensor], *, numbers: int = 0, base: float | None = None
) -> Any:
    """``measure`` (...) of the members (M, n, C) of a hull or the bounds (n, C) of a box, chunk by chunk.

    numbers: how many numbers it works on for each row of C, if more than C.
    """
    unit, (*lead, C) = nats_per(base), credal_set.shape
    N, size = math.prod(lead), max(C, numbers)
    if isinstance(credal_set, Hull):
        parts = [measure(credal_set.part(part)) for part in chunks(N, credal_set.count * size)]
        device = credal_set.device
    else:
        lower, upper = (b.reshape(N, C) for b in credal_set.bounds)
        parts = [measure(lower[part], upper[part]) for part in chunks(N, 2 * size)]
        device = lower.device
    value = torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64, device=device)
    return give(_not_negative(value / unit).reshape(lead), credal_set.numpy)


def _mean_divergence(members: Tensor) -> Tensor:
    """Mean over the members (M, n, C) of ``sum_k p_k log(p_k / mean_k)``, (n,); a class without probability adds 0."""
    seen = members > 0
    ratio = members / members.mean(0).where(seen.any(0), 1.0)
    return (members * ratio.where(seen, 1.0).log()).sum(-1).mean(0)


def _not_negative(x: Tensor) -> Tensor:
    """``x`` with what rounding left below 0 put to 0, and its gradient kept (a clamp would drop it)."""
    return x - x.detach().clamp_max(0)
