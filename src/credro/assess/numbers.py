"""The same for ensembles that predict numbers: every method that can read the members, measured on one set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from credro.assess.sets import seen_note, unseen_part
from credro.assess.text import table
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.evaluation.numbers import NumberScores, score_numbers
from credro.methods import for_numbers, reading
from credro.training.seen import SeenWarning


@dataclass(frozen=True)
class NumberLine:
    """One method on one ensemble."""

    method: str
    calibrated: bool
    scores: NumberScores


@dataclass(frozen=True)
class NumberAssessment:
    """Every method on one set. notes: what was left out, in sentences."""

    name: str
    data: str
    samples: int
    lines: tuple[NumberLine, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        lines = [{"method": line.method, "calibrated": line.calibrated, **asdict(line.scores)} for line in self.lines]
        plain = [{k: None if v != v else v for k, v in line.items()} for line in lines]
        return {"name": self.name, "data": self.data, "samples": self.samples, "lines": plain, "notes": self.notes}


def assess_numbers(
    ensemble: Ensemble, data: Data, methods: Sequence[str] | None = None, *, name: str = "run", seen: str = "drop"
) -> NumberAssessment:
    """Read ``ensemble`` by every method of its training rule that predicts numbers, plain and calibrated.

    data: samples with their targets. seen: "drop" leaves out samples that the run has used, "keep" does not.
    """
    known = [m for m in reading(ensemble.rule) if m in for_numbers()]
    chosen = known if methods is None else [m for m in methods if m in known]
    part, found = unseen_part(ensemble, data, seen)
    note = seen_note(data, found, seen)
    if note is not None and found.used:
        warnings.warn(note, SeenWarning, stacklevel=2)
    scores = ensemble.scores(part)
    lines = []
    for calibrated in (False, True) if ensemble.calibrated else (False,):
        for method in chosen:
            reader = ensemble.read_as(ensemble.method if method == ensemble.method.name else method)
            reader.temperatures = ensemble.temperatures if calibrated else [1.0] * len(ensemble)
            prediction = reader.method.readout.numbers(reader.gaussians(scores))
            lines.append(NumberLine(method, calibrated, score_numbers(prediction, part.labels)))
    return NumberAssessment(name, part.name, len(part), tuple(lines), () if note is None else (note,))


def number_layout(assessments: Sequence[NumberAssessment]) -> str:
    """One readable table, a line per method; coverage in per cent, the rest in the target's unit."""
    several = len(assessments) > 1
    calibrated = any(line.calibrated for a in assessments for line in a.lines)
    columns = [*(["run"] if several else []), "method", *(["as"] if calibrated else [])]
    columns += ["RMSE", "MAE", "R2", "NLL", "in 90 %\ninterval, %", "mean\nwidth"]
    rows = []
    for a in assessments:
        for line in a.lines:
            s, kind = line.scores, ["calibrated" if line.calibrated else "plain"] if calibrated else []
            numbers = [f"{v:.4g}" for v in (s.rmse, s.mae)] + [f"{s.r2:.3f}", f"{s.nll:.3f}"]
            numbers += [f"{100 * s.coverage:.1f}", f"{s.width:.4g}"]
            rows.append([*([a.name] if several else []), line.method, *kind, *numbers])
    return table(rows, columns)
