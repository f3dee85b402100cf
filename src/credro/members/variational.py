"""CreBNN's head: mean-field Gaussian networks under different priors (Caprio et al., 2024).

Every convolution and linear layer draws its weights as ``mu + softplus(rho) * eps`` (Bayes by backprop: Blundell et
al., 2015); BatchNorm stays deterministic. Member i's prior is a Gaussian with its own standard deviation and mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils import parametrize

from credro._names import ArgumentError
from credro.data.fields import Batch
from credro.members.head import Head, answers
from credro.nets import head as last_linear

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""What is made variational; anything else is left alone."""


class Posterior(nn.Module):
    """A parametrisation: the weight is drawn anew at every use in training, ``mu + softplus(rho) * eps``.

    In prediction one draw is held until ``drawn_from`` renews it, so that a batch may go through in pieces.
    """

    def __init__(self, like: Tensor, std: float) -> None:
        """std: the posterior's standard deviation at the start."""
        super().__init__()
        self.rho = nn.Parameter(torch.full_like(like, math.log(math.expm1(std))))
        self.draws: torch.Generator | None = None  # prediction sets it; training draws from the member's own stream
        self.held: Tensor | None = None

    def forward(self, mu: Tensor) -> Tensor:
        """A draw of the weight."""
        if self.draws is None:
            return mu + softplus(self.rho) * torch.randn_like(mu)
        if self.held is None:
            self.held = mu + softplus(self.rho) * torch.randn(mu.shape, generator=self.draws).to(mu)
        return self.held

    def kl(self, mu: Tensor, prior: float, mean: float = 0.0) -> Tensor:
        """``KL(N(mu, sigma^2) || N(mean, prior^2))`` summed over the weights, in closed form."""
        sigma, off = softplus(self.rho), (mu - mean if mean else mu).square()
        return (math.log(prior) - sigma.log() + (sigma.square() + off) / (2 * prior**2) - 0.5).sum()


def make_variational(net: nn.Module, std: float = 0.05) -> nn.Module:
    """Give every weight and bias of the convolution and linear layers of ``net`` a Gaussian posterior, in place.

    What is frozen stays as it is.
    """
    for module in list(net.modules()):
        if isinstance(module, LAYERS):
            for name in [n for n, p in module.named_parameters(recurse=False) if p.requires_grad]:
                parametrize.register_parametrization(module, name, Posterior(getattr(module, name), std), unsafe=True)
    return net


def posteriors(net: nn.Module) -> Iterator[tuple[Posterior, Tensor]]:
    """Every Gaussian of a variational network with its mean."""
    for module in net.modules():
        if parametrize.is_parametrized(module):
            for weights in module.parametrizations.values():  # type: ignore[operator]
                yield weights[0], weights.original


def divergence(net: nn.Module, prior: float, mean: float = 0.0) -> Tensor:
    """KL of the whole posterior from the prior."""
    return torch.stack([gaussian.kl(mu, prior, mean) for gaussian, mu in posteriors(net)]).sum()


@contextmanager
def drawn_from(net: nn.Module, draws: torch.Generator) -> Iterator[Callable[[], None]]:
    """Within: every Gaussian of ``net`` draws from ``draws``, once until the function that is given renews them all."""
    gaussians = [gaussian for gaussian, _ in posteriors(net)]

    def set_to(source: torch.Generator | None) -> None:
        for gaussian in gaussians:
            gaussian.draws, gaussian.held = source, None

    try:
        yield lambda: set_to(draws)
    finally:
        set_to(None)


@dataclass(frozen=True)
class Variational(Head):
    """Logits of a network whose weights are drawn: cross-entropy plus ``kl_weight * KL / N`` under each member's prior.

    prior_low, prior_high: standard deviations of the first and the last member's prior, log-spaced between.
    mean_low, mean_high: their means, evenly spaced between; 0 for all by default (the published code varies both).
    std: the posterior's standard deviation at the start. kl_weight: 1 is the evidence bound; the published runs used a
    far smaller one. samples: weight draws that a prediction averages. seed: of those draws, so that two predictions of
    one input agree.
    """

    prior_low: float = 0.1
    prior_high: float = 3.0
    mean_low: float = 0.0
    mean_high: float = 0.0
    std: float = 0.05
    kl_weight: float = 1.0
    samples: int = 20
    seed: int = 0
    kind: ClassVar[str] = "variational"
    one_by_one: ClassVar[str] = "a variational head draws weights from each member's own stream"

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        for name in ("prior_low", "prior_high", "std"):
            if not getattr(self, name) > 0:
                raise ArgumentError(name, f"{name} must be positive, got {getattr(self, name)}")
        if self.samples < 1:
            raise ArgumentError("samples", f"samples must be at least 1, got {self.samples}")
        if self.kl_weight < 0:
            raise ArgumentError("kl_weight", f"kl_weight must not be negative, got {self.kl_weight}")

    def member(self, i: int, members: int) -> Variational:
        """The member's own prior, as the range from it to itself."""
        t = i / (members - 1) if members > 1 else 0.0
        std = math.exp(math.log(self.prior_low) * (1 - t) + math.log(self.prior_high) * t)
        mean = self.mean_low * (1 - t) + self.mean_high * t
        return replace(self, prior_low=std, prior_high=std, mean_low=mean, mean_high=mean)

    def convert(self, net: nn.Module) -> nn.Module:
        """Make the network variational."""
        return make_variational(net, self.std)

    def class_bias(self, net: nn.Module) -> Tensor:
        """The posterior's mean of the last layer's bias."""
        last = last_linear(net)
        if last.bias is None:
            raise ArgumentError("start", "the biased start needs a last layer with a bias")
        bias: Tensor = last.parametrizations.bias.original  # type: ignore[union-attr, assignment]
        return bias

    def penalty(self, net: nn.Module, samples: int) -> Tensor:
        """``kl_weight * KL / N``."""
        return divergence(net, self.prior_low, self.mean_low) * (self.kl_weight / samples)

    def without_decay(self, net: nn.Module) -> list[nn.Parameter]:
        """``rho``: decay would pull every standard deviation to softplus(0) = 0.69, whatever the prior says."""
        return [posterior.rho for posterior, _ in posteriors(net)]

    def scores(self, net: nn.Module, x: Batch) -> Tensor:
        """Log of the mean probability (B, C) over the weight draws: the same draws for every batch."""
        draws = torch.Generator().manual_seed(self.seed)
        logs = []
        with drawn_from(net, draws) as renew:
            for _ in range(self.samples):
                renew()
                logs.append(answers(net, x).log_softmax(-1))
        return torch.stack(logs).logsumexp(0) - math.log(self.samples)

    def traits(self) -> dict[str, Any]:
        """The member's prior."""
        return {"prior": self.prior_low} | ({"prior_mean": self.mean_low} if self.mean_low else {})
