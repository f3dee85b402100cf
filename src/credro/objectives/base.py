"""What a training rule may decide. The recipe (optimiser, schedule, augmentation, order) is never its business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from credro.objectives.losses import PerSampleLoss

IN_CACHE = 1 << 18
"""Numbers of a batch of images that a CPU's cache holds together with what a small network makes of them."""


def answers(net: nn.Module, x: Tensor) -> Tensor:
    """``net(x)`` of a network in eval mode. On the CPU images (B, C, H, W) go through in pieces, at least 16 at a time.

    A whole batch leaves the cache at every layer, and is answered the more slowly (``python -m benchmarks training``).
    """
    if x.device.type != "cpu" or x.ndim != 4 or len(x) == 0:
        output: Tensor = net(x)
        return output
    size = max(16, IN_CACHE // max(1, x[0].numel()))
    return torch.cat([net(part) for part in torch.split(x, size)])


@dataclass(frozen=True)
class Rule:
    """How the members of an ensemble are trained; its fields are the rule's hyper-parameters.

    The methods below are the whole contract, and the defaults are plain empirical risk minimisation, so a new rule
    overrides only what it is about. ``member`` counts from 0 to ``members - 1``.
    """

    name: ClassVar[str]
    stackable: ClassVar[bool] = True  # whether all members can be trained at once by one stacked forward pass
    regresses: ClassVar[bool] = True  # whether the targets may be numbers

    def loss(
        self,
        output: Tensor,
        target: Tensor,
        per_sample: PerSampleLoss,
        member: int,
        members: int,
        draws: torch.Generator,
    ) -> Tensor:
        """The number to minimise for one batch. output: (B, ...) of the network; draws: the member's own randomness."""
        return self.reduce(per_sample(output, target), member, members, draws)

    def reduce(self, losses: Tensor, member: int, members: int, draws: torch.Generator) -> Tensor:
        """Per-sample losses (B,) to one number."""
        return losses.mean()

    def penalty(self, net: nn.Module, samples: int, member: int, members: int) -> Tensor | None:
        """What is added to the loss of every batch, such as a divergence from a prior. samples: size of the data."""
        return None

    def convert(self, net: nn.Module, member: int, members: int) -> nn.Module:
        """The network as this rule needs it, before training and before weights are loaded."""
        return net

    def scores(self, net: nn.Module, x: Tensor) -> Tensor:
        """What is kept of a prediction (B, ...): for most rules the logits. A temperature divides it."""
        return answers(net, x)

    def probs(self, scores: Tensor) -> Tensor:
        """Scores (..., C) to what the read-outs take: probabilities (..., C)."""
        return scores.softmax(-1)

    def point(self, probs: Tensor) -> Tensor:
        """What ``probs`` gives to one point prediction (..., C) per member."""
        return probs

    def guess(self, output: Tensor) -> Tensor:
        """The class (B,) that a network's output (B, ...) stands for."""
        return output.argmax(-1)

    def losses(self, scores: Tensor, target: Tensor, per_sample: PerSampleLoss) -> Tensor:
        """Per-sample losses (B,) of a finished member, for records."""
        return per_sample(scores, target)

    def describe(self, member: int, members: int) -> dict[str, Any]:
        """What sets this member apart, for records and diagnostics."""
        return {}

    def trains(self, member: int) -> bool:
        """Whether the member is trained at all, or kept as ``convert`` made it."""
        return True

    def after_epoch(
        self,
        member: int,
        members: int,
        fitness: Callable[[], dict[str, float]],
        record: Callable[[int], dict[str, Any]],
    ) -> tuple[dict[str, Any], bool]:
        """What to note after an epoch, and whether the member stops here.

        fitness: loss, accuracy and confidence on the training set, in eval mode, when called. record: what a member
        that is done has recorded.
        """
        return {}, False

    def waits_for(self, member: int) -> tuple[int, ...]:
        """Members that must be finished before this one starts."""
        return ()

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """All that decides how this member is trained but its number, seed, network, data and recipe.

        Two members with equal identity and equal rest are the same network, bit for bit, in whatever ensembles.
        """
        return {**self.config(), "members": members}

    def config(self) -> dict[str, Any]:
        """Name and hyper-parameters: two runs with equal ``config`` trained the same networks."""
        return {"rule": self.name, **asdict(self)}
