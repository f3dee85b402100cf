"""What tables and charts of the page show, as typed values; the templates make markup of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from credro.report.page._numbers import Floats, Rejection, Shapes, ticks

UNIT = 1000
"""Drawings are so many units wide and high."""
POINTS = 400
"""A curve is drawn through at most so many points."""
COLOURS = 6
"""OOD sets take turns with so many colours."""


@dataclass(frozen=True)
class Cell:
    """What is shown, and the number it is sorted by; text is sorted as text. spread: percentiles
    and the right end of their drawing, which takes the place of text."""

    shown: str
    value: float | None = None
    best: bool = False
    title: str | None = None
    spread: tuple[Sequence[float], float] | None = None


@dataclass(frozen=True)
class Table:
    """A table whose columns sort at a click, unless told otherwise; the first cell of a row is its heading.

    marked: rows that the page is about.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    marked: Sequence[int] = ()
    sortable: bool = True

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers only; the first holds names."""
        columns = range(1, len(self.columns))
        return [False, *(all(r[i].value is not None and not r[i].spread for r in self.rows) for i in columns)]


def number(value: float, digits: int = 2, *, percent: bool = False, best: bool = False) -> Cell:
    """A number to so many places, a fraction in per cent; NaN is a dash."""
    if value != value:
        return Cell("–", -1e300)
    return Cell(f"{100 * value if percent else value:,.{digits}f}", value, best)


def compared(values: Sequence[float], digits: int = 2, *, percent: bool = False, less: bool = False) -> list[Cell]:
    """A column of numbers, the largest (or the least) in bold unless all are equal as they are shown."""
    shown = [number(v, digits, percent=percent).shown for v in values]
    if len(set(shown)) < 2:
        return [number(v, digits, percent=percent) for v in values]
    top = shown[int((np.nanargmin if less else np.nanargmax)(values))]
    return [number(v, digits, percent=percent, best=text == top) for v, text in zip(values, shown, strict=True)]


@dataclass(frozen=True)
class Curve:
    """A line of the chart, and its entry in the legend."""

    name: str
    said: str
    style: str
    path: str


@dataclass(frozen=True)
class Bar:
    """One bar. value: in [0, 1]; NaN has none. strong: the one that the page is about."""

    name: str
    value: float
    strong: bool = False


@dataclass(frozen=True)
class BarChart:
    """Values in per cent as bars."""

    title: str
    bars: Sequence[Bar]


def line(x: Floats, y: Floats) -> str:
    """A path through points given as fractions of the drawing's width and height, upwards."""
    steps = (f"{UNIT * a:.1f} {UNIT * (1 - b):.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return "M" + "L".join(steps)


def density_curves(found: Shapes, said: Sequence[str]) -> list[Curve]:
    """EU of the ID set, then of each OOD set. said: what the legend says of each."""
    x = found.grid / found.grid[-1]
    curves = []
    for i, (name, y) in enumerate(found.lines.items()):
        path = line(x, np.minimum(y / found.top, 1.2))  # what is above the drawing is cut off by it
        curves.append(Curve(name, said[i], f"ood{(i - 1) % COLOURS}" if i else "inside", path))
    return curves


def rejection_curve(found: Rejection) -> tuple[str, list[float]]:
    """Accuracy of what is kept against the fraction rejected: its path, and the ticks of the upright axis."""
    accuracy = np.asarray(found.curve.accuracy)[:-1]  # the last point is 1 by definition and says nothing
    rates = np.asarray(found.curve.rates)[:-1]
    shown = np.unique(np.linspace(0, len(accuracy) - 1, min(POINTS, len(accuracy))).astype(int))
    marks = ticks(min(float(accuracy.min()), 0.99), 1.0)  # a point at least: a classifier that never errs has no range
    return line(rates[shown], (accuracy[shown] - marks[0]) / (marks[-1] - marks[0])), marks
