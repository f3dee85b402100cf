"""How a batch's per-sample losses become the one number a member minimises.

The mean (empirical risk, paper, Eq. 1), the mean of the worst ``delta_i`` (CVaR: CreDRO, Alg. 1 and Eq. 7), or the
mean of as many drawn at random (CreRAM). A risk knows nothing of what the losses are.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from credro._names import ArgumentError, one_of
from credro.members.choice import Choice

SPACINGS: dict[str, float] = {"uniform": 1.0, "exponential": 2.0, "logarithmic": 0.5}
"""Power q in ``delta_i = delta_g + (1 - delta_g) t^q``."""


def deltas(members: int, delta_g: float = 0.5, spacing: str = "uniform") -> list[float]:
    """The members' CVaR levels ``delta_i = delta_g + (1 - delta_g) t^q``, ``t = (i - 1) / (M - 1)`` (paper, Eq. 7).

    delta_g: the smallest level, for the greatest assumed shift; the paper keeps it in [0.5, 1). One member gets it.
    spacing: "uniform" (q = 1), "exponential" (q = 2, dense near delta_g) or "logarithmic" (q = 0.5, dense near 1).
    """
    if members < 1:
        raise ArgumentError("members", f"members must be at least 1, got {members}")
    if not 0 < delta_g <= 1:
        raise ArgumentError("delta_g", f"delta_g must lie in (0, 1], got {delta_g}")
    one_of("spacing", spacing, SPACINGS)
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
    """The level as the fraction it stands for: 0.775 is 31/40 and 0.6666666666666666, one of four members', 2/3."""
    if not 0 < delta <= 1:
        raise ArgumentError("delta", f"delta must lie in (0, 1], got {delta}")
    return Fraction(float(delta)).limit_denominator(1_000_000)


def kept(delta: float, batch: int) -> int:
    """How many of ``batch`` samples the level ``delta`` keeps: ``floor(delta * batch)``, at least one.

    In exact arithmetic: 0.775 of 80 is 62, where floats give 61.
    """
    return max(1, math.floor(exact(delta) * batch))


def cvar(losses: Tensor, delta: float, *, remainder: bool = False) -> Tensor:
    """Mean of the worst ``floor(delta * B)`` of B per-sample losses (paper, Alg. 1).

    losses: (B,). delta = 1 is the plain mean. At least one sample is kept. remainder: give the next sample the weight
    ``delta * B - floor(delta * B)``, which is the conditional value at risk in full; the paper drops it.
    """
    if losses.ndim != 1 or len(losses) == 0:
        raise ArgumentError("losses", f"losses must have shape (B,) with B >= 1, got {tuple(losses.shape)}")
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
class Risk(Choice):
    """Reduces the per-sample losses of a batch."""

    def reduce(self, losses: Tensor, draws: torch.Generator) -> Tensor:
        """losses: (B,). draws: the member's own randomness. Only a resolved risk (``risk.member(i, M)``) is asked."""
        raise NotImplementedError(f"risk {self.kind!r} must say how it reduces losses")


@dataclass(frozen=True)
class Mean(Risk):
    """Empirical risk minimisation: members differ by initialisation and order alone."""

    kind: ClassVar[str] = "mean"

    def reduce(self, losses: Tensor, draws: torch.Generator) -> Tensor:
        """The mean."""
        return losses.mean()


L = TypeVar("L", bound="Levels")


@dataclass(frozen=True)
class Levels(Risk):
    """A risk under which member i learns from the fraction ``delta_i`` of each batch.

    delta_g: the smallest level. spacing: how the levels are spread (see ``deltas``).
    delta: one level for all members, in place of the schedule; a resolved risk has its member's own.
    """

    delta_g: float = 0.5
    spacing: str = "uniform"
    delta: float | None = None

    def __post_init__(self) -> None:
        """Check the schedule before anything is trained."""
        super().__post_init__()
        deltas(1, self.delta_g, self.spacing)
        if self.delta is not None:
            exact(self.delta)

    def member(self: L, i: int, members: int) -> Risk:  # type: ignore[override]
        """The member's own level; what it was computed from no longer matters."""
        level = _schedule(members, self.delta_g, self.spacing)[i] if self.delta is None else float(self.delta)
        usual = Levels()
        return replace(self, delta_g=usual.delta_g, spacing=usual.spacing, delta=level)

    @property
    def level(self) -> float:
        """A member's level."""
        if self.delta is None:
            raise ValueError(f"risk {self.kind!r} has a level for each member: risk.member(i, M)")
        return self.delta

    def traits(self) -> dict[str, Any]:
        """The member's level."""
        return {"delta": self.delta}


@dataclass(frozen=True)
class CVaR(Levels):
    """Member i minimises the mean of the worst ``delta_i`` of each batch.

    remainder: keep the fractional sample (see ``cvar``).
    """

    remainder: bool = False
    kind: ClassVar[str] = "cvar"

    def reduce(self, losses: Tensor, draws: torch.Generator) -> Tensor:
        """Mean of the worst ``delta_i``."""
        return cvar(losses, self.level, remainder=self.remainder)

    def identity(self) -> dict[str, Any]:
        """A member that sees whole batches minimises the mean, whatever it is called."""
        return Mean().config() if self.level == 1 else self.config()


@dataclass(frozen=True)
class RandomSubset(Levels):
    """Member i minimises the mean over a random ``floor(delta_i * B)`` of each batch: the control for choosing by loss.

    keep_rest: False leaves the other samples out, as CVaR does; True keeps them at weight 1 beside the chosen ones at
    weight ``1 / delta_i`` (the paper describes the method in one sentence, which allows either).
    """

    keep_rest: bool = False
    kind: ClassVar[str] = "random_subset"

    def reduce(self, losses: Tensor, draws: torch.Generator) -> Tensor:
        """Mean over the drawn samples."""
        B = len(losses)
        chosen = torch.randperm(B, generator=draws)[: kept(self.level, B)].to(losses.device)
        if not self.keep_rest:
            return losses[chosen].mean()
        weights = torch.ones_like(losses).index_fill_(0, chosen, 1 / self.level)
        return (weights * losses).sum() / weights.sum()


RISKS: dict[str, type[Risk]] = {risk.kind: risk for risk in (Mean, CVaR, RandomSubset)}
