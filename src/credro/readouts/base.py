"""A prediction, and what makes one from the members' outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from torch import Tensor

from credro.credal.entropy import shannon
from credro.credal.measures import aleatoric, interval_width, mutual_information, total
from credro.credal.sets import CredalSet
from credro.readouts.gaussian import GaussianPrediction


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an ensemble says about N samples of C classes. Uncertainties are in nats and computed when first asked for.

    probs: (M, N, C) each member's own point prediction. mean: (N, C) the ensemble's point prediction.
    set: the credal set, or None for a method without one. measure: how ``epistemic`` is measured.
    """

    probs: Tensor
    mean: Tensor
    set: CredalSet | None
    measure: str = field(default="gap")

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.mean)

    @cached_property
    def label(self) -> Tensor:
        """Most probable class (N,) of the point prediction."""
        return self.mean.argmax(-1)

    @cached_property
    def epistemic(self) -> Any:
        """Epistemic uncertainty (N,): entropy gap, interval width, or mutual information of the members."""
        if self.set is None:
            return mutual_information(self.probs)
        if self.measure == "width":
            return interval_width(self.set)
        return (self.total - self.aleatoric).clamp_min(0)

    @cached_property
    def aleatoric(self) -> Any:
        """Aleatoric uncertainty (N,): lower entropy of the set, or the members' mean entropy."""
        return shannon(self.probs).mean(0) if self.set is None else aleatoric(self.set)

    @cached_property
    def total(self) -> Any:
        """Total uncertainty (N,): upper entropy of the set, or the mean's entropy."""
        return shannon(self.mean) if self.set is None else total(self.set)

    @property
    def lower(self) -> Tensor:
        """Lower probability (N, C) of each class; without a set, the smallest of the members'."""
        lower: Tensor = self.probs.amin(0) if self.set is None else self.set.lower
        return lower

    @property
    def upper(self) -> Tensor:
        """Upper probability (N, C) of each class; without a set, the largest of the members'."""
        upper: Tensor = self.probs.amax(0) if self.set is None else self.set.upper
        return upper


@dataclass(frozen=True)
class ReadOut(ABC):
    """Turns the members' outputs (M, N, ...) into a ``Prediction``; its fields are its hyper-parameters."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, outputs: Tensor) -> Prediction:
        """outputs: (M, N, C) probabilities unless the training rule gives something else."""

    def numbers(self, outputs: Tensor) -> GaussianPrediction:
        """The same where members predict numbers. outputs: (M, N, 2), mean and log variance."""
        raise ValueError(f"read-out {self.name!r} is for classes, and the members predict numbers")

    def config(self) -> dict[str, Any]:
        """Name and hyper-parameters."""
        return {"readout": self.name, **asdict(self)}
