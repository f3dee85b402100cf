"""Hull of the members nearest to the mean, sample by sample: CreEns (Nguyen et al., 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from credro.credal.sets import Hull
from credro.readouts.base import Prediction, ReadOut


@dataclass(frozen=True)
class NearestHullReadOut(ReadOut):
    """Convex hull of the ``round((1 - alpha) * M)`` members nearest to the mean, at least one.

    alpha: the share of members left out as outlying, per sample. 0 keeps all, which is the paper's best.
    """

    alpha: float = 0.0
    name: ClassVar[str] = "nearest_hull"

    def __post_init__(self) -> None:
        """Check alpha."""
        if not 0 <= self.alpha < 1:
            raise ValueError(f"alpha must lie in [0, 1), got {self.alpha}")

    def count(self, members: int) -> int:
        """How many members are kept; alpha is taken as the decimal it is written as, and halves are rounded up."""
        return max(1, int((1 - Fraction(str(self.alpha))) * members + Fraction(1, 2)))

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities."""
        mean = Hull(outputs).mean
        distance = torch.linalg.vector_norm(outputs - mean, dim=-1)
        nearest = distance.argsort(dim=0, stable=True)[: self.count(len(outputs)), :, None]
        chosen = outputs.gather(0, nearest.expand(-1, -1, outputs.shape[-1]))
        return Prediction(outputs, mean, Hull(chosen))
