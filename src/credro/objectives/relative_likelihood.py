"""CreRL's training rule: members stopped at a relative likelihood (Löhr et al., Credal prediction, 2025).

Member 0 is trained by ERM for the whole schedule: the reference. The others start biased towards one class each
("ToBias") and stop at the end of the first epoch in which their likelihood of the training data, relative to the
reference's, reaches their threshold. Likelihoods are of the plain training set, network in eval mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from credro.nets import head
from credro.objectives.base import Rule

BIAS = 100.0


@dataclass(frozen=True)
class RelativeLikelihood(Rule):
    """Members at relative likelihoods from ``alpha`` to 1.

    alpha: the smallest relative likelihood of a plausible member. 1.0 is the CreDRO paper's best on CIFAR-10.
    0 asks nothing of the members: they keep their biased start, and only the reference is trained.
    """

    alpha: float = 1.0
    name: ClassVar[str] = "relative_likelihood"
    stackable: ClassVar[bool] = False
    regresses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check alpha."""
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must lie in [0, 1], got {self.alpha}")

    def threshold(self, member: int, members: int) -> float:
        """Relative likelihood at which the member stops: ``linspace(alpha, 1, M - 1)`` without its end point."""
        if member == 0:
            return 1.0
        return 0.0 if self.alpha == 0 else self.alpha + (1 - self.alpha) * (member - 1) / (members - 1)

    def trains(self, member: int) -> bool:
        """With alpha = 0 every hypothesis is plausible: only the reference is trained."""
        return member == 0 or self.alpha > 0

    def convert(self, net: nn.Module, member: int, members: int) -> nn.Module:
        """ToBias: before training, member i gives all its belief to class ``(i - 1) mod C``."""
        if member:
            last = head(net)
            if last.bias is None:
                raise ValueError("the biased start needs a last layer with a bias")
            with torch.no_grad():
                last.bias[(member - 1) % last.out_features] = BIAS
        return net

    def waits_for(self, member: int) -> tuple[int, ...]:
        """Everyone is measured against member 0."""
        return (0,) if member else ()

    def after_epoch(
        self,
        member: int,
        members: int,
        fitness: Callable[[], dict[str, float]],
        record: Callable[[int], dict[str, Any]],
    ) -> tuple[dict[str, Any], bool]:
        """Relative likelihood ``exp(LL(h_i) - LL(h_0))`` so far, and whether it has reached the threshold."""
        if not member:
            return {}, False
        relative = math.exp(min(700.0, record(0)["train"]["loss"] - fitness()["loss"]))
        reached = relative >= self.threshold(member, members)
        return {"relative_likelihood": relative, "reached": reached}, reached

    def describe(self, member: int, members: int) -> dict[str, Any]:
        """The member's threshold."""
        return {"threshold": self.threshold(member, members)} if member else {"reference": True}

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """The reference is a member of a deep ensemble; the others differ by threshold and, by number, by start."""
        return {"rule": self.name, "threshold": self.threshold(member, members)} if member else {"rule": "erm"}
