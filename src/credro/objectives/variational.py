"""CreBNN's training rule: mean-field Gaussian networks under different priors (Caprio et al., 2024).

Every convolution and linear layer draws its weights as ``mu + softplus(rho) * eps`` (Bayes by backprop: Blundell et
al., 2015); BatchNorm stays deterministic. Member i's prior is a Gaussian of mean 0 and its own deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils import parametrize

from credro.objectives.base import Rule, answers

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""What is made variational; anything else is left alone."""


class Gaussian(nn.Module):
    """A parametrisation: the weight is drawn anew at every use in training, ``mu + softplus(rho) * eps``.

    In prediction one draw is held until ``drawn_from`` renews it, so that a batch may go through in pieces.
    """

    def __init__(self, like: Tensor, std: float) -> None:
        """std: the posterior's deviation at the start."""
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

    def kl(self, mu: Tensor, prior: float) -> Tensor:
        """``KL(N(mu, sigma^2) || N(0, prior^2))`` summed over the weights, in closed form."""
        sigma = softplus(self.rho)
        return (math.log(prior) - sigma.log() + (sigma.square() + mu.square()) / (2 * prior**2) - 0.5).sum()


def make_variational(net: nn.Module, std: float = 0.05) -> nn.Module:
    """Give every weight and bias of the convolution and linear layers of ``net`` a Gaussian posterior, in place."""
    for module in list(net.modules()):
        if isinstance(module, LAYERS):
            for name in [n for n, p in module.named_parameters(recurse=False) if p is not None]:
                parametrize.register_parametrization(module, name, Gaussian(getattr(module, name), std), unsafe=True)
    return net


def posteriors(net: nn.Module) -> Iterator[tuple[Gaussian, Tensor]]:
    """Every Gaussian of a variational network with its mean."""
    for module in net.modules():
        if parametrize.is_parametrized(module):
            for weights in module.parametrizations.values():  # type: ignore[operator]
                yield weights[0], weights.original


def divergence(net: nn.Module, prior: float) -> Tensor:
    """KL of the whole posterior from the prior."""
    return torch.stack([gaussian.kl(mu, prior) for gaussian, mu in posteriors(net)]).sum()


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
class VariationalRule(Rule):
    """Member i minimises cross-entropy plus ``kl_weight * KL / N`` under its own prior.

    prior_low, prior_high: deviations of the first and the last member's prior, log-spaced between. std: the posterior's
    deviation at the start. kl_weight: 1 is the evidence bound; the published runs used a far smaller one. samples:
    weight draws that a prediction averages. seed: of those draws, so that two predictions of one input agree.
    """

    prior_low: float = 0.1
    prior_high: float = 3.0
    std: float = 0.05
    kl_weight: float = 1.0
    samples: int = 20
    seed: int = 0
    name: ClassVar[str] = "variational"
    stackable: ClassVar[bool] = False
    regresses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("prior_low", "prior_high", "std"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}")
        if self.kl_weight < 0:
            raise ValueError(f"kl_weight must not be negative, got {self.kl_weight}")

    def prior(self, member: int, members: int) -> float:
        """Deviation of the member's prior."""
        t = member / (members - 1) if members > 1 else 0.0
        return math.exp(math.log(self.prior_low) * (1 - t) + math.log(self.prior_high) * t)

    def convert(self, net: nn.Module, member: int, members: int) -> nn.Module:
        """Make the network variational."""
        return make_variational(net, self.std)

    def penalty(self, net: nn.Module, samples: int, member: int, members: int) -> Tensor | None:
        """``kl_weight * KL / N``."""
        return divergence(net, self.prior(member, members)) * (self.kl_weight / samples)

    def scores(self, net: nn.Module, x: Tensor) -> Tensor:
        """Log of the mean probability (B, C) over the weight draws: the same draws for every batch."""
        draws = torch.Generator().manual_seed(self.seed)
        logs = []
        with drawn_from(net, draws) as renew:
            for _ in range(self.samples):
                renew()
                logs.append(answers(net, x).log_softmax(-1))
        return torch.stack(logs).logsumexp(0) - math.log(self.samples)

    def describe(self, member: int, members: int) -> dict[str, Any]:
        """The member's prior."""
        return {"prior": self.prior(member, members)}

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """The member's own prior in place of the range."""
        own = {k: v for k, v in self.config().items() if k not in ("prior_low", "prior_high")}
        return {**own, "prior": self.prior(member, members)}
