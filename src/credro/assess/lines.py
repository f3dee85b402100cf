"""What is known of one ensemble under each method: typed, and as JSON keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from credro.evaluation import (
    ErrorScores,
    OODScores,
    accuracy,
    accuracy_rejection,
    brier,
    ece,
    error_detection,
    evaluate_ood,
    member_accuracy,
    nll,
    score_of,
)
from credro.readouts import Prediction
from credro.training.seen import Overlap

BINS = 10
"""Bins of the expected calibration error."""

COMPARED = {"epistemic": "epistemic", "total": "total", "1 - max p": "confidence"}
"""The scores whose worth for finding errors is shown side by side, and their names in ``credro.evaluation``."""


@dataclass(frozen=True)
class Line:
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
    def mean_auroc(self) -> float:
        """Mean AUROC over the OOD sets; NaN without any."""
        return sum(s.auroc for s in self.ood.values()) / len(self.ood) if self.ood else math.nan

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it; what is not a number is None."""
        low, mean, high = self.members
        plain = {**asdict(self), "members": {"min": low, "mean": mean, "max": high}, "mean_auroc": self.mean_auroc}
        result: dict[str, Any] = _finite(plain)
        return result


@dataclass(frozen=True)
class Assessment:
    """Every reading of one ensemble on one ID set and several OOD sets.

    samples: those that accuracy is measured on. ood: size of each OOD set. warnings: what the fit of the members says
    against trusting the lines. notes: what was left out of the data and why. seen: how much of the ID set the run had
    used; None: nobody asked. unknown: samples of the ID set that are of none of the ensemble's classes.
    """

    name: str
    data: str
    samples: int
    members: int
    ood: dict[str, int]
    lines: tuple[Line, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seen: Overlap | None = None
    unknown: int = 0

    def __getitem__(self, method: str) -> Line:
        """The plain line of ``method``."""
        return self.line(method)

    def line(self, method: str, calibrated: bool = False) -> Line:
        """The line of ``method``, plain or calibrated."""
        for line in self.lines:
            if (line.method, line.calibrated) == (method, calibrated):
                return line
        known = ", ".join(f"{s.method}{' calibrated' if s.calibrated else ''}" for s in self.lines)
        raise KeyError(f"no line for {method!r}{' calibrated' if calibrated else ''}; there are {known}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        texts = {"warnings": list(self.warnings), "notes": list(self.notes)}
        return {**asdict(self), **texts, "lines": [line.to_dict() for line in self.lines]}


def line_of(
    method: str, calibrated: bool, prediction: Prediction, labels: Tensor, ood: Mapping[str, Prediction]
) -> Line:
    """Every measure of one method's predictions of a labelled set, and of OOD sets by name."""
    eu, per_member = prediction.epistemic, member_accuracy(prediction.probs, labels)
    correct = prediction.label == labels
    curve = accuracy_rejection(correct, eu)
    return Line(
        method=method,
        calibrated=calibrated,
        accuracy=accuracy(prediction.label, labels),
        ece=ece(prediction.mean, labels, BINS),
        nll=nll(prediction.mean, labels),
        brier=brier(prediction.mean, labels),
        members=(float(per_member.min()), float(per_member.mean()), float(per_member.max())),
        mean_eu=float(eu.mean()),
        area=curve.area,
        normalised_area=curve.normalised_area,
        ood={name: evaluate_ood(eu, other.epistemic) for name, other in ood.items()},
        errors={name: error_detection(correct, score_of(prediction, score)) for name, score in COMPARED.items()},
    )


def _finite(value: Any) -> Any:
    """NaN and infinity, which JSON does not have, as None."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
