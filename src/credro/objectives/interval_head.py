"""CreDE's training rule: a head that gives an interval per class (Wang et al., Credal Deep Ensembles, 2024).

The last layer gives 2C numbers through BatchNorm: a centre ``m`` and, through softplus, a half-width ``h`` per class.
``q_k = exp(m_k ± h_k) / (sum_{j != k} exp(m_j) + exp(m_k ± h_k))`` are the bounds (its interval softmax): the upper
one is trained on the mean loss, the lower one on the worst ``delta`` of each batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from credro.credal.bounds import intersection
from credro.nets import head, set_head
from credro.objectives.base import Rule
from credro.objectives.cvar import cvar, kept
from credro.objectives.losses import PerSampleLoss


class IntervalHead(nn.Module):
    """Features (B, F) to centres and half-widths (B, 2, C)."""

    def __init__(self, features: int, classes: int) -> None:
        """A linear layer and BatchNorm, as published."""
        super().__init__()
        self.classes = classes
        self.linear = nn.Linear(features, 2 * classes)
        self.norm = nn.BatchNorm1d(2 * classes)

    def forward(self, x: Tensor) -> Tensor:
        """Half-widths are positive: softplus is applied here, so that a temperature may divide the result."""
        both: Tensor = self.norm(self.linear(x)).unflatten(-1, (2, self.classes))
        return torch.stack([both[..., 0, :], softplus(both[..., 1, :])], -2)


def interval_logits(scores: Tensor) -> Tensor:
    """``m ± h - log sum_{j != k} exp(m_j)``: the bounds are their sigmoids. scores, result: (..., 2, C), lower first.

    The sum without class k is taken from the total by ``log(1 - softmax_k)``, and, where class k holds nearly all of
    it and that difference would be rounding alone, over the others' own maximum: O(C), without overflow.
    """
    m, h = scores.unbind(-2)
    rest = log_sum_exp_of_others(m)
    return torch.stack([m - h - rest, m + h - rest], -2)


def log_sum_exp_of_others(m: Tensor) -> Tensor:
    """``log sum_{j != k} exp(m_j)`` for every k. m, result: (..., C); -inf for a single class."""
    if m.shape[-1] == 1:
        return torch.full_like(m, -torch.inf)
    top, second = m.topk(2, -1).values.unbind(-1)
    largest = m.argmax(-1, keepdim=True)
    # For every class but the largest the total is dominated by the largest, so nothing cancels.
    spread = (m - top.unsqueeze(-1)).exp()
    total = spread.sum(-1, keepdim=True)
    others = top.unsqueeze(-1) + (total - spread).clamp_min(torch.finfo(m.dtype).tiny).log()
    # For the largest itself sum the others relative to the second largest.
    without = (m - second.unsqueeze(-1)).scatter(-1, largest, -torch.inf).exp().sum(-1, keepdim=True)
    return others.scatter(-1, largest, second.unsqueeze(-1) + without.log())


@dataclass(frozen=True)
class IntervalRule(Rule):
    """Every member has an interval head. delta: the share of the worst lower bounds, one for all; 0.5 is published."""

    delta: float = 0.5
    name: ClassVar[str] = "interval_head"
    regresses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check delta."""
        kept(self.delta, 1)

    def convert(self, net: nn.Module, member: int, members: int) -> nn.Module:
        """Put the interval head in the place of the last layer."""
        last = head(net)
        set_head(net, IntervalHead(last.in_features, last.out_features))
        return net

    def loss(
        self,
        output: Tensor,
        target: Tensor,
        per_sample: PerSampleLoss,
        member: int,
        members: int,
        draws: torch.Generator,
    ) -> Tensor:
        """``mean(-log q_U,y) + mean of the worst delta of (-log q_L,y)``, both through logsigmoid."""
        if target.ndim != 1 or target.is_floating_point():
            raise ValueError(
                "interval heads need one class label per sample: upper and lower bounds are not normalised, so "
                "cross-entropy with soft labels is not defined for them (the limit that the method's paper names)"
            )
        logs = logsigmoid(interval_logits(output))
        lower, upper = logs.gather(-1, target.view(-1, 1, 1).expand(-1, 2, 1)).squeeze(-1).unbind(-1)
        return cvar(-lower, self.delta) - upper.mean()

    def probs(self, scores: Tensor) -> Tensor:
        """Lower and upper bounds (..., 2, C)."""
        return interval_logits(scores.to(torch.float64)).sigmoid()

    def point(self, probs: Tensor) -> Tensor:
        """The intersection probability (..., C) of each member's own intervals."""
        return intersection(*probs.unbind(-2))

    def guess(self, output: Tensor) -> Tensor:
        """By the intersection probability."""
        return self.point(self.probs(output)).argmax(-1)

    def losses(self, scores: Tensor, target: Tensor, per_sample: PerSampleLoss) -> Tensor:
        """Negative log-likelihood (B,) of the intersection probability."""
        return -self.point(self.probs(scores)).gather(-1, target[:, None]).squeeze(-1).clamp_min(1e-300).log()

    def describe(self, member: int, members: int) -> dict[str, Any]:
        """Nothing sets the members apart but their randomness."""
        return {}

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """The share alone: members do not know of each other."""
        return self.config()
