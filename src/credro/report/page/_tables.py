"""The values of the sections that are tables: confusion, classes, methods, members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from credro.evaluation import MethodResult
from credro.methods import CHOICES, METHODS, label
from credro.metrics import member_accuracy
from credro.report.page._findings import Findings
from credro.report.page._numbers import Integers, class_rows, confusion
from credro.report.page._values import Bar, BarChart, Cell, Table, compared, number
from credro.report.page._words import listed
from credro.training.records import Fit, RunConfig

CLASSES_SHOWN = 30
"""Of more classes than this the table is folded away, and the widest are shown."""
MOST = 20
"""A confusion matrix of more classes cannot be read; so many pairs are listed instead."""
LEVELS = 10
"""Steps of the matrix's colour: the page's security policy forbids a colour of each cell's own."""
NAMED = 3
"""Confusions that are named below the matrix."""


@dataclass(frozen=True)
class Row:
    """The samples of one class: how many were taken for each; accuracy, mean EU and number."""

    name: str
    counts: Sequence[int]
    totals: Sequence[Cell]


def confusions(found: Findings) -> dict[str, Any]:
    """Which classes are taken for which: a matrix of counts, or of many classes the pairs that are confused most."""
    s, names = found.samples, found.samples.classes
    counts = confusion(s.labels, s.said, len(names))
    wrong = [(int(i), int(j)) for i, j in np.argwhere(counts) if i != j]
    order = sorted(wrong, key=lambda p: (-counts[p], -counts[p] / counts[p[0]].sum(), p))
    said = [f"{names[i]} taken for {names[j]} ({counts[i, j]:,} of {counts[i].sum():,})" for i, j in order[:NAMED]]
    sentence = f"Most often: {listed(said)}." if said else "Nothing is confused."
    rows = [_confused(found, k, counts[k]) for k in range(len(names))] if len(names) <= MOST else []
    return {"matrix": rows, "pairs": _pairs(names, counts, order[:MOST]), "sentence": sentence, "levels": LEVELS}


def _confused(found: Findings, k: int, counts: Integers) -> Row:
    """counts: (C,) what the samples of class k were taken for."""
    total, mine = int(counts.sum()), found.samples.labels == k
    accuracy, eu = (counts[k] / total, float(found.eu[mine].mean())) if total else (np.nan, np.nan)
    totals = [number(accuracy, 1, percent=True), number(eu, 3), number(total, 0)]
    return Row(found.samples.classes[k], counts.tolist(), totals)


def _pairs(names: tuple[str, ...], counts: Integers, order: Sequence[tuple[int, int]]) -> Table:
    """One row for each (true, said), the most frequent first; of equal counts the larger fraction of its class."""
    rows = []
    for i, j in order:
        parts = [number(float(counts[i, k] / counts[i].sum()), 1, percent=True) for k in (j, i)]
        rows.append([Cell(names[i]), Cell(names[j]), number(int(counts[i, j]), 0), *parts])
    columns = ["True class", "Taken for", "Samples", "Of the class\u00a0%", "Right of the class\u00a0%"]
    return Table("Classes that are confused most often", columns, rows)


def classes(found: Findings) -> dict[str, Any]:
    """Interval widths class by class: the widest, and all of them where there are more."""
    s = found.samples
    known = class_rows(s.classes, s.labels, found.correct, s.eu, s.upper - s.lower)
    known.sort(key=lambda row: -row.width[2])
    top = max(0.05, *(row.width[-1] for row in known))
    rows = [
        [
            Cell(row.name),
            Cell("", row.width[2], spread=(row.width, top)),
            number(row.width[2], 3),
            number(row.accuracy, 1, percent=True),
            number(row.mean_eu, 3),
            number(row.samples, 0),
        ]
        for row in known
    ]
    columns = ["Class", f"Interval width, 0 to {top:.2g}", "Median", "Accuracy\u00a0%", "Mean\u00a0EU", "Samples"]
    every = Table("Interval widths of all classes", columns, rows) if len(rows) > CLASSES_SHOWN else None
    return {"widest": Table("Interval widths of the classes", columns, rows[:CLASSES_SHOWN]), "every": every}


