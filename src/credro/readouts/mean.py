"""Mean of the members, no credal set: deep ensembles (DE) and EN-DRO. EU is mutual information (paper, Eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from credro.readouts.base import Prediction, ReadOut
from credro.readouts.gaussian import GaussianPrediction


@dataclass(frozen=True)
class MeanReadOut(ReadOut):
    """The members' mean."""

    name: ClassVar[str] = "mean"

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities."""
        return Prediction(outputs, outputs.to(torch.float64).mean(0), None)

    def numbers(self, outputs: Tensor) -> GaussianPrediction:
        """outputs: (M, N, 2), mean and log variance."""
        return GaussianPrediction.of(outputs, credal=False)
