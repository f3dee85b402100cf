"""The paper's claims as differences within a run, between methods that share its seed and its data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from credro.experiments.results import KINDS, Made, Results, paper_value
from credro.experiments.spec import Variant
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
    experiment, several = results.experiment, len(results.experiment.variants) > 1
    claims = [c for c in CLAIMS if {c[1], c[2]} <= {*experiment.methods}]
    rows: list[tuple[Entry, ...]] = []
    for variant in experiment.variants:
        for calibrated, (claim, better, other) in product(results.kinds(), claims):
            where = {"variant": variant.label, "calibrated": calibrated}
            found = differences(results, better, other, where)
            paper = None if calibrated else paper_difference(better, other, variant)
            rows.append(
                (
                    *([variant.label] if several else []),
                    claim,
                    f"{NAMES[better]} − {NAMES[other]}",
                    KINDS[calibrated],
                    Number.of(found, paper=paper),
                    f"{sum(d > 0 for d in found)} of {len(found)}",
                )
            )
    note = (
        f"{results.setting()} Points of mean AUROC over the OOD sets, run by run. In brackets the paper's, over its "
        f"own five sets{'' if several else ', at M = 5'}."
    )
    columns = (*([""] if several else []), "claim", "difference", "as", "points", "positive in runs")
    return Made((Table("claims", "The paper's claims, within each run", columns, tuple(rows), note),))


def differences(results: Results, better: str, other: str, where: Mapping[str, Any]) -> list[float]:
    """``better`` minus ``other`` in every run that has both."""
    scores = [{r.facts["run"]: mean_auroc(r) for r in results.pick({"method": m, **where})} for m in (better, other)]
    return [scores[0][run] - scores[1][run] for run in scores[0] if run in scores[1]]


def paper_difference(better: str, other: str, variant: Variant) -> float | None:
    """The same from the paper's tables of ensemble sizes and of label noise; None where they do not have both."""
    source, which = (
        ("noise", {"noise": variant.noise}) if variant.noise else ("sizes", {"members": variant.members or 5})
    )
    means = []
    for method in (better, other):
        found = [paper_value(source, method=method, measure="auroc", set=s, **which) for s in COLOUR]
        if None in found:
            return None
        means.append(sum(v for v in found if v is not None) / len(found))
    return round(means[0] - means[1], 1)