def methods(found: Findings) -> dict[str, Any]:
    """A row for every method that can read the members; three or more also as bars."""
    results, ood = found.evaluation.results, list(found.evaluation.ood)
    both = any(result.calibrated for result in results)
    measures: list[tuple[str, Callable[[MethodResult], float], int, bool, bool]] = [
        # title, value, places, whether in per cent, whether less is better
        ("Accuracy\u00a0%", lambda r: r.accuracy, 2, True, False),
        ("ECE\u00a0%", lambda r: r.ece, 2, True, True),
        ("NLL", lambda r: r.nll, 4, False, True),
        ("Brier", lambda r: r.brier, 4, False, True),
        ("AR area", lambda r: r.area, 4, False, False),
        *((f"AUROC {n}\u00a0%", lambda r, n=n: r.ood[n].auroc, 2, True, False) for n in ood),
    ]
    if len(ood) > 1:
        measures.append(("AUROC mean\u00a0%", lambda r: r.mean_auroc, 2, True, False))
    named = [Cell(label(r.method), title=METHODS[r.method].title if r.method in METHODS else None) for r in results]
    kinds = [[Cell("calibrated" if r.calibrated else "plain") for r in results]] if both else []
    cells = [compared([get(r) for r in results], digits, percent=p, less=less) for _, get, digits, p, less in measures]
    columns = ["Method", *(["As"] if both else []), *(title for title, *_ in measures)]
    rows = list(zip(named, *kinds, *cells, strict=True))
    marked = [i for i, result in enumerate(results) if result is found.result]
    return {"results": Table("Results of every method", columns, rows, marked), "charts": _side_by_side(found)}


def _side_by_side(found: Findings) -> list[BarChart]:
    """What rejecting by EU is worth, and how well each OOD set is found, by each of three methods or more."""
    results = found.evaluation.results
    if len(results) < 3:
        return []
    measures = [("Area under accuracy-rejection, by EU", [r.area for r in results])]
    measures += [(f"AUROC of {n}, by EU", [r.ood[n].auroc for r in results]) for n in found.evaluation.ood]
    return [
        BarChart(title, [Bar(r.label, v, r is found.result) for r, v in zip(results, values, strict=True)])
        for title, values in measures
    ]


def members(found: Findings) -> dict[str, Any]:
    """Accuracy and fit of each member."""
    alone = np.asarray(member_accuracy(found.samples.prediction.probs, found.samples.labels))
    columns = ["Member", "Accuracy\u00a0%"]
    rows = [[number(i, 0), number(float(v), 2, percent=True)] for i, v in enumerate(alone)]
    records = found.records
    fits = [record.train or Fit(np.nan) for record in records]
    extras: list[tuple[str, int, bool, Sequence[float | None]]] = [
        ("Delta", 3, False, [record.delta for record in records]),
        ("Training accuracy\u00a0%", 2, True, [fit.accuracy for fit in fits]),
        ("Training loss", 4, False, [fit.loss for fit in fits]),
        ("Training confidence", 3, False, [fit.confidence for fit in fits]),
        ("Temperature", 3, False, found.temperatures if found.result.calibrated else []),
    ]
    for title, places, percent, values in extras:
        known = [np.nan if v is None else float(v) for v in values]
        if not np.isnan(known).all():
            columns.append(title)
            for row, value in zip(rows, known, strict=True):
                row.append(number(value, places, percent=percent))
    made = [] if found.config is None else _made_of(found.config)
    if made and found.samples.data is not None and found.samples.data.notes:
        made.append(("Test set", f"{found.samples.data.name}: {'; '.join(found.samples.data.notes)}"))
    return {"members": Table("Every member of the run", columns, rows), "made": made}


def _made_of(config: RunConfig) -> list[tuple[str, str]]:
    """What a reader needs to train the run again."""
    data, recipe = config.data, config.recipe.to_json()
    choices = [f"{what} {_choice(config.method[what])}" for what in CHOICES]
    return [
        ("Training set", f"{data.name}, {data.samples:,} samples, fingerprint {data.fingerprint}"),
        ("Network", str(config.network.name or config.network.own)),
        ("Method", "; ".join([label(config.method["name"]), *choices])),
        ("Recipe", ", ".join(f"{key} {value}" for key, value in recipe.items() if value not in ([], None))),
        ("Versions", ", ".join(f"{key} {value}" for key, value in config.versions.items())),
    ]


def _choice(config: dict[str, Any]) -> str:
    """``cvar (delta_g 0.5)``."""
    options = ", ".join(f"{key} {value}" for key, value in config.items() if key != "kind" and value is not None)
    return f"{config['kind']} ({options})" if options else str(config["kind"])
