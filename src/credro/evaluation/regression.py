"""The same for regression: every method that can read the members, measured on one set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from credro._text import text_table
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.evaluation.results import finite
from credro.evaluation.sets import seen_note, unseen_part
from credro.methods import for_regression, label
from credro.metrics.regression import RegressionScores, score_regression
from credro.training.seen import SeenWarning


@dataclass(frozen=True)
class RegressionResult:
    """One method on one ensemble."""

    method: str
    calibrated: bool
    scores: RegressionScores


@dataclass(frozen=True)
class RegressionEvaluation:
    """Every method on one set. notes: what was left out, in sentences."""

    name: str
    data: str
    samples: int
    results: tuple[RegressionResult, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON keeps it; what is not a number is None."""
        rows = [{"method": r.method, "calibrated": r.calibrated, **finite(asdict(r.scores))} for r in self.results]
        known = {"name": self.name, "data": self.data, "samples": self.samples}
        return {**known, "results": rows, "notes": list(self.notes)}


def evaluate_regression(
    ensemble: Ensemble, data: Data, methods: Sequence[str] | None = None, *, name: str = "run", seen: str = "drop"
) -> RegressionEvaluation:
    """Measure ``ensemble`` under every method that can read its Gaussians, plain and calibrated.

    data: samples with their targets. seen: "drop" leaves out samples that the run has used, "keep" does not.
    """
    able = {*for_regression(), ensemble.method.name}
    known = [m for m in ensemble.readers if m in able]
    chosen = known if methods is None else [m for m in methods if m in known]
    part, found = unseen_part(ensemble, data, seen)
    note = seen_note(data, found, seen)
    if note is not None and found.used:
        warnings.warn(note, SeenWarning, stacklevel=2)
    scores = ensemble.scores(part)
    results = []
    for calibrated in (False, True) if ensemble.calibrated else (False,):
        at = ensemble if calibrated else ensemble.plain()
        for method in chosen:
            reader = at.read_as(method)
            prediction = reader.method.readout.regression(reader.gaussians(scores))
            results.append(RegressionResult(method, calibrated, score_regression(prediction, part.labels)))
    return RegressionEvaluation(name, part.name, len(part), tuple(results), () if note is None else (note,))


def regression_table(evaluations: Sequence[RegressionEvaluation]) -> str:
    """One readable table, a row per method; coverage in per cent, the rest in the target's unit."""
    several = len(evaluations) > 1
    calibrated = any(result.calibrated for e in evaluations for result in e.results)
    columns = [*(["run"] if several else []), "method", *(["as"] if calibrated else [])]
    columns += ["RMSE", "MAE", "R2", "NLL", "in 90 %\ninterval, %", "mean\nwidth"]
    rows = []
    for e in evaluations:
        for result in e.results:
            s, kind = result.scores, ["calibrated" if result.calibrated else "plain"] if calibrated else []
            cells = [f"{v:.4g}" for v in (s.rmse, s.mae)] + [f"{s.r2:.3f}", f"{s.nll:.3f}"]
            cells += [f"{100 * s.coverage:.1f}", f"{s.width:.4g}"]
            rows.append([*([e.name] if several else []), label(result.method), *kind, *cells])
    return text_table(rows, columns)
