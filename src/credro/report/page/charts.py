"""Charts as inline SVG. The drawing stretches with the page; axes and legends are HTML, so text keeps its size.

Nothing has a ``style`` attribute: the page's security policy forbids it, and colours come from the style sheet, which
knows light, dark and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from credro.evaluation import Reliability
from credro.report.page.markup import Cell, Html, behind, el, join, number, table
from credro.report.page.numbers import STEPS, Floats, Rejection, Shapes, ticks
from credro.report.page.words import percent

UNIT = 1000
"""Drawings are so many units wide and high."""
POINTS = 400
"""A curve is drawn through at most so many points."""
NARROW = 0.025
"""An interval is drawn at least so wide, or it could not be seen."""


def line(x: Floats, y: Floats) -> str:
    """A path through points given as fractions of the drawing's width and height, upwards."""
    steps = (f"{UNIT * a:.1f} {UNIT * (1 - b):.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return "M" + "L".join(steps)


def frame(
    key: str,
    title: str,
    description: str,
    marks: Sequence[object],
    *,
    x: Sequence[str],
    y: Sequence[str],
    x_title: str,
    y_title: str,
) -> Html:
    """A drawing inside its axes. x, y: what is written at evenly spaced places, from left to right and upwards."""
    at = [f"{UNIT * i / max(len(y) - 1, 1):.1f}" for i in range(len(y))]
    grid = [el("line", x1=0, x2=UNIT, y1=h, y2=h, class_="grid") for h in at]
    svg = el(
        "svg",
        el("title", title, id=f"{key}-title"),
        el("desc", description, id=f"{key}-desc"),
        *grid,
        *marks,
        viewBox=f"0 0 {UNIT} {UNIT}",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
    )
    return el(
        "div",
        el("div", y_title, class_="y-title", aria_hidden="true"),
        el("div", *(el("span", text) for text in reversed(y)), class_="y", aria_hidden="true"),
        svg,
        el("div", *(el("span", text) for text in x), class_="x", aria_hidden="true"),
        el("div", x_title, class_="x-title", aria_hidden="true"),
        class_="chart",
        id=key,
    )


def plain_number(value: float) -> str:
    """A tick."""
    return f"{value:g}"


def density_chart(found: Shapes, legend: Sequence[tuple[str, str]], axis: str) -> Html:
    """EU of the ID set, filled, against that of each OOD set, and the threshold that the slider moves.

    legend: the name of each set and what to say of it, in the order of the lines.
    """
    x = found.grid / found.grid[-1]
    marks = [el("line", x1=0, x2=UNIT, y1=UNIT, y2=UNIT, class_="grid")]
    for i, y in enumerate(found.lines.values()):
        path = line(x, np.minimum(y / found.top, 1.2))  # what is above the drawing is cut off by it
        if i == 0:
            marks.append(el("path", d=f"{path}V{UNIT}H0Z", class_="area inside"))
        marks.append(el("path", d=path, class_=f"line {_set(i)}"))
    marks.append(el("line", x1=-10, x2=-10, y1=0, y2=UNIT, class_="cursor", id="eu-cursor"))
    names = list(found.lines)
    key = el(
        "ul",
        *(
            el("li", el("span", class_=f"swatch {_set(i)}"), el("b", name), " ", el("span", said, class_="quiet"))
            for i, (name, said) in enumerate(legend)
        ),
        class_="legend",
    )
    peaks = ", ".join(f"{name} peaks at {found.grid[int(v.argmax())]:.3g}" for name, v in found.lines.items())
    chart = frame(
        "eu",
        "Densities of epistemic uncertainty",
        f"{peaks}.",
        marks,
        x=[plain_number(t) for t in found.ticks],
        y=[],
        x_title=axis,
        y_title="density",
    )
    cut = f"Cut off at the top: {', '.join(found.cut)}." if found.cut else None
    rows = [
        [number(float(found.grid[g]), 3), *(number(float(v[g]), 3) for v in found.lines.values())]
        for g in range(0, len(found.grid), max(1, len(found.grid) // 24))
    ]
    data = behind("Data table", table("Densities of epistemic uncertainty", ["EU", *names], rows, sortable=False))
    return join([key, chart, el("p", cut, class_="note") if cut else None, data])


def rejection_chart(found: Rejection) -> tuple[Html, Html]:
    """Accuracy of what is kept against the fraction rejected, the mark that the slider moves, and the data table."""
    accuracy = np.asarray(found.curve.accuracy)[:-1]  # the last point is 1 by definition and says nothing
    rates = np.asarray(found.curve.rates)[:-1]
    shown = np.unique(np.linspace(0, len(accuracy) - 1, min(POINTS, len(accuracy))).astype(int))
    marks = ticks(min(float(accuracy.min()), 0.99), 1.0)  # a point at least: a classifier that never errs has no range
    low, high = marks[0], marks[-1]
    drawn = line(rates[shown], (accuracy[shown] - low) / (high - low))
    tens = list(range(0, STEPS, STEPS // 20))
    rows = [
        [
            number(i / STEPS, 0, percent=True),
            number(float(found.kept[i]), 0),
            number(float(found.right[i] / found.kept[i]) if found.kept[i] else float("nan"), 2, percent=True),
            Cell("–" if found.limits[i] is None else f"{found.limits[i]:g}", found.limits[i] or 0.0),
        ]
        for i in tens
    ]
    half = found.right[STEPS // 2] / found.kept[STEPS // 2] if found.kept[STEPS // 2] else 1.0
    chart = frame(
        "rejection",
        "Accuracy against rejection",
        f"From {percent(float(accuracy[0]))} when every sample is answered to {percent(float(half))} when the most "
        f"uncertain half is rejected.",
        [
            el("path", d=drawn, class_="line accent"),
            el("line", x1=0, x2=0, y1=0, y2=UNIT, class_="cursor", id="cursor"),
            el("path", d=f"M0 {UNIT}h0.01", class_="dot accent", id="dot", data_low=low, data_high=high),
        ],
        x=["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"],
        y=[f"{100 * t:g} %" for t in marks],
        x_title="fraction rejected, most uncertain first",
        y_title="accuracy of the rest",
    )
    columns = ["Rejected\u00a0%", "Kept", "Accuracy\u00a0%", "Abstain above EU"]
    return chart, behind("Data table", table("Accuracy against rejection", columns, rows, sortable=False))


def reliability_chart(found: Reliability) -> Html:
    """Accuracy in bins of confidence, the diagonal of perfect calibration, and how many samples are in each bin."""
    edges, accuracy, confidence, count = (
        np.asarray(part, dtype=np.float64) for part in (found.edges, found.accuracy, found.confidence, found.count)
    )
    full = np.flatnonzero(count)
    bars: list[Html] = []
    for b in full:
        wide, left = UNIT * (edges[b + 1] - edges[b]), UNIT * edges[b]
        tall = UNIT * accuracy[b]
        bars.append(_rect(left + 0.06 * wide, UNIT - tall, 0.88 * wide, tall, "bin"))
    dots = [
        el("path", d=f"M{UNIT * confidence[b]:.1f} {UNIT * (1 - accuracy[b]):.1f}h0.01", class_="dot accent")
        for b in full
    ]
    fifths = ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    chart = frame(
        "reliability",
        "Reliability diagram",
        f"Accuracy against confidence in {len(count)} bins; expected calibration error {percent(found.ece)}.",
        [*bars, el("line", x1=0, y1=UNIT, x2=UNIT, y2=0, class_="ideal"), *dots],
        x=fifths,
        y=fifths,
        x_title="confidence: probability of the predicted class",
        y_title="accuracy",
    )
    most = float(count.max())
    strip = frame(
        "counts",
        "Samples in each bin of confidence",
        f"{int(count[-1]):,} of {int(count.sum()):,} samples are in the last bin.",
        [
            _rect(
                UNIT * edges[b] + 6, UNIT * (1 - count[b] / most), UNIT / len(count) - 12, UNIT * count[b] / most, "bin"
            )
            for b in full
        ],
        x=[],
        y=["0", f"{int(most):,}"],
        x_title="",
        y_title="samples",
    )
    rows = [
        [
            Cell(f"{edges[b]:g} to {edges[b + 1]:g}", float(b)),
            number(count[b], 0),
            number(confidence[b], 3),
            number(accuracy[b], 3),
        ]
        for b in range(len(count))
    ]
    columns = ["Confidence", "Samples", "Mean confidence", "Accuracy"]
    return join([chart, strip, behind("Data table", table("Reliability", columns, rows, sortable=False))])


def interval(low: float, mean: float, high: float, kind: str = "") -> Html:
    """One probability interval as a bar with its mean. Decorative: the numbers stand beside it."""
    wide = max(high - low, NARROW)
    left = min(low, 1 - wide)
    bar = [_rect(0, 0, UNIT, 10, "track"), _rect(UNIT * left, 0, UNIT * wide, 10, f"interval {kind}".strip())]
    if wide > 2 * NARROW:  # else the mark would hide the bar
        bar.append(el("line", x1=f"{UNIT * mean:.1f}", x2=f"{UNIT * mean:.1f}", y1=-1, y2=11, class_="mean"))
    return _small(*bar)


@dataclass(frozen=True)
class Bar:
    """One bar. value: in [0, 1]; NaN has none. strong: the one that the page is about."""

    name: str
    value: float
    strong: bool = False


def bar_chart(title: str, bars: Sequence[Bar], digits: int = 2) -> Html:
    """Values in per cent as bars from 0 to 100, each with its number: what ties can be read, where curves coincide."""
    rows = [
        el(
            "li",
            el("span", bar.name, class_="class truth" if bar.strong else "class", title=bar.name),
            _small(
                _rect(0, 0, UNIT, 10, "track"),
                *([] if np.isnan(bar.value) else [_rect(0, 0, UNIT * bar.value, 10, "interval")]),
            ),
            el("span", "–" if np.isnan(bar.value) else percent(bar.value, digits), class_="range"),
        )
        for bar in bars
    ]
    return el("figure", el("figcaption", title), el("ul", *rows, class_="bars"), class_="compared")


def spread(percentiles: Sequence[float], top: float) -> Html:
    """10th to 90th percentile as a thin line, the middle half as a bar, the median as a mark."""
    a, b, c, d, e = (UNIT * min(v / top, 1) for v in percentiles)
    return _small(
        _rect(0, 0, UNIT, 10, "track"),
        _rect(a, 4, max(e - a, 2), 2, "whisker"),
        _rect(b, 0, max(d - b, 6), 10, "interval"),
        el("line", x1=f"{c:.1f}", x2=f"{c:.1f}", y1=-1, y2=11, class_="mean"),
    )


def _small(*marks: Html) -> Html:
    return el(
        "svg",
        *marks,
        viewBox=f"0 0 {UNIT} 10",
        preserveAspectRatio="none",
        class_="small",
        aria_hidden="true",
        focusable="false",
    )


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Html:
    return el("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", class_=kind)


def _set(i: int) -> str:
    """The style of the i-th set: the ID set comes first; OOD sets take turns with six colours."""
    return "inside" if i == 0 else f"ood{(i - 1) % 6}"
