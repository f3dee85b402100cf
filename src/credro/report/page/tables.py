"""The sections that are tables: classes, readings, members."""

from __future__ import annotations

from typing import Any

import numpy as np

from credro.evaluation import member_accuracy
from credro.methods import METHODS
from credro.report.page.charts import Bar, bar_chart, spread
from credro.report.page.findings import Findings, Section
from credro.report.page.markup import Cell, Html, behind, el, join, number, table
from credro.report.page.numbers import class_rows
from credro.report.page.words import method_name

CLASSES_SHOWN = 30
"""Of more classes than this the table is folded away, and the widest are shown."""


def classes(found: Findings) -> Section:
    """Interval widths class by class."""
    s = found.samples
    rows = class_rows(s.classes, s.labels, found.correct, s.eu, s.upper - s.lower)
    rows.sort(key=lambda row: -row.width[2])
    top = max(0.05, *(row.width[-1] for row in rows))
    cells: list[list[Cell | str]] = [
        [
            row.name,
            Cell(spread(row.width, top), row.width[2]),
            number(row.width[2], 3),
            number(row.accuracy, 1, percent=True),
            number(row.mean_eu, 3),
            number(row.samples, 0),
        ]
        for row in rows
    ]
    columns = ["Class", f"Interval width, 0 to {top:.2g}", "Median", "Accuracy\u00a0%", "Mean\u00a0EU", "Samples"]
    content = table("Interval widths of the classes", columns, cells[:CLASSES_SHOWN])
    if len(cells) > CLASSES_SHOWN:
        whole = behind(f"All {len(cells)} classes", table("Interval widths of all classes", columns, cells))
        content = join([el("p", f"The {CLASSES_SHOWN} widest.", class_="quiet"), content, whole])
    intro = (
        "Of the samples of each class, the width of that class's own interval: bar for the middle half, mark for the "
        "median, thin line from the 10th to the 90th percentile."
    )
    return Section("classes", "Classes", "Classes", intro, content)


def readings(found: Findings) -> Section:
    """One line for every method that reads the same members."""
    lines, ood = found.assessment.lines, list(found.assessment.ood)
    both = any(line.calibrated for line in lines)
    getters: list[
        tuple[str, Any, int, bool, int]
    ] = [  # title, value, places, per cent, whether more (1) or less is better
        ("Accuracy\u00a0%", lambda s: s.accuracy, 2, True, 1),
        ("ECE\u00a0%", lambda s: s.ece, 2, True, -1),
        ("NLL", lambda s: s.nll, 4, False, -1),
        ("Brier", lambda s: s.brier, 4, False, -1),
        ("AR area", lambda s: s.area, 4, False, 1),
        *((f"AUROC {n}\u00a0%", lambda s, n=n: s.ood[n].auroc, 2, True, 1) for n in ood),
    ]
    if len(ood) > 1:
        getters.append(("AUROC mean\u00a0%", lambda s: s.mean_auroc, 2, True, 1))
    rows: list[list[Cell | str]] = []
    for line in lines:
        title = METHODS[line.method].title if line.method in METHODS else None
        named = el("span", method_name(line.method), title=title)
        rows.append([Cell(named), *(["calibrated" if line.calibrated else "plain"] if both else [])])
    for _, get, places, share, sign in getters:
        values = [float(get(line)) for line in lines]
        shown = [number(v, places, percent=share).shown for v in values]
        best = shown[int(np.nanargmax([sign * v for v in values]))] if not np.isnan(values).all() else None
        for row, value, text in zip(rows, values, shown, strict=True):
            row.append(number(value, places, percent=share, best=len(set(shown)) > 1 and text == best))
    columns = ["Reading", *(["As"] if both else []), *(title for title, *_ in getters)]
    marked = [i for i, line in enumerate(lines) if line is found.line]
    content = join([table("Every reading of the run", columns, rows, marked=marked), side_by_side(found)])
    intro = (
        "The same members under every method that can read them. The tinted line is the one that this page is about; "
        "bold is the best of a column."
    )
    return Section("readings", "Readings", "Readings", intro, content)


def side_by_side(found: Findings) -> Html | None:
    """Three readings or more as bars: what rejecting by EU is worth, and how well each OOD set is found."""
    lines = found.assessment.lines
    if len(lines) < 3:
        return None
    names = [method_name(line.method) + (", calibrated" if line.calibrated else "") for line in lines]
    measures: list[tuple[str, list[float]]] = [("Area under accuracy-rejection, by EU", [line.area for line in lines])]
    measures += [(f"AUROC of {n}, by EU", [line.ood[n].auroc for line in lines]) for n in found.assessment.ood]
    charts = [
        bar_chart(title, [Bar(n, v, line is found.line) for n, v, line in zip(names, values, lines, strict=True)])
        for title, values in measures
    ]
    return el("div", *charts, class_="charts")


def members(found: Findings) -> Section:
    """Accuracy and fit of each member."""
    alone = np.asarray(member_accuracy(found.prediction.probs, found.samples.labels))
    columns = ["Member", "Accuracy\u00a0%"]
    rows: list[list[Cell | str]] = [[number(i, 0), number(float(v), 2, percent=True)] for i, v in enumerate(alone)]
    extras = [
        ("Delta", 3, False, [r.get("delta") for r in found.story.records]),
        ("Training accuracy\u00a0%", 2, True, [r.get("train", {}).get("accuracy") for r in found.story.records]),
        ("Training loss", 4, False, [r.get("train", {}).get("loss") for r in found.story.records]),
        ("Training confidence", 3, False, [r.get("train", {}).get("confidence") for r in found.story.records]),
        ("Temperature", 3, False, list(found.story.temperatures) if found.line.calibrated else []),
    ]
    for title, places, share, values in extras:
        if any(v is not None for v in values):
            columns.append(title)
            for row, value in zip(rows, values, strict=True):
                row.append(number(float("nan") if value is None else float(value), places, percent=share))
    content = table("Every member of the run", columns, rows)
    intro = "Each network by itself. Training figures are of its fit at the end, without augmentation."
    return Section("members", "Members", "Members", intro, join([content, made_of(found)]))


def made_of(found: Findings) -> Html | None:
    """What a reader needs to train the run again."""
    if found.story.config is None:
        return None
    c = found.story.config
    rule = {k: v for k, v in c["method"]["rule"].items() if k != "rule"}
    facts = [
        (
            "Training set",
            f"{c['data']['name']}, {c['data']['samples']:,} samples, fingerprint {c['data']['fingerprint']}",
        ),
        ("Network", c["network"].get("name") or c["network"].get("own")),
        ("Method", ", ".join([c["method"]["name"], *(f"{k} {v}" for k, v in rule.items())])),
        ("Recipe", ", ".join(f"{k} {v}" for k, v in c["recipe"].items() if v not in ([], None))),
        ("Versions", ", ".join(f"{k} {v}" for k, v in c.get("versions", {}).items())),
    ]
    if found.samples.data is not None and found.samples.data.notes:
        facts.append(("Test set", f"{found.samples.data.name}: {'; '.join(found.samples.data.notes)}"))
    return behind(
        "How the run was made", el("dl", *(el("div", el("dt", k), el("dd", v)) for k, v in facts), class_="made")
    )
