"""When a member's training ends: with the recipe's epochs, or at a relative likelihood (CreRL, Löhr et al., 2025)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from credro._names import ArgumentError
from credro.members.choice import RESOLVED, Choice


@dataclass(frozen=True)
class Stop(Choice):
    """When a member stops. One that waits for others is measured against the first of them, the reference."""

    @property
    def waits_for(self) -> tuple[int, ...]:
        """Members that must be finished before this one starts."""
        return ()

    @property
    def trains(self) -> bool:
        """Whether the member is trained at all, or kept as it started."""
        return True

    def after_epoch(self, nll: float, reference_nll: float) -> tuple[dict[str, Any], bool]:
        """What to note after an epoch, and whether the member stops here. Asked only of one that waits for others.

        nll: the member's mean negative log-likelihood of the training set, network in eval mode, no augmentation,
        whatever loss it is trained by; reference_nll: that of the reference when it was done.
        """
        return {}, False


@dataclass(frozen=True)
class End(Stop):
    """After the recipe's epochs (or early, where the recipe says so)."""

    kind: ClassVar[str] = "end"


@dataclass(frozen=True)
class RelativeLikelihood(Stop):
    """Members at relative likelihoods from ``alpha`` to 1: ``tau = linspace(alpha, 1, M - 1)`` without its end point.

    Member 0 is trained to the end: the reference. The others stop at the end of the first epoch in which
    ``exp(LL(h_i) - LL(h_0)) >= tau_i``.

    alpha: the smallest relative likelihood of a plausible member. 1.0 is the CreDRO paper's best on CIFAR-10.
        0 asks nothing of the members: they are kept as they start, and only the reference is trained.
    threshold: a member's own ``tau_i``; None until ``member`` sets it.
    """

    alpha: float = 1.0
    threshold: float | None = field(default=None, metadata=RESOLVED)
    kind: ClassVar[str] = "relative_likelihood"

    def __post_init__(self) -> None:
        """Check alpha."""
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise ArgumentError("alpha", f"alpha must lie in [0, 1], got {self.alpha}")

    def member(self, i: int, members: int) -> Stop:  # type: ignore[override]
        """Member i's threshold; the reference ends with its epochs."""
        if i == 0:
            return End()
        tau = 0.0 if self.alpha == 0 else self.alpha + (1 - self.alpha) * (i - 1) / (members - 1)
        return replace(self, alpha=0.0 if self.alpha == 0 else 1.0, threshold=tau)  # the range is nothing to a member

    @property
    def waits_for(self) -> tuple[int, ...]:
        """Everyone is measured against member 0."""
        return (0,)

    @property
    def trains(self) -> bool:
        """With alpha = 0 every hypothesis is plausible."""
        return self.threshold != 0.0

    def after_epoch(self, nll: float, reference_nll: float) -> tuple[dict[str, Any], bool]:
        """Relative likelihood ``exp(LL(h_i) - LL(h_0))`` so far, and whether it has reached the threshold."""
        assert self.threshold is not None, "a stop belongs to a member: stop.member(i, M)"
        relative = math.exp(min(700.0, reference_nll - nll))
        return {"relative_likelihood": relative, "reached": relative >= self.threshold}, relative >= self.threshold

    def traits(self) -> dict[str, Any]:
        """The member's threshold."""
        return {"threshold": self.threshold}


STOPS: dict[str, type[Stop]] = {stop.kind: stop for stop in (End, RelativeLikelihood)}
