"""What a member's network gives and what is made of it: a head owns everything about prediction.

Outputs to scores, to probabilities, to a point prediction and a label; the per-sample loss, and the true
log-likelihood, whatever loss is trained. The recipe (optimizer, schedule, augmentation, order) is never its business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from credro._names import ArgumentError, one_of
from credro.data.fields import Batch, Fields, call
from credro.members.choice import Choice
from credro.members.loss import PerSampleLoss, cross_entropy, gaussian_nll
from credro.nets import head as last_linear
from credro.nets import set_head

NORMS: dict[str, Callable[[int], nn.Module]] = {"none": nn.Identity, "batch": nn.BatchNorm1d}
"""Normalisations of the logits, from their number."""

IN_CACHE = 1 << 18
"""Numbers of a batch of images that a CPU's cache holds together with what a small network makes of them."""


def answers(net: nn.Module, x: Batch) -> Tensor:
    """``net(x)`` of a network in eval mode. On the CPU images (B, C, H, W) go through in pieces, at least 16 at a time.

    A whole batch leaves the cache at every layer, and is answered the more slowly (``python -m benchmarks training``).
    """
    if isinstance(x, Fields) or x.device.type != "cpu" or x.ndim != 4 or len(x) == 0:
        output: Tensor = call(net, x)
        return output
    size = max(16, IN_CACHE // max(1, x[0].numel()))
    return torch.cat([net(part) for part in torch.split(x, size)])


@dataclass(frozen=True)
class Losses:
    """The losses of a batch: ``robust`` (B,) go to the risk; of ``plain`` (B,), if there are any, the mean is added."""

    robust: Tensor
    plain: Tensor | None = None


@dataclass(frozen=True)
class Head(Choice):
    """How a network ends and how its outputs are understood. The defaults are those of logits under a softmax.

    gives: what the read-outs get, "probabilities" (M, N, C), "bounds" (M, N, 2, C) or "gaussians" (M, N, 2).
    one_by_one: why members cannot be trained at once by one stacked pass; empty: they can.
    """

    gives: ClassVar[str] = "probabilities"
    one_by_one: ClassVar[str] = ""

    def convert(self, net: nn.Module) -> nn.Module:
        """The network with this head, before training and before weights are loaded."""
        return net

    def class_bias(self, net: nn.Module) -> Tensor:
        """The parameter (C,) that is added to the scores of the classes, for starts that change it."""
        bias = last_linear(net).bias
        if bias is None:
            raise ArgumentError("start", "the biased start needs a last layer with a bias")
        return bias

    def losses(self, output: Tensor, target: Tensor, loss: PerSampleLoss) -> Losses:
        """output: (B, ...) of the network while it trains; loss: the recipe's, or the user's own."""
        return Losses(loss(output, target))

    def penalty(self, net: nn.Module, samples: int) -> Tensor | None:
        """What is added to the loss of every batch, such as a divergence from a prior. samples: size of the data."""
        return None

    def without_decay(self, net: nn.Module) -> list[nn.Parameter]:
        """Parameters that weight decay must leave alone."""
        return []

    def scores(self, net: nn.Module, x: Batch) -> Tensor:
        """What is kept of a prediction (B, ...), network in eval mode."""
        return answers(net, x)

    def tempered(self, scores: Tensor, temperature: Tensor | float) -> Tensor:
        """Scores at a temperature, before they become probabilities."""
        return scores / temperature

    def probs(self, scores: Tensor) -> Tensor:
        """Scores (..., C) to what the read-outs take (``gives``)."""
        return scores.softmax(-1)

    def point(self, probs: Tensor) -> Tensor:
        """What ``probs`` gives to one point prediction (..., C) per member."""
        return probs

    def guess(self, output: Tensor) -> Tensor:
        """The class (B,) that a network's output (B, ...) stands for."""
        return output.argmax(-1)

    def held_losses(self, scores: Tensor, target: Tensor, loss: PerSampleLoss) -> Tensor:
        """Per-sample losses (B,) of a member as it predicts, for records and for early stopping."""
        return loss(scores, target)

    def log_likelihood(self, scores: Tensor, target: Tensor) -> Tensor:
        """Log-likelihood (B,) of the targets: classes (B,), or its expectation under soft labels (B, C)."""
        return -cross_entropy(scores, target)


def check_norm(norm: str) -> None:
    """Raise unless logits can be normalised so."""
    one_of("norm", norm, NORMS)


@dataclass(frozen=True)
class Softmax(Head):
    """Logits under a softmax.

    norm: "none", or "batch": BatchNorm on the logits, as CreDE's interval head has it. A choice of its own, since it
    changes EU more than most methods do; the same on both sides of a comparison.
    """

    norm: str = "none"
    kind: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        """Check the norm."""
        super().__post_init__()
        check_norm(self.norm)

    def convert(self, net: nn.Module) -> nn.Module:
        """The last layer keeps its initialisation; its outputs are normalised."""
        if self.norm != "none":
            last = last_linear(net)
            set_head(net, nn.Sequential(last, NORMS[self.norm](last.out_features)))
        return net

    def class_bias(self, net: nn.Module) -> Tensor:
        """Behind a BatchNorm, which takes away any bias before it, its own bias."""
        if self.norm == "none":
            return super().class_bias(net)
        norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d)]
        return norms[-1].bias


@dataclass(frozen=True)
class Gaussian(Head):
    """Mean and log variance (B, 2) of a target that is a real number: regression."""

    kind: ClassVar[str] = "gaussian"
    gives: ClassVar[str] = "gaussians"

    def class_bias(self, net: nn.Module) -> Tensor:
        """There is none."""
        raise ArgumentError("start", "the biased start gives a member's belief to one class, and regression has none")

    def tempered(self, scores: Tensor, temperature: Tensor | float) -> Tensor:
        """A temperature multiplies the variance."""
        factor = torch.as_tensor(temperature, dtype=scores.dtype, device=scores.device).log()
        return torch.stack([scores[..., 0], scores[..., 1] + factor.squeeze(-1)], -1)

    def probs(self, scores: Tensor) -> Tensor:
        """As they are."""
        return scores

    def log_likelihood(self, scores: Tensor, target: Tensor) -> Tensor:
        """Of the targets (B,) under the Gaussians."""
        return -gaussian_nll(scores, target)


def in_one_go(head: Head) -> bool:
    """Whether ``losses`` is nothing but the loss of every sample, so that a stack may compute it for all members."""
    return type(head).losses is Head.losses
