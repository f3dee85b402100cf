"""Convex hull of all members: CreDRO with hull (paper, Eq. 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from credro.credal.sets import Hull
from credro.readouts.base import Prediction, ReadOut
from credro.readouts.gaussian import GaussianPrediction


@dataclass(frozen=True)
class HullReadOut(ReadOut):
    """The convex hull of the members."""

    name: ClassVar[str] = "hull"

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities."""
        hull = Hull(outputs)
        return Prediction(outputs, hull.mean, hull)

    def numbers(self, outputs: Tensor) -> GaussianPrediction:
        """outputs: (M, N, 2), mean and log variance."""
        return GaussianPrediction.of(outputs, credal=True)
