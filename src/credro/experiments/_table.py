"""A table with means and standard deviations, the paper's values beside ours: Markdown, CSV, LaTeX and JSON of it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, TypeAlias

from credro.training.files import write_bytes, write_json


@dataclass(frozen=True)
class Number:
    """A mean over runs. std: their standard deviation, None for one run. paper: the paper's value, where it has one."""

    mean: float
    std: float | None = None
    paper: float | None = None
    best: bool = False
    digits: int = 1

    @classmethod
    def of(cls, values: Sequence[float], *, paper: float | None = None, digits: int = 1) -> Number:
        """From one value per run."""
        finite = [v for v in values if not math.isnan(v)]
        if not finite:
            return cls(math.nan, None, paper, digits=digits)
        return cls(mean(finite), stdev(finite) if len(finite) > 1 else None, paper, digits=digits)

    def text(self, plus_minus: str = " ± ") -> str:
        """``73.6 ± 0.4``, without the paper's value."""
        if math.isnan(self.mean):
            return "–"
        spread = "" if self.std is None else f"{plus_minus}{self.std:.{self.digits}f}"
        return f"{round(self.mean, self.digits) + 0.0:.{self.digits}f}{spread}"  # no minus before a zero


Entry: TypeAlias = Number | str


@dataclass(frozen=True)
class Table:
    """name: of its files. note: what a reader must know, such as the setting and the unit."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """With the best in bold, the paper's value in brackets."""

        def cell(entry: Entry) -> str:
            if isinstance(entry, str):
                return entry.replace("|", "\\|")
            text = f"**{entry.text()}**" if entry.best else entry.text()
            return text if entry.paper is None else f"{text} ({entry.paper:g})"

        lines = [f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]
        return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in self.rows)])

    def latex(self) -> str:
        """A ``booktabs`` table."""

        def cell(entry: Entry) -> str:
            if isinstance(entry, str):
                return _escaped(entry)
            text = entry.text(r" \pm ").replace("–", "-")
            text = rf"\mathbf{{{text}}}" if entry.best else text
            return f"${text}$" if entry.paper is None else f"${text}$ ({entry.paper:g})"

        lines = [
            r"\begin{table}[t]",
            r"\centering\small",
            rf"\caption{{{_escaped(self.title)} {_escaped(self.note)}}}",
            rf"\begin{{tabular}}{{{'l' + 'c' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(map(_escaped, self.columns)) + r" \\",
            r"\midrule",
            *(" & ".join(map(cell, row)) + r" \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Numbers in full: for every column of numbers its mean, its standard deviation and the paper's value."""
        wide = [any(isinstance(row[c], Number) for row in self.rows) for c in range(len(self.columns))]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        parts = [(n, f"{n} std", f"{n} paper") if w else (n,) for n, w in zip(self.columns, wide, strict=True)]
        writer.writerow(name for part in parts for name in part)
        for row in self.rows:
            line: list[Any] = []
            for entry, numbers in zip(row, wide, strict=True):
                if isinstance(entry, Number):
                    line += ["" if v is None or math.isnan(v) else v for v in (entry.mean, entry.std, entry.paper)]
                else:
                    line += [entry, "", ""] if numbers else [entry]
            writer.writerow(line)
        return out.getvalue()

    def write(self, folder: Path) -> None:
        """In all four formats."""
        text = f"# {self.title}\n\n{self.note}\n\n{self.markdown()}\n"
        for suffix, content in (("md", text), ("csv", self.csv()), ("tex", self.latex())):
            write_bytes(folder / f"{self.name}.{suffix}", content.encode())
        write_json(folder / f"{self.name}.json", _plain(asdict(self)))


def best_in_columns(rows: Sequence[Sequence[Entry]], *, lowest: Sequence[int] = ()) -> tuple[tuple[Entry, ...], ...]:
    """Mark the best number of each column; ``lowest``: columns in which small is good."""
    out = [list(row) for row in rows]
    for c in range(len(out[0]) if out else 0):
        numbers = [e.mean for row in out if isinstance(e := row[c], Number) and not math.isnan(e.mean)]
        if len(numbers) < 2:
            continue
        top = min(numbers) if c in lowest else max(numbers)
        for row in out:
            if isinstance(entry := row[c], Number):
                row[c] = replace(entry, best=entry.mean == top)
    return tuple(map(tuple, out))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escaped(text: str) -> str:
    for sign in "&%_#":
        text = text.replace(sign, "\\" + sign)
    return text.replace("±", r"$\pm$")
