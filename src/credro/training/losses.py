"""The losses of an epoch as they come, and what is at fault where one is not finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from credro.training.feed import Feed
from credro.training.job import TrainingError
from credro.training.sound import unsound

CHECK_EVERY = 16  # batches between two looks at the losses: a look waits for the device
SMALLER_STEPS = "Try a smaller lr, clip=1.0 or a warm-up"


class NonFiniteLoss(TrainingError):  # noqa: N818 (read as a sentence)
    """A member's loss became NaN or infinite."""


@dataclass
class Losses:
    """The losses of an epoch, looked at now and then; says which batch was the first to go wrong.

    why: asked with the number of that batch, says what is at fault and what to do.
    """

    member: int
    epoch: int
    classifies: bool = True
    why: Callable[[int], str] = lambda _: SMALLER_STEPS
    sums: float = 0.0
    hits: int = 0
    seen: int = 0
    batch: int = 0
    pending: list[tuple[Tensor, Tensor, int, float]] = field(default_factory=list)

    def add(self, loss: Tensor, hits: Tensor, size: int, rate: float) -> None:
        """Note a batch's loss, its number of right answers, its size and the learning rate."""
        self.pending.append((loss.detach(), hits, size, rate))
        if len(self.pending) >= CHECK_EVERY:
            self.look()

    def look(self) -> None:
        """Read the noted losses; raise on the first that is not finite."""
        if not self.pending:
            return
        values = torch.stack([p[0] for p in self.pending]).tolist()
        hits = torch.stack([p[1] for p in self.pending]).tolist()
        for value, right, (_, _, size, rate) in zip(values, hits, self.pending, strict=True):
            if not math.isfinite(value):
                raise NonFiniteLoss(
                    f"member {self.member}: the loss became {value} in epoch {self.epoch + 1}, batch {self.batch + 1}, "
                    f"at learning rate {rate:.4g}; its last good checkpoint is kept. {self.why(self.batch)}"
                )
            self.sums += value * size
            self.hits += int(right)
            self.seen += size
            self.batch += 1
        self.pending.clear()

    @property
    def mean(self) -> float:
        """Mean training loss over the samples seen."""
        return self.sums / max(1, self.seen)

    @property
    def accuracy(self) -> float | None:
        """Fraction of right answers while training; None where the targets are real numbers."""
        return self.hits / max(1, self.seen) if self.classifies else None


def at_fault(feed: Feed, epoch: int) -> Callable[[int], str]:
    """What says of a batch why its loss is not finite: its samples or targets, read once more, or the steps taken."""

    def why(batch: int) -> str:
        found = unsound(feed.data, feed.inputs, feed.order(epoch)[feed.slices[batch]])
        return f"The learning rate is not at fault. {found}" if found else SMALLER_STEPS

    return why
