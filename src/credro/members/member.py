"""One member: its number and what the four choices of training come to for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from credro.members.head import Head
from credro.members.loss import PerSampleLoss
from credro.members.risk import Risk
from credro.members.start import Start
from credro.members.stop import Stop


@dataclass(frozen=True)
class Member:
    """Member ``number``, counted from 0, of an ensemble; its choices are resolved (``Choice.member``)."""

    number: int
    start: Start
    risk: Risk
    head: Head
    stop: Stop

    def prepare(self, net: nn.Module) -> nn.Module:
        """A fresh network as this member begins: with its head, and where it starts."""
        net = self.head.convert(net)
        if self.start.biases:
            self.start.apply(self.head.class_bias(net))
        return net

    def loss(self, output: Tensor, target: Tensor, loss: PerSampleLoss, draws: torch.Generator) -> Tensor:
        """The number to minimise for one batch. output: (B, ...) of the network; draws: the member's own randomness."""
        found = self.head.losses(output, target, loss)
        robust = self.risk.reduce(found.robust, draws)
        return robust if found.plain is None else robust + found.plain.mean()

    def traits(self) -> dict[str, Any]:
        """What sets this member apart, for its record."""
        return {k: v for part in (self.start, self.risk, self.head, self.stop) for k, v in part.traits().items()}

    def left(self, net: nn.Module) -> dict[str, float]:
        """What is left of the start in a trained network."""
        if not self.start.biases:
            return {}
        left = self.start.left(self.head.class_bias(net))
        return {} if left is None else {"bias_left": left}

    def identity(self) -> dict[str, Any]:
        """All that decides how this member is trained but its number, seed, network, data and recipe.

        Two members with equal number, identity and rest are the same network, bit for bit, in whatever ensembles.
        """
        parts = {"start": self.start, "risk": self.risk, "head": self.head, "stop": self.stop}
        return {name: part.identity() for name, part in parts.items()}
