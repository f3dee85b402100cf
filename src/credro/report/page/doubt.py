"""What doubt is worth: how well each score of uncertainty finds the wrong answers."""

from __future__ import annotations

import numpy as np

from credro.report.page.charts import Bar, bar_chart
from credro.report.page.findings import Findings, Section
from credro.report.page.markup import Cell, Html, el, join, number, table
from credro.report.page.words import listed, percent

NAMES = {"epistemic": "EU", "total": "Total uncertainty", "1 - max p": "1 − max p"}
"""The scores of ``Line.errors`` as the page calls them."""


def doubt(found: Findings) -> Section:
    """Three scores side by side: a table, bars, and which is for which question."""
    scores = {NAMES.get(key, key): score for key, score in found.line.errors.items()}
    measures = {
        "AUROC of errors\u00a0%": [s.auroc for s in scores.values()],
        "AR area\u00a0%": [s.area for s in scores.values()],
        "Right of the surest 90\u00a0%": [s.accuracy_at_90 for s in scores.values()],
    }
    rows: list[list[Cell | str]] = [[name] for name in scores]
    for values in measures.values():
        for row, cell in zip(rows, _best(values), strict=True):
            row.append(cell)
    intro = (
        "How well each score finds wrong answers: the chance that a wrong answer has more of it than a right one, the "
        "area under accuracy-rejection, and how many of the surest 90\u00a0% are right. 1 − max p needs no ensemble."
    )
    chart = bar_chart("AUROC of errors", [Bar(n, s.auroc, n == "EU") for n, s in scores.items()])
    content: list[Html] = [table("How well each score finds errors", ["Score", *measures], rows)]
    content += [
        el("div", chart, class_="charts"),
        el("p", verdict({n: s.auroc for n, s in scores.items()}), class_="note"),
    ]
    return Section("doubt", "What doubt is worth", "Doubt", intro, join(content))


def verdict(aurocs: dict[str, float]) -> str:
    """Which score finds errors best here, and which is for which question. aurocs: of errors, by the score's name."""
    aim = "EU is for unfamiliar inputs, which OOD sets measure; total uncertainty and 1 − max p are for errors."
    if any(np.isnan(value) for value in aurocs.values()):
        return f"All answers are right, or all are wrong: no score can tell them apart. {aim}"
    top = max(aurocs.values())
    best = [name for name, value in aurocs.items() if value >= top - 1e-9]
    return f"Errors are found best by {listed(best)} here (AUROC {percent(top)}). {aim}"


def _best(values: list[float]) -> list[Cell]:
    """Fractions in per cent, the largest in bold unless all are equal as they are shown."""
    shown = [number(v, 2, percent=True) for v in values]
    tell = len({str(cell.shown) for cell in shown}) > 1
    top = number(float(np.nanmax(values)), 2, percent=True).shown if tell else None
    return [number(v, 2, percent=True, best=cell.shown == top) for v, cell in zip(values, shown, strict=True)]
