"""CreDE's head: an interval per class (Wang et al., Credal Deep Ensembles, 2024).

The last layer gives 2C numbers through BatchNorm: a centre ``m`` and, through softplus, a half-width ``h`` per class.
``q_k = exp(m_k ± h_k) / (sum_{j != k} exp(m_j) + exp(m_k ± h_k))`` are the bounds (its interval softmax): the upper
one is trained on the mean loss, the lower one by the risk: published is CVaR at one level for all members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from credro._names import ArgumentError
from credro.credal.bounds import intersection
from credro.members.head import NORMS, Head, Losses, check_norm
from credro.members.loss import PerSampleLoss, cross_entropy
from credro.nets import head as last_linear
from credro.nets import set_head


class IntervalLayer(nn.Module):
    """Features (B, F) to centres and half-widths (B, 2, C)."""

    def __init__(self, features: int, classes: int, norm: str = "batch") -> None:
        """A linear layer and BatchNorm, as published; norm: "none" leaves the latter out."""
        super().__init__()
        self.classes = classes
        self.linear = nn.Linear(features, 2 * classes)
        self.norm = NORMS[norm](2 * classes)

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
class Interval(Head):
    """Every member gives a lower and an upper probability of each class.

    norm: "batch" (published: BatchNorm on centres and half-widths) or "none".
    """

    norm: str = "batch"
    kind: ClassVar[str] = "interval"
    gives: ClassVar[str] = "bounds"

    def __post_init__(self) -> None:
        """Check the norm."""
        super().__post_init__()
        check_norm(self.norm)

    def convert(self, net: nn.Module) -> nn.Module:
        """Put the interval layer in the place of the last one."""
        last = last_linear(net)
        set_head(net, IntervalLayer(last.in_features, last.out_features, self.norm))
        return net

    def class_bias(self, net: nn.Module) -> Tensor:
        """That of the centres, behind the BatchNorm if there is one."""
        layer = next(m for m in net.modules() if isinstance(m, IntervalLayer))
        last = layer.linear if self.norm == "none" else layer.norm
        bias: Tensor = last.bias  # type: ignore[assignment]
        return bias[: layer.classes]

    def losses(self, output: Tensor, target: Tensor, loss: PerSampleLoss) -> Losses:
        """``-log q_L,y`` for the risk and ``-log q_U,y`` for the mean; any other loss in cross-entropy's place.

        ``q_U,y`` is the softmax of the centres with ``m_y + h_y`` in the place of ``m_y``, so a loss of logits and
        class is one of these logits; with cross-entropy that is the published one, here through logsigmoid.
        """
        if target.ndim != 1 or target.is_floating_point():
            raise ArgumentError(
                "head",
                "interval heads need one class label per sample: upper and lower bounds are not normalised, so "
                "cross-entropy with soft labels is not defined for them (the limit that the method's paper names)",
            )
        if loss is cross_entropy:
            logs = logsigmoid(interval_logits(output))
            lower, upper = logs.gather(-1, target.view(-1, 1, 1).expand(-1, 2, 1)).squeeze(-1).unbind(-1)
            return Losses(-lower, -upper)
        centres, widths = output.unbind(-2)
        own = torch.zeros_like(widths).scatter(-1, target[:, None], widths.gather(-1, target[:, None]))
        return Losses(loss(centres - own, target), loss(centres + own, target))

    def probs(self, scores: Tensor) -> Tensor:
        """Lower and upper bounds (..., 2, C)."""
        return interval_logits(scores.to(torch.float64)).sigmoid()

    def point(self, probs: Tensor) -> Tensor:
        """The intersection probability (..., C) of each member's own intervals."""
        return intersection(*probs.unbind(-2))

    def guess(self, output: Tensor) -> Tensor:
        """By the intersection probability."""
        return self.point(self.probs(output)).argmax(-1)

    def held_losses(self, scores: Tensor, target: Tensor, loss: PerSampleLoss) -> Tensor:
        """The loss (B,) of the intersection probability, whose logarithms are its logits."""
        return loss(self._logs(scores).to(scores.dtype), target)  # a user's own has weights of the network's precision

    def log_likelihood(self, scores: Tensor, target: Tensor) -> Tensor:
        """Of the intersection probability."""
        return -cross_entropy(self._logs(scores), target)

    def _logs(self, scores: Tensor) -> Tensor:
        return self.point(self.probs(scores)).clamp_min(1e-300).log()
