"""Class-wise intervals of the members: CreWra, CreDRO, CreRAM, CreRL (paper, Eq. 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from credro.credal.sets import Box
from credro.readouts.base import Prediction, ReadOut
from credro.readouts.gaussian import GaussianPrediction

MEASURES = ("auto", "gap", "width")


@dataclass(frozen=True)
class BoxReadOut(ReadOut):
    """The smallest box around the members.

    measure: "gap" (upper minus lower entropy), "width" (of the interval; two classes only), or "auto": the width for
    two classes, as the paper does in its medical study, and the gap otherwise.
    """

    measure: str = "auto"
    name: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        """Check the measure's name."""
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}")

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities."""
        binary = outputs.shape[-1] == 2
        if self.measure == "width" and not binary:
            raise ValueError(f"measure='width' needs two classes, got {outputs.shape[-1]}: use 'gap'")
        box = Box.of(outputs)
        width = self.measure == "width" or (self.measure == "auto" and binary)
        return Prediction(outputs, box.mean, box, "width" if width else "gap")

    def numbers(self, outputs: Tensor) -> GaussianPrediction:
        """outputs: (M, N, 2), mean and log variance."""
        return GaussianPrediction.of(outputs, credal=True)
