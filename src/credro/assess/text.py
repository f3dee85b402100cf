"""Assessments as aligned text, as a sentence and as rows of a CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from credro.assess.lines import COMPARED, Assessment, Line


def layout(assessments: Sequence[Assessment]) -> str:
    """One readable table of several assessments: accuracy, ECE and AUROC in per cent, a line per method."""
    ood = list(dict.fromkeys(k for a in assessments for k in a.ood))
    columns = ["accuracy", "ECE", *([f"AUROC\n{name}" for name in ood]), *(["AUROC\nmean"] if len(ood) > 1 else [])]

    def cells(line: Line) -> list[str]:
        row = [_percent(line.accuracy), _percent(line.ece)]
        row += [_percent(line.ood[name].auroc) if name in line.ood else "-" for name in ood]
        return [*row, *([_percent(line.mean_auroc)] if len(ood) > 1 else [])]

    heads, rows = _named(assessments)
    return table([[*row, *cells(line)] for row, line in rows], [*heads, *columns], widest=10)


def error_layout(assessments: Sequence[Assessment]) -> str:
    """What each score is worth for finding errors, in per cent: AUROC of errors, area and accuracy at 90 % coverage."""
    shown = {"epistemic": "EU", "total": "total", "1 - max p": "1-max p"}
    kinds = {"auroc": "AUROC", "area": "area", "accuracy_at_90": "acc.90"}
    columns = [f"{kind}\n{shown[score]}" for kind in kinds.values() for score in COMPARED]
    heads, rows = _named(assessments)
    cells = [[_percent(getattr(line.errors[s], kind)) for kind in kinds for s in COMPARED] for _, line in rows]
    return table([[*row, *part] for (row, _), part in zip(rows, cells, strict=True)], [*heads, *columns], widest=10)


def worth(assessments: Sequence[Assessment]) -> str:
    """Which score finds errors best here, and which is for which question."""
    lines = [line for a in assessments for line in a.lines]
    wins = dict.fromkeys(COMPARED, 0)
    judged = 0
    for line in lines:
        aurocs = {score: line.errors[score].auroc for score in COMPARED}
        if not any(math.isnan(value) for value in aurocs.values()):
            judged += 1
            for score, value in aurocs.items():
                wins[score] += value >= max(aurocs.values()) - 1e-9
    aim = "EU is for unfamiliar inputs, which OOD sets measure; total and 1 - max p are for errors"
    if not judged:
        everything = "right" if all(line.accuracy == 1 for line in lines) else "wrong"
        return f"Errors: every prediction is {everything}, so no score can tell them apart. {aim}."
    best = [score for score, won in wins.items() if won == max(wins.values())]
    names = " and ".join("EU" if score == "epistemic" else score for score in best)
    return f"Errors are found best by {names} here (in {wins[best[0]]} of {judged} lines). {aim}."


def flat(assessments: Sequence[Assessment]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows for a CSV: everything in the lines, one row per run, method and calibration."""
    ood = list(dict.fromkeys(k for a in assessments for k in a.ood))
    plain = ["accuracy", "ece", "nll", "brier", "mean_eu", "area", "normalised_area"]
    of_errors = ("auroc", "area", "accuracy_at_90")
    header = ["run", "data", "samples", "method", "calibrated", *plain, "member_min", "member_mean", "member_max"]
    header += [f"error_{kind}:{score}" for score in COMPARED for kind in of_errors]
    header += [f"{score}:{name}" for name in ood for score in ("auroc", "aupr", "fpr95", "gap")] + ["mean_auroc"]
    rows = []
    for a in assessments:
        for line in a.lines:
            row: list[Any] = [a.name, a.data, a.samples, line.method, line.calibrated]
            row += [getattr(line, key) for key in plain] + list(line.members)
            row += [getattr(line.errors[score], kind) for score in COMPARED for kind in of_errors]
            for name in ood:
                s = line.ood.get(name)
                row += [s.auroc, s.aupr, s.fpr95, s.gap] if s else [None] * 4
            rows.append([*row, line.mean_auroc])
    return header, [["" if v is None or v != v else v for v in row] for row in rows]


def table(rows: Sequence[Sequence[object]], columns: Sequence[str], *, widest: int = 12) -> str:
    """Plain aligned text: headings above a rule, numbers to the right, everything else to the left.

    A heading wider than ``widest`` is broken after a space, hyphen, underscore, colon or slash; a line break is kept.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    heads = [_broken(column, widest) for column in columns]
    height = max((len(h) for h in heads), default=1)
    heads = [[""] * (height - len(h)) + h for h in heads]
    right = [bool(cells) and all(_numeric(row[i]) for row in cells) for i in range(len(columns))]
    widths = [max(map(len, [*heads[i], *(row[i] for row in cells)])) for i in range(len(columns))]
    lines = [[h[level] for h in heads] for level in range(height)] + [["-" * w for w in widths]] + cells
    return "\n".join(
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in lines
    )


def _named(assessments: Sequence[Assessment]) -> tuple[list[str], list[tuple[list[str], Line]]]:
    """What says which line it is: run and calibration where they differ, and method. Headings, then lines."""
    several = len(assessments) > 1
    calibrated = any(line.calibrated for a in assessments for line in a.lines)
    heads = [*(["run"] if several else []), "method", *(["as"] if calibrated else [])]
    rows = []
    for a in assessments:
        for line in a.lines:
            kind = ["calibrated" if line.calibrated else "plain"] if calibrated else []
            rows.append(([*([a.name] if several else []), line.method, *kind], line))
    return heads, rows


def _broken(text: str, widest: int) -> list[str]:
    lines: list[str] = []
    for part in re.findall(r"\n?[^ _:/\n-]*[ _:/-]?", text):
        if not lines or part.startswith("\n") or (lines[-1] and len((lines[-1] + part).rstrip()) > widest):
            lines.append("")
        lines[-1] += part
    return [line.strip() for line in lines]


def _numeric(text: str) -> bool:
    return re.fullmatch(r"-|[-+]?[\d.,]+(e[-+]?\d+)?%?|nan", text) is not None


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.2f}"
