"""The sections of the report, one function each: from what was found to the values that its template shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from credro._templates import percent, render
from credro.evaluation import BINS
from credro.metrics import reliability
from credro.report.page import _words as words
from credro.report.page._findings import Findings
from credro.report.page._numbers import STEPS, as_numpy, ends, shapes
from credro.report.page._samples import COARSE, LEAST, group
from credro.report.page._simplex import simplex
from credro.report.page._tables import classes, confusions, members, methods
from credro.report.page._values import Bar, BarChart, Cell, Table, compared, density_curves, number, rejection_curve

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATES = "report/page/templates"
MEANINGS = {
    "Most certain": "The least epistemic uncertainty, from every predicted class in turn.",
    "Least certain": "The most epistemic uncertainty: the first to be rejected.",
    "Confidently wrong": "Wrong, and yet with little epistemic uncertainty: rejection finds these last.",
}
SCORES = {"epistemic": "EU", "total": "Total uncertainty", "1 - max p": "1 − max p"}
"""The scores of ``MethodResult.errors`` as the page calls them."""


@dataclass(frozen=True)
class Section:
    """A part of the page. key: its id. short: its name in the navigation. data: what the script reads."""

    key: str
    short: str
    html: Markup
    data: dict[str, Any] = field(default_factory=dict)


def sections(found: Findings) -> list[Section]:
    """All that apply."""
    made = [summary(found), uncertainty(found), errors(found), abstaining(found), calibration(found), samples(found)]
    if len(found.samples.classes) == 3:
        drawn = simplex(found.samples, found.groups)
        made.append(_section(found, "credal-sets", "Credal sets", data={"simplex": drawn.content}, drawn=drawn))
    return [
        *made,
        _section(found, "confusion", "Confusion", **confusions(found)),
        _section(found, "classes", "Classes", **classes(found)),
        _section(found, "methods", "Methods", **methods(found)),
        _section(found, "members", "Members", **members(found)),
    ]


def summary(found: Findings) -> Section:
    """Figures, sentences, warnings."""
    evaluation, result, correct, eu = found.evaluation, found.result, found.correct, found.eu
    confidence = float(found.samples.mean.max(1).mean())
    paragraphs = [
        [words.trained(found.config, evaluation, result), words.accurate(evaluation, result, confidence)],
        [words.doubtful(correct, eu, found.unit), *words.far(result), *words.rivalled(evaluation, result)],
        [words.rejecting(found.rejection), *words.slips(correct, eu)],
    ]
    return _section(found, "summary", "Summary", paragraphs=paragraphs, steps=STEPS)


def uncertainty(found: Findings) -> Section:
    """Densities of EU."""
    name = found.evaluation.data
    said = [f"ID, mean {found.eu.mean():.3g}"]
    said += [f"mean {s.mean_ood:.3g}, AUROC {percent(s.auroc)}" for s in found.result.ood.values()]
    drawn = shapes(name if name not in found.ood else f"{name} (ID)", found.eu, found.ood)
    every = range(0, len(drawn.grid), max(1, len(drawn.grid) // 24))
    rows = [[number(float(v[g]), 3) for v in (drawn.grid, *drawn.lines.values())] for g in every]
    table = Table("Densities of epistemic uncertainty", ["EU", *drawn.lines], rows, sortable=False)
    marks = [f"{tick:g}" for tick in drawn.ticks]
    values: dict[str, Any] = {"drawn": drawn, "ticks": marks, "curves": density_curves(drawn, said), "table": table}
    return _section(found, "uncertainty", "Epistemic uncertainty", "Uncertainty", {"top": drawn.ticks[-1]}, **values)


def errors(found: Findings) -> Section:
    """How well each score of uncertainty finds the wrong answers: a table, bars, and which is for which question."""
    scores = {SCORES.get(key, key): score for key, score in found.result.errors.items()}
    aurocs = {name: score.auroc for name, score in scores.items()}
    columns = {
        "AUROC of errors\u00a0%": list(aurocs.values()),
        "AR area\u00a0%": [score.area for score in scores.values()],
        "Right of the surest 90\u00a0%": [score.accuracy_at_90 for score in scores.values()],
    }
    cells = zip(map(Cell, scores), *(compared(values, percent=True) for values in columns.values()), strict=True)
    table = Table("How well each score finds errors", ["Score", *columns], list(cells))
    chart = BarChart("AUROC of errors", [Bar(name, value, i == 0) for i, (name, value) in enumerate(aurocs.items())])
    verdict = words.best_score(aurocs)
    return _section(found, "errors", "Error detection", "Errors", scores=table, chart=chart, verdict=verdict)


def abstaining(found: Findings) -> Section:
    """The accuracy-rejection curve and its slider."""
    r = found.rejection
    goals = {target: r.reaches(target) for target in words.TARGETS}
    start = next((step for step in goals.values() if step and step <= STEPS // 2), STEPS // 10)
    rows = []
    for i in range(0, STEPS, STEPS // 20):
        limit = Cell("–" if r.limits[i] is None else f"{r.limits[i]:g}", r.limits[i] or 0.0)
        kept, right = number(float(r.kept[i]), 0), number(r.accuracy(i), 2, percent=True)
        rows.append([number(i / STEPS, 0, percent=True), kept, right, limit])
    columns = ["Rejected\u00a0%", "Kept", "Accuracy\u00a0%", "Abstain above EU"]
    table = Table("Accuracy against rejection", columns, rows, sortable=False)
    data = {"kept": r.kept.tolist(), "right": r.right.tolist(), "limits": r.limits}
    data |= {"ood": [v.tolist() for v in r.ood.values()], "sizes": [len(v) for v in found.ood.values()]}
    path, marks = rejection_curve(r)
    values: dict[str, Any] = {"path": path, "marks": marks, "table": table, "steps": STEPS}
    values["heights"] = [f"{100 * mark:g} %" for mark in marks]
    return _section(found, "abstaining", "Abstaining", data=data, start=start, goals=goals, **values)


def calibration(found: Findings) -> Section:
    """The reliability diagram."""
    made = reliability(found.samples.mean, found.samples.labels, BINS)
    edges, accuracy, confidence, count = (
        as_numpy(part).tolist() for part in (made.edges, made.accuracy, made.confidence, made.count)
    )
    bins = list(zip(edges, confidence, accuracy, count, strict=False))  # there is one edge more
    rows = [
        [Cell(f"{left:g} to {edges[b + 1]:g}", float(b)), number(n, 0), number(sure, 3), number(right, 3)]
        for b, (left, sure, right, n) in enumerate(bins)
    ]
    table = Table("Reliability", ["Confidence", "Samples", "Mean confidence", "Accuracy"], rows, sortable=False)
    return _section(found, "calibration", "Calibration", bins=bins, count=count, ece=made.ece, table=table)


def samples(found: Findings) -> Section:
    """The gallery: ID samples by how certain they are, and of every OOD set those that EU misses and finds."""
    groups = [group(title, MEANINGS[title], found.samples, chosen) for title, chosen in found.groups.items()]
    for name, far in found.far.items():
        low, high = ends(far.eu, max(1, found.each // 2))
        groups.append(group(f"OOD: {name}", "The least EU of this set: taken for ID samples.", far, low))
        groups.append(group("", "The most EU of it: the first to be rejected.", far, high))
    return _section(found, "samples", "Samples", groups=groups, least=LEAST, coarse=COARSE)


def _section(
    found: Findings, key: str, title: str, short: str = "", data: dict[str, Any] | None = None, **values: Any
) -> Section:
    """The template of that key, filled."""
    from markupsafe import Markup

    html = render(f"{TEMPLATES}/{key}.html.j2", found=found, key=key, title=title, **values)
    return Section(key, short or title, Markup(html), data or {})
