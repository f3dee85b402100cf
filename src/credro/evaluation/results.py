"""What is known of one ensemble under each method: typed, as JSON keeps it, with the predictions it was measured by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from credro.evaluation.sets import Sets
from credro.methods import label
from credro.metrics import ErrorScores, OODScores
from credro.prediction import Prediction
from credro.training.seen import Overlap

BINS = 10
"""Bins of the expected calibration error."""

COMPARED = {"epistemic": "epistemic", "total": "total", "1 - max p": "confidence"}
"""The scores whose worth for finding errors is shown side by side, and their names in ``credro.metrics``."""

Key = tuple[str, bool]
"""A method's name, and whether its members are at their temperatures."""


@dataclass(frozen=True)
class MethodResult:
    """One method on one ensemble. Accuracies and scores lie in [0, 1]; EU, NLL are in nats (EU of two classes: width).

    members: accuracy of the worst, the mean and the best member. area: under the accuracy-rejection curve.
    ood: the detection scores of each OOD set, by name. errors: how well wrong predictions are found by each score:
    "epistemic", "total" and "1 - max p".
    """

    method: str
    calibrated: bool
    accuracy: float
    ece: float
    nll: float
    brier: float
    members: tuple[float, float, float]
    mean_eu: float
    area: float
    normalised_area: float
    ood: dict[str, OODScores] = field(default_factory=dict)
    errors: dict[str, ErrorScores] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As tables and figures write it: ``CreDRO``, ``CreDRO, calibrated``."""
        return label(self.method) + (", calibrated" if self.calibrated else "")

    @property
    def mean_auroc(self) -> float:
        """Mean AUROC over the OOD sets; NaN without any."""
        return sum(s.auroc for s in self.ood.values()) / len(self.ood) if self.ood else math.nan

    def to_json(self) -> dict[str, Any]:
        """As JSON keeps it; what is not a number is None."""
        low, mean, high = self.members
        plain = {**asdict(self), "members": {"min": low, "mean": mean, "max": high}, "mean_auroc": self.mean_auroc}
        result: dict[str, Any] = finite(plain)
        return result


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Every method on one ensemble, measured on one ID set and several OOD sets.

    samples: those that accuracy is measured on. ood: size of each OOD set. warnings: what the fit of the members says
    against trusting the results. notes: what was left out of the data and why. seen: how much of the ID set the run
    had used; None: nobody can tell. unknown: samples of the ID set that are of none of the ensemble's classes.
    predictions: of each method, under "" those of the ID set and else by OOD set. sets: the samples themselves; None
    where probabilities were given.
    """

    name: str
    data: str
    samples: int
    members: int
    ood: dict[str, int]
    results: tuple[MethodResult, ...]
    predictions: Mapping[Key, Mapping[str, Prediction]] = field(repr=False)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seen: Overlap | None = None
    unknown: int = 0
    sets: Sets | None = field(default=None, repr=False)

    def __getitem__(self, method: str) -> MethodResult:
        """The plain result of ``method``."""
        return self.result(method)

    def result(self, method: str, calibrated: bool = False) -> MethodResult:
        """The result of ``method``, plain or calibrated."""
        for result in self.results:
            if (result.method, result.calibrated) == (method, calibrated):
                return result
        known = ", ".join(f"{s.method}{' calibrated' if s.calibrated else ''}" for s in self.results)
        raise KeyError(f"no result for {method!r}{' calibrated' if calibrated else ''}; there are {known}")

    def prediction(self, method: str, calibrated: bool = False, ood: str = "") -> Prediction:
        """What the result was measured by: of the ID set, or of an OOD set."""
        self.result(method, calibrated)
        return self.predictions[method, calibrated][ood]

    def to_json(self) -> dict[str, Any]:
        """As JSON keeps it: everything but the predictions."""
        return {
            "name": self.name,
            "data": self.data,
            "samples": self.samples,
            "members": self.members,
            "ood": dict(self.ood),
            "results": [result.to_json() for result in self.results],
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "seen": None if self.seen is None else asdict(self.seen),
            "unknown": self.unknown,
        }


def finite(value: Any) -> Any:
    """NaN and infinity, which JSON does not have, as None."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
