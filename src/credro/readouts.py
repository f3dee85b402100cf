"""How members' outputs become a prediction: mean, box, hull, nearest hull, averaged box; and a plain dict of them.

outputs: (M, N, C) probabilities, or (M, N, 2, C) lower and upper bounds of members that give intervals; of regression
(M, N, 2), mean and log variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from credro._names import ArgumentError, one_of
from credro.credal.bounds import intersection
from credro.credal.sets import Box, Hull
from credro.members import Choice
from credro.prediction import GaussianPrediction, Prediction

MEASURES = ("auto", "gap", "width")


@dataclass(frozen=True)
class ReadOut(Choice):
    """Turns the members' outputs into a ``Prediction``.

    takes: what a head may give (``Head.gives``). credal: whether the prediction has a credal set.
    """

    takes: ClassVar[tuple[str, ...]] = ("probabilities",)
    credal: ClassVar[bool] = True

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) or (M, N, 2, C)."""
        raise NotImplementedError(f"read-out {self.kind!r} must say how it reads classes")

    def regression(self, outputs: Tensor) -> GaussianPrediction:
        """outputs: (M, N, 2), mean and log variance."""
        if "gaussians" not in self.takes:
            raise ArgumentError("readout", f"read-out {self.kind!r} is for classes, and the members do regression")
        return GaussianPrediction.of(outputs, credal=self.credal)


@dataclass(frozen=True)
class MeanReadOut(ReadOut):
    """The members' mean, no credal set: DE and EN-DRO. EU is mutual information (paper, Eq. 5)."""

    kind: ClassVar[str] = "mean"
    takes: ClassVar[tuple[str, ...]] = ("probabilities", "bounds", "gaussians")
    credal: ClassVar[bool] = False

    def __call__(self, outputs: Tensor) -> Prediction:
        """Of intervals, the mean of the intersection probabilities."""
        probs = intersection(*outputs.to(torch.float64).unbind(-2)) if outputs.ndim == 4 else outputs
        return Prediction(probs, probs.to(torch.float64).mean(0), None)


@dataclass(frozen=True)
class _Boxes(ReadOut):
    """What read-outs that give boxes share.

    measure: "gap" (upper minus lower entropy), "width" (of the interval; two classes only), or "auto": the width for
    two classes, as the paper does in its medical study, and the gap otherwise.
    """

    measure: str = "auto"

    def __post_init__(self) -> None:
        """Check the measure's name."""
        super().__post_init__()
        one_of("measure", self.measure, MEASURES)

    def measured(self, classes: int) -> str:
        """How EU is measured with so many classes."""
        if self.measure == "width" and classes != 2:
            raise ArgumentError("measure", f"measure='width' needs two classes, got {classes}: use 'gap'")
        return "width" if self.measure == "width" or (self.measure == "auto" and classes == 2) else "gap"


@dataclass(frozen=True)
class BoxReadOut(_Boxes):
    """The smallest box around the members: CreWra, CreDRO, CreRAM, CreRL (paper, Eq. 8 and 9)."""

    kind: ClassVar[str] = "box"
    takes: ClassVar[tuple[str, ...]] = ("probabilities", "bounds", "gaussians")

    def __call__(self, outputs: Tensor) -> Prediction:
        """Of intervals: from the lowest lower to the highest upper bound; the mean is that of the members' points."""
        measure = self.measured(outputs.shape[-1])
        if outputs.ndim == 3:
            box = Box.of(outputs)
            return Prediction(outputs, box.mean, box, measure)
        lower, upper = outputs.to(torch.float64).unbind(-2)
        box = Box(lower.amin(0), upper.amax(0)).tighten()
        probs = intersection(lower, upper)
        return Prediction(probs, probs.mean(0), box, measure)


@dataclass(frozen=True)
class HullReadOut(ReadOut):
    """The convex hull of all members: CreDRO with hull (paper, Eq. 10), CreBNN."""

    kind: ClassVar[str] = "hull"
    takes: ClassVar[tuple[str, ...]] = ("probabilities", "gaussians")

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities."""
        hull = Hull(outputs)
        return Prediction(outputs, hull.mean, hull)


@dataclass(frozen=True)
class NearestHullReadOut(ReadOut):
    """Convex hull of the ``round((1 - alpha) * M)`` members nearest to the mean, sample by sample: CreEns.

    alpha: the fraction of members left out as outlying, per sample. 0 keeps all, which is the paper's best.
    """

    alpha: float = 0.0
    kind: ClassVar[str] = "nearest_hull"

    def __post_init__(self) -> None:
        """Check alpha."""
        super().__post_init__()
        if not 0 <= self.alpha < 1:
            raise ArgumentError("alpha", f"alpha must lie in [0, 1), got {self.alpha}")

    def count(self, members: int) -> int:
        """How many members are kept, at least one; halves are rounded to even, as the published code does.

        alpha is taken as the decimal it is written as.
        """
        return max(1, round((1 - Fraction(str(self.alpha))) * members))

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities."""
        mean = Hull(outputs).mean
        distance = torch.linalg.vector_norm(outputs - mean, dim=-1)
        nearest = distance.argsort(dim=0, stable=True)[: self.count(len(outputs)), :, None]
        chosen = outputs.gather(0, nearest.expand(-1, -1, outputs.shape[-1]))
        return Prediction(outputs, mean, Hull(chosen))


@dataclass(frozen=True)
class AveragedBoxReadOut(_Boxes):
    """The members' lower and upper bounds averaged, then tightened to bounds that are reachable: CreDE."""

    kind: ClassVar[str] = "averaged_box"
    takes: ClassVar[tuple[str, ...]] = ("bounds",)

    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, 2, C). Point predictions: intersection probability."""
        bounds = outputs.to(torch.float64)
        box = Box(*bounds.mean(0).unbind(-2)).tighten()
        measure = self.measured(outputs.shape[-1])
        return Prediction(intersection(*bounds.unbind(-2)), intersection(*box.bounds), box, measure)


READOUTS: dict[str, type[ReadOut]] = {
    readout.kind: readout for readout in (MeanReadOut, BoxReadOut, HullReadOut, NearestHullReadOut, AveragedBoxReadOut)
}
