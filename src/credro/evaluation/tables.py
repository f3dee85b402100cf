"""Evaluations as aligned text, as a sentence and as rows of a CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from credro._text import percent, text_table
from credro.evaluation.results import COMPARED, Evaluation, MethodResult
from credro.methods import label

SHORT = {"epistemic": "EU", "total": "total", "1 - max p": "1-max p"}
"""How a column is headed by each of the scores that are compared."""
OF_ERRORS = {"auroc": "AUROC", "area": "area", "accuracy_at_90": "acc.90"}


def results_table(evaluations: Sequence[Evaluation]) -> str:
    """One readable table of several evaluations: accuracy, ECE and AUROC in per cent, a row per method."""
    ood = _ood(evaluations)
    columns = ["accuracy", "ECE", *([f"AUROC\n{name}" for name in ood]), *(["AUROC\nmean"] if len(ood) > 1 else [])]

    def cells(result: MethodResult) -> list[str]:
        row = [percent(result.accuracy), percent(result.ece)]
        row += [percent(result.ood[name].auroc) if name in result.ood else "-" for name in ood]
        return [*row, *([percent(result.mean_auroc)] if len(ood) > 1 else [])]

    heads, rows = _named(evaluations)
    return text_table([[*row, *cells(result)] for row, result in rows], [*heads, *columns], widest=10)


def errors_table(evaluations: Sequence[Evaluation]) -> str:
    """What each score is worth for finding errors, in per cent: AUROC of errors, area and accuracy at 90 % coverage."""
    columns = [f"{kind}\n{SHORT[score]}" for kind in OF_ERRORS.values() for score in COMPARED]
    heads, rows = _named(evaluations)
    cells = [[percent(getattr(r.errors[s], kind)) for kind in OF_ERRORS for s in COMPARED] for _, r in rows]
    return text_table(
        [[*row, *part] for (row, _), part in zip(rows, cells, strict=True)], [*heads, *columns], widest=10
    )


def best_score(evaluations: Sequence[Evaluation]) -> str:
    """Which score finds errors best here, and which is for which question."""
    results = [result for e in evaluations for result in e.results]
    wins = dict.fromkeys(COMPARED, 0)
    judged = 0
    for result in results:
        aurocs = {score: result.errors[score].auroc for score in COMPARED}
        if not any(math.isnan(value) for value in aurocs.values()):
            judged += 1
            for score, value in aurocs.items():
                wins[score] += value >= max(aurocs.values()) - 1e-9
    aim = "EU is for unfamiliar inputs, which OOD sets measure; total and 1 - max p are for errors"
    if not judged:
        everything = "right" if all(result.accuracy == 1 for result in results) else "wrong"
        return f"Errors: every prediction is {everything}, so no score can tell them apart. {aim}."
    best = [score for score, won in wins.items() if won == max(wins.values())]
    names = " and ".join("EU" if score == "epistemic" else score for score in best)
    return f"Errors are found best by {names} here (in {wins[best[0]]} of {judged} rows). {aim}."


def csv_rows(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows for a CSV: everything in the results, one row per run, method and calibration."""
    ood = _ood(evaluations)
    plain = ["accuracy", "ece", "nll", "brier", "mean_eu", "area", "normalised_area"]
    header = ["run", "data", "samples", "method", "calibrated", *plain, "member_min", "member_mean", "member_max"]
    header += [f"error_{kind}:{score}" for score in COMPARED for kind in OF_ERRORS]
    header += [f"{score}:{name}" for name in ood for score in ("auroc", "aupr", "fpr95", "gap")] + ["mean_auroc"]
    rows = []
    for e in evaluations:
        for result in e.results:
            row: list[Any] = [e.name, e.data, e.samples, result.method, result.calibrated]
            row += [getattr(result, key) for key in plain] + list(result.members)
            row += [getattr(result.errors[score], kind) for score in COMPARED for kind in OF_ERRORS]
            for name in ood:
                s = result.ood.get(name)
                row += [s.auroc, s.aupr, s.fpr95, s.gap] if s else [None] * 4
            rows.append([*row, result.mean_auroc])
    return header, [["" if v is None or v != v else v for v in row] for row in rows]


def _ood(evaluations: Sequence[Evaluation]) -> list[str]:
    return list(dict.fromkeys(name for e in evaluations for name in e.ood))


def _named(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[tuple[list[str], MethodResult]]]:
    """What says which row it is: run and calibration where they differ, and method. Headings, then rows."""
    several = len(evaluations) > 1
    calibrated = any(result.calibrated for e in evaluations for result in e.results)
    heads = [*(["run"] if several else []), "method", *(["as"] if calibrated else [])]
    rows = []
    for e in evaluations:
        for result in e.results:
            kind = ["calibrated" if result.calibrated else "plain"] if calibrated else []
            rows.append(([*([e.name] if several else []), label(result.method), *kind], result))
    return heads, rows
