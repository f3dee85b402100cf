"""Upper and lower Shannon entropy of credal sets: exact for boxes, to a certified gap for hulls.

Nats unless ``base`` is given. Results are float64 whatever came in, and of the kind (numpy, torch) that came in.
Both entropies of a box, and of a hull, are differentiable in the members or bounds: at an optimum only the active
bounds matter (envelope theorem), so a gradient costs no second solve.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from credro.credal.arrays import chunks, give, to_tensor
from credro.credal.bounds import TINY
from credro.credal.box_entropy import box_lower, box_upper
from credro.credal.hull_entropy import CERTIFIED, entropy, hull_lower, hull_upper
from credro.credal.sets import Box, CredalSet, Hull

MAX_NODES = 50_000
"""Search nodes a sample may take before its lower entropy is reported with a gap."""

HULL_CHUNK = 1 << 20
"""Numbers of one tensor worked on at a time for hulls: their many small operations cost more than the cache saves."""

ROUNDING = 1e-13
"""How far from a bound a class is still at it, for gradients."""


class InexactWarning(UserWarning):
    """Some results are not exact to the stated accuracy; the message says how many and by how much."""


def shannon(p: Any, *, base: float | None = None) -> Any:
    """Shannon entropy (...) of the distributions ``p`` (..., C)."""
    tensor, numpy = to_tensor(p, "p")
    return give(entropy(tensor.to(torch.float64)) / nats_per(base), numpy)


def upper_entropy(credal_set: CredalSet, *, base: float | None = None, return_distribution: bool = False) -> Any:
    """Largest entropy (...) of any distribution in the set: total uncertainty.

    Box: water-filling, exact. Hull: interior point to a certified gap of 1e-8 nats.
    return_distribution: also give the maximiser (..., C).
    """
    if isinstance(credal_set, Box):
        value, p = _over_box(*_flat_bounds(credal_set), _box_upper_chunk)
    else:
        value, p = _over_hull(credal_set, _hull_upper_chunk)
    return _result(credal_set, value, p, base, return_distribution)


def lower_entropy(
    credal_set: CredalSet,
    *,
    base: float | None = None,
    return_distribution: bool = False,
    return_gap: bool = False,
    max_nodes: int = MAX_NODES,
    max_seconds: float | None = None,
) -> Any:
    """Smallest entropy (...) of any distribution in the set: aleatoric uncertainty.

    Box: branch and bound, exact to 1e-12 nats. Hull: the smallest entropy of a member.
    return_distribution: also give the minimiser (..., C). return_gap: also give how far below the value the true
    minimum might be (...), 0 where the search ended. max_nodes: the budget per sample. max_seconds: a
    budget of the whole call, after which every sample left gets one node: what it ends depends on the machine, so
    there is none unless asked for. Where a budget ends the search a warning says for how many samples, and the
    largest gap.
    """
    if max_nodes < 1:
        raise ValueError(f"max_nodes must be at least 1, got {max_nodes}")
    if max_seconds is not None and not max_seconds > 0:
        raise ValueError(f"max_seconds must be positive or None, got {max_seconds}")
    until = math.inf if max_seconds is None else time.monotonic() + max_seconds
    if isinstance(credal_set, Hull):
        value, p = _over_hull(credal_set, _hull_lower_chunk)
        gap = torch.zeros_like(value)
    else:
        lower, upper = _flat_bounds(credal_set)
        gap = torch.zeros(len(lower), dtype=torch.float64, device=lower.device)

        def solve(low: Tensor, high: Tensor, part: slice) -> tuple[Tensor, Tensor]:
            result = box_lower(low, high, max_nodes, until)
            gap[part] = result.gap
            return result.value, result.distribution

        value, p = _over_box(lower, upper, solve)
    if (missed := int((gap > 0).sum())) > 0:
        warnings.warn(
            f"lower entropy: the budget of {max_nodes} nodes a sample"
            + (f" and {max_seconds:g} s a call" if max_seconds else "")
            + f" ended the search for {missed} of {len(gap)} samples; their values are upper bounds, off by at most "
            f"{float(gap.max()):.3g} nats (raise max_nodes{' or max_seconds' if max_seconds else ''})",
            InexactWarning,
            stacklevel=2,
        )
    return _result(credal_set, value, p, base, return_distribution, gap if return_gap else None)


Solver = Callable[[Tensor, Tensor, slice], tuple[Tensor, Tensor]]
"""Bounds (C, n) and which samples they are -> optimal values (n,) and their distributions (C, n)."""


def _box_upper_chunk(lower: Tensor, upper: Tensor, _: slice) -> tuple[Tensor, Tensor]:
    return box_upper(lower, upper)


class _BoxEntropy(torch.autograd.Function):
    """Optimal entropy (N,) over boxes (N, C) and its distribution, differentiable in the bounds."""

    @staticmethod
    def forward(ctx: Any, lower: Tensor, upper: Tensor, solve: Solver) -> tuple[Tensor, Tensor]:
        value = torch.empty(len(lower), dtype=torch.float64, device=lower.device)
        p = torch.empty_like(lower)
        for part in chunks(*lower.shape):
            value[part], best = solve(lower[part].T.contiguous(), upper[part].T.contiguous(), part)
            p[part] = best.T
        ctx.save_for_backward(lower, upper, p)
        ctx.mark_non_differentiable(p)
        ctx.maximised = solve is _box_upper_chunk
        return value, p

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None]:
        lower, upper, p = ctx.saved_tensors
        marginal = -(p.clamp_min(TINY).log() + 1)  # of moving mass into a class
        # Tightening moves bounds by rounding; two classes taken for free because of that would share a wrong price.
        at_lower, at_upper = p <= lower + ROUNDING, p >= upper - ROUNDING
        inside = ~at_lower & ~at_upper
        # What moves into a class comes out of those between their bounds; where there are none the optimum has a
        # kink, and any price between the neighbours' is a subgradient.
        price = (marginal * inside).sum(-1, keepdim=True) / inside.sum(-1, keepdim=True).clamp_min(1)
        middle = marginal.where(upper > lower, torch.nan).nanmedian(-1, keepdim=True).values.nan_to_num(0.0)
        surplus = marginal - torch.where(inside.any(-1, keepdim=True), price, middle)
        if ctx.maximised:  # at a maximum a lower bound can only cost, an upper bound only gain
            low, high = surplus.clamp(max=0), surplus.clamp(min=0)
        else:  # an interval of width zero shares its effect between its two bounds
            share = torch.where(at_lower & at_upper, 0.5, 1.0)
            low = high = surplus * share
        scale = grad.unsqueeze(-1)
        return low * at_lower * scale, high * at_upper * scale, None


def _over_box(lower: Tensor, upper: Tensor, solve: Solver) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _BoxEntropy.apply(lower, upper, solve)  # type: ignore[no-untyped-call]
    return result


def _hull_upper_chunk(members: Tensor) -> tuple[Tensor, Tensor]:
    """Hulls of two classes are intervals, solved as boxes; the others by interior point."""
    if members.shape[-1] <= 2 or members.shape[0] == 1:
        _, p = box_upper(members.amin(0).T.contiguous(), members.amax(0).T.contiguous())
        return entropy(p.T), p.T
    value, p, gap = hull_upper(members.transpose(0, 1))
    if bool((gap > CERTIFIED).any()):
        warnings.warn(
            f"upper entropy of a hull: {int((gap > CERTIFIED).sum())} of {len(gap)} samples were not solved to "
            f"{CERTIFIED:g} nats; the largest certified gap is {float(gap.max()):.3g}",
            InexactWarning,
            stacklevel=4,
        )
    return value, p


def _hull_lower_chunk(members: Tensor) -> tuple[Tensor, Tensor]:
    return hull_lower(members.transpose(0, 1))


def _over_hull(hull: Hull, solve: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Values (N,) and distributions (N, C), chunk by chunk."""
    M, C = hull.count, hull.shape[-1]
    parts = [solve(hull.part(part)) for part in chunks(math.prod(hull.shape[:-1]), M * C, HULL_CHUNK)]
    if not parts:
        empty = torch.zeros(0, C, dtype=torch.float64, device=hull.device)
        return empty.sum(-1), empty
    values, distributions = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(distributions)


def _flat_bounds(box: Box) -> tuple[Tensor, Tensor]:
    C = box.shape[-1]
    N = math.prod(box.shape[:-1])
    lower, upper = box.bounds
    return lower.reshape(N, C), upper.reshape(N, C)


def _result(
    credal_set: CredalSet,
    value: Tensor,
    p: Tensor,
    base: float | None,
    return_distribution: bool,
    gap: Tensor | None = None,
) -> Any:
    """What the caller asked for, in the set's own shape, unit and kind."""
    lead, unit = credal_set.shape[:-1], nats_per(base)
    out = [give((value / unit).reshape(lead), credal_set.numpy)]
    if return_distribution:
        out.append(give(p.reshape(credal_set.shape), credal_set.numpy))
    if gap is not None:
        out.append(give((gap / unit).reshape(lead), credal_set.numpy))
    return out[0] if len(out) == 1 else tuple(out)


def nats_per(base: float | None) -> float:
    """Nats per unit of the base asked for."""
    if base is None:
        return 1.0
    if not base > 1:
        raise ValueError(f"base must be greater than 1 (2 gives bits), got {base}")
    return math.log(base)
