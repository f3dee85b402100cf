"""The paper's claims as differences within a run, between methods that share its seed and its data."""

from __future__ import annotations

from pathlib import Path

from credro.experiments.results import KINDS, Made, Results, paper_value
from credro.experiments.tables import Entry, Number, Table
from credro.experiments.values import mean_auroc
from credro.experiments.worlds import COLOUR
from credro.report.style import NAMES

CLAIMS = (
    ("shares by loss, point prediction", "en-dro", "de"),
    ("shares by loss, credal set", "credro", "crewra"),
    ("credal set over point prediction, plain members", "crewra", "de"),
    ("credal set over point prediction, CreDRO's members", "credro", "en-dro"),
    ("shares by loss over shares at random", "credro", "creram"),
    ("box over hull", "credro", "credro-hull"),
    ("CreDRO over CreRL", "credro", "crerl"),
    ("CreDRO over CreDE", "credro", "crede"),
    ("CreDRO over CreBNN", "credro", "crebnn"),
)
"""What is claimed, the method that should be better, and the one it is compared with."""


def claims_table(results: Results, _: Path) -> Made:
    """Difference of mean AUROC within each run, its mean and deviation, and in how many runs it is positive."""
    rows: list[tuple[Entry, ...]] = []
    for calibrated in results.kinds():
        for claim, better, other in CLAIMS:
            found = differences(results, better, other, calibrated)
            paper = None if calibrated else paper_difference(better, other)
            rows.append(
                (
                    claim,
                    f"{NAMES[better]} − {NAMES[other]}",
                    KINDS[calibrated],
                    Number.of(found, paper=paper),
                    f"{sum(d > 0 for d in found)} of {len(found)}",
                )
            )
    note = (
        f"{results.setting()} Points of mean AUROC over the OOD sets, run by run. In brackets the paper's, at M = 5 "
        "and over its own five sets."
    )
    columns = ("claim", "difference", "as", "points", "positive in runs")
    return Made((Table("claims", "The paper's claims, within each run", columns, tuple(rows), note),))


def differences(results: Results, better: str, other: str, calibrated: bool) -> list[float]:
    """``better`` minus ``other`` in every run that has both."""
    scores = [
        {r.facts["run"]: mean_auroc(r) for r in results.pick({"method": m, "calibrated": calibrated})}
        for m in (better, other)
    ]
    return [scores[0][run] - scores[1][run] for run in scores[0] if run in scores[1]]


def paper_difference(better: str, other: str) -> float | None:
    """The same from the paper's table of ensemble sizes, at M = 5; None where it does not have both."""
    means = []
    for method in (better, other):
        found = [paper_value("sizes", method=method, measure="auroc", set=s, members=5) for s in COLOUR]
        if None in found:
            return None
        means.append(sum(v for v in found if v is not None) / len(found))
    return round(means[0] - means[1], 1)
