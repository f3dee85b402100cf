"""A network for tables: every feature by itself through waves of its own, then linear layers.

A plain MLP on standardised features is slow to learn what a tree sees at once: that a feature matters between two of
its values only. Learned waves of every feature (Gorishniy, Rubachev and Babenko, 2022, "On Embeddings for Numerical
Features in Tabular Deep Learning") make that easy; ``python -m benchmarks tables`` shows by how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn

from credro.nets.shape import check_shape
from credro.nets.small import MLP


class Waves(nn.Module):
    """Every feature as it is, and beside it some mixtures of cosines of it alone."""

    def __init__(self, features: int, *, waves: int, mixtures: int, spread: float) -> None:
        """waves: cosines of each feature. mixtures: numbers made of them. spread: see ``TableNet``."""
        super().__init__()
        self.frequency = nn.Parameter(spread * torch.randn(features, waves))
        self.phase = nn.Parameter(math.pi * (2 * torch.rand(features, waves) - 1))
        self.weight = nn.Parameter((2 * torch.rand(features, waves, mixtures) - 1) / math.sqrt(waves))
        self.bias = nn.Parameter(torch.zeros(features, mixtures))

    def forward(self, x: Tensor) -> Tensor:
        """(B, features) to (B, features * (1 + mixtures))."""
        waves = torch.cos(2 * math.pi * self.frequency * x[..., None] + self.phase)
        mixtures = torch.einsum("bfw,fwm->bfm", waves, self.weight) + self.bias
        return torch.cat([x, mixtures.flatten(1)], 1)


class TableNet(MLP):
    """An MLP on waves of every feature; samples of more than one dimension are flattened."""

    def __init__(
        self,
        shape: Sequence[int],
        *,
        classes: int = 10,
        hidden: Sequence[int] = (128, 128),
        waves: int = 16,
        mixtures: int = 3,
        spread: float = 1.0,
    ) -> None:
        """shape: of one sample, (features,). hidden: widths of the layers behind the waves.

        waves: cosines of each feature, and mixtures: numbers made of them. spread: standard deviation of the
        frequencies at the start, in turns per standard deviation of the feature: larger ones see finer steps.
        """
        for name, value in (("waves", waves), ("mixtures", mixtures), ("spread", spread)):
            if not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        features = prod(check_shape(shape))
        super().__init__((features * (1 + mixtures),), classes=classes, hidden=hidden)
        self.waves = Waves(features, waves=waves, mixtures=mixtures, spread=spread)

    def forward(self, x: Tensor) -> Tensor:
        """Samples (B, *shape) to logits (B, classes)."""
        return super().forward(self.waves(x.flatten(1)))
