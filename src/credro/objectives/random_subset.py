"""CreRAM's training rule: as many samples as CVaR would keep, but drawn at random (paper, label-noise study)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from credro.objectives.cvar import Shares, kept


@dataclass(frozen=True)
class RandomSubset(Shares):
    """Member i minimises the mean over a random ``floor(delta_i * B)`` of each batch: the control for choosing by loss.

    keep_rest: False leaves the other samples out, as CVaR does; True keeps them at weight 1 beside the chosen ones at
    weight ``1 / delta_i`` (the paper describes the method in one sentence, which allows either).
    """

    keep_rest: bool = False
    name: ClassVar[str] = "random_subset"

    def reduce(self, losses: Tensor, member: int, members: int, draws: torch.Generator) -> Tensor:
        """Mean over the drawn samples."""
        B, delta = len(losses), self.delta(member, members)
        chosen = torch.randperm(B, generator=draws)[: kept(delta, B)].to(losses.device)
        if not self.keep_rest:
            return losses[chosen].mean()
        weights = torch.ones_like(losses).index_fill_(0, chosen, 1 / delta)
        return (weights * losses).sum() / weights.sum()

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """The share, and what becomes of the rest."""
        return {"rule": self.name, "delta": self.delta(member, members), "keep_rest": self.keep_rest}
