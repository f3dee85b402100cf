"""Box of the members' averaged bounds: CreDE (Wang et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from credro.credal.bounds import intersection
from credro.credal.sets import Box
from credro.readouts.base import Prediction, ReadOut


@dataclass(frozen=True)
class AveragedBoxReadOut(ReadOut):
    """Average the members' lower and upper bounds, then tighten to bounds that are reachable."""

    name: ClassVar[str] = "averaged_box"

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, 2, C), each member's lower and upper bounds. Point predictions: intersection probability."""
        lower, upper = outputs.to(torch.float64).mean(0).unbind(-2)
        box = Box(lower, upper).tighten()
        return Prediction(intersection(*outputs.to(torch.float64).unbind(-2)), intersection(*box.bounds), box)
