"""The one aligned text table of commands, demo and evaluations."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[object]], columns: Sequence[str], *, widest: int = 12) -> str:
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


def percent(value: float, digits: int = 2) -> str:
    """A fraction in per cent; NaN is a dash."""
    return "-" if math.isnan(value) else f"{100 * value:.{digits}f}"


def _broken(text: str, widest: int) -> list[str]:
    lines: list[str] = []
    for part in re.findall(r"\n?[^ _:/\n-]*[ _:/-]?", text):
        if not lines or part.startswith("\n") or (lines[-1] and len((lines[-1] + part).rstrip()) > widest):
            lines.append("")
        lines[-1] += part
    return [line.strip() for line in lines]


def _numeric(text: str) -> bool:
    return re.fullmatch(r"-|[-+]?[\d.,]+(e[-+]?\d+)?%?|nan", text) is not None
