"""Where a member starts: fresh from its initialisation, or biased towards one class ("ToBias", Löhr et al., 2025)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from credro.members.choice import RESOLVED, Choice


@dataclass(frozen=True)
class Start(Choice):
    """What is done to a member's fresh network before its first step."""

    def apply(self, class_bias: Tensor) -> None:
        """class_bias: (C,) of the network's last layer, the parameter of ``Head.class_bias``; changed in place."""

    def left(self, class_bias: Tensor) -> float | None:
        """How much of what ``apply`` did is left after training; None where it does nothing."""
        return None

    @property
    def biases(self) -> bool:
        """Whether ``apply`` needs a bias per class."""
        return False


@dataclass(frozen=True)
class Fresh(Start):
    """The initialisation itself, under the member's own seed."""

    kind: ClassVar[str] = "fresh"


@dataclass(frozen=True)
class Biased(Start):
    """All but the first member give their belief to one class each, in turn.

    bias: what the last layer's bias of that class is set to; 100 is published. Weight decay alone makes it shrink, and
    in short training it stays: each member's record says what is left of it (``bias_left``).
    towards: the class, counted modulo C; None until ``member`` sets it.
    """

    bias: float = 100.0
    towards: int | None = field(default=None, metadata=RESOLVED)
    kind: ClassVar[str] = "biased"

    def member(self, i: int, members: int) -> Start:  # type: ignore[override]
        """The first starts fresh: it is what relative likelihoods refer to."""
        return replace(self, towards=i - 1) if i else Fresh()

    @property
    def biases(self) -> bool:
        """Always."""
        return True

    def _place(self, class_bias: Tensor) -> int:
        assert self.towards is not None, "a start is applied to a member: start.member(i, M)"
        return self.towards % len(class_bias)

    def apply(self, class_bias: Tensor) -> None:
        """``bias[(i - 1) mod C] = 100``."""
        with torch.no_grad():
            class_bias[self._place(class_bias)] = self.bias

    def left(self, class_bias: Tensor) -> float:
        """The bias of the member's class, less the mean of the others'."""
        values, k = class_bias.detach().double(), self._place(class_bias)
        others = (values.sum() - values[k]) / max(1, len(values) - 1)
        return float(values[k] - others)


STARTS: dict[str, type[Start]] = {start.kind: start for start in (Fresh, Biased)}
