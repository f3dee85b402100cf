"""CreDRO's training rule: every member minimises the mean of the worst delta_i of each batch (paper, Alg. 1, Eq. 7)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from credro.objectives.base import Rule

SPACINGS: dict[str, float] = {"uniform": 1.0, "exponential": 2.0, "logarithmic": 0.5}
"""Power q in ``delta_i = delta_g + (1 - delta_g) t^q``."""


def deltas(members: int, delta_g: float = 0.5, spacing: str = "uniform") -> list[float]:
    """The members' shares ``delta_i = delta_g + (1 - delta_g) t^q``, ``t = (i - 1) / (M - 1)`` (paper, Eq. 7).

    delta_g: the smallest share, for the greatest assumed shift; the paper keeps it in [0.5, 1). One member gets it.
    spacing: "uniform" (q = 1), "exponential" (q = 2, dense near delta_g) or "logarithmic" (q = 0.5, dense near 1).
    """
    if members < 1:
        raise ValueError(f"members must be at least 1, got {members}")
    if not 0 < delta_g <= 1:
        raise ValueError(f"delta_g must lie in (0, 1], got {delta_g}")
    if spacing not in SPACINGS:
        raise ValueError(f"spacing must be one of {', '.join(SPACINGS)}, got {spacing!r}")
    if delta_g < 0.5:
        warnings.warn(
            f"delta_g = {delta_g} is below 0.5: the first member sees few samples of each batch, and its training "
            "may become unstable (the paper keeps delta_g in [0.5, 1))",
            stacklevel=2,
        )
    return list(_schedule(members, delta_g, spacing))


@lru_cache(maxsize=64)
def _schedule(members: int, delta_g: float, spacing: str) -> tuple[float, ...]:
    if members == 1:
        return (float(delta_g),)
    q = SPACINGS[spacing]
    # In exact arithmetic where the schedule allows it: 0.7 + 0.3 * 0.25 in floats is not the float nearest to 0.775.
    start = Fraction(str(delta_g))
    steps = [Fraction(i, members - 1) for i in range(members)]
    return tuple(float(start + (1 - start) * (t if q == 1 else Fraction(float(t) ** q))) for t in steps)


@lru_cache(maxsize=256)
def exact(delta: float) -> Fraction:
    """The share as the fraction it stands for: 0.775 is 31/40 and 0.6666666666666666, one of four members', 2/3."""
    if not 0 < delta <= 1:
        raise ValueError(f"delta must lie in (0, 1], got {delta}")
    return Fraction(float(delta)).limit_denominator(1_000_000)


def kept(delta: float, batch: int) -> int:
    """How many of ``batch`` samples the share ``delta`` keeps: ``floor(delta * batch)``, at least one.

    In exact arithmetic: 0.775 of 80 is 62, where floats give 61.
    """
    return max(1, math.floor(exact(delta) * batch))


def cvar(losses: Tensor, delta: float, *, remainder: bool = False) -> Tensor:
    """Mean of the worst ``floor(delta * B)`` of B per-sample losses (paper, Alg. 1).

    losses: (B,). delta = 1 is the plain mean. At least one sample is kept. remainder: give the next sample the weight
    ``delta * B - floor(delta * B)``, which is the conditional value at risk in full; the paper drops it.
    """
    if losses.ndim != 1 or len(losses) == 0:
        raise ValueError(f"losses must have shape (B,) with B >= 1, got {tuple(losses.shape)}")
    B, k = len(losses), kept(delta, len(losses))
    if k == B:
        return losses.mean()
    if not remainder:
        return losses.topk(k).values.mean()
    level = exact(delta) * B
    if level <= 1:
        return losses.max()
    worst = losses.topk(k + 1).values
    return (worst[:k].sum() + float(level - k) * worst[k]) / float(level)


@dataclass(frozen=True)
class Shares(Rule):
    """A rule under which member i learns from the share ``delta_i`` of each batch.

    delta_g: smallest share. spacing: how the shares are spread (see ``deltas``).
    """

    delta_g: float = 0.5
    spacing: str = "uniform"

    def __post_init__(self) -> None:
        """Check the schedule before anything is trained."""
        deltas(1, self.delta_g, self.spacing)

    def delta(self, member: int, members: int) -> float:
        """Member's share."""
        return _schedule(members, self.delta_g, self.spacing)[member]

    def describe(self, member: int, members: int) -> dict[str, Any]:
        """The member's share."""
        return {"delta": self.delta(member, members)}


@dataclass(frozen=True)
class CVaR(Shares):
    """Member i minimises the mean of the worst ``delta_i`` of each batch.

    remainder: keep the fractional sample (see ``cvar``).
    """

    remainder: bool = False
    name: ClassVar[str] = "cvar"

    def reduce(self, losses: Tensor, member: int, members: int, draws: torch.Generator) -> Tensor:
        """Mean of the worst ``delta_i``."""
        return cvar(losses, self.delta(member, members), remainder=self.remainder)

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """The share alone; the member that sees whole batches is one of a deep ensemble."""
        delta = self.delta(member, members)
        return {"rule": "erm"} if delta == 1 else {"rule": self.name, "delta": delta, "remainder": self.remainder}
