"""Predictions as a notebook shows them: a small table of the first samples, with bars, readable on light and dark.

Nothing is loaded, names are escaped and cut short, and only the samples shown are computed: the result is small however
many samples there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from credro.readouts.base import Prediction
from credro.readouts.columns import LEVEL, array, distinct
from credro.readouts.gaussian import GaussianPrediction
from credro.readouts.markup import Html, el

ROWS = 10
"""Samples shown."""
TOP = 3
"""Classes shown of each sample."""
BAR = 120
"""Width of a bar in pixels."""
LONGEST = 40
"""Letters of a name."""

ACCENT, REST = "#D55E00", "#8a8a8a"
LEFT = "text-align:left;vertical-align:top;white-space:nowrap;padding:2px 8px"
RIGHT = "text-align:right;vertical-align:top;white-space:nowrap;padding:2px 8px"
QUIET = "opacity:.75;margin:.3em 0"


def prediction_html(prediction: Prediction) -> Html:
    """Name, label and probability of the first samples, the intervals of their top classes, and uncertainties."""
    shown = prediction[:ROWS]
    names = distinct(shown.classes, shown.mean.shape[-1])
    mean, lower, upper = array(shown.mean), array(shown.lower), array(shown.upper)
    rows = []
    for i in range(len(shown)):
        top = (-mean[i]).argsort(kind="stable")[:TOP]
        label = int(shown.label[i])
        bars = [_bar_line(names[k], mean[i, k], lower[i, k], upper[i, k], ACCENT if k == label else REST) for k in top]
        numbers = (shown.epistemic[i], shown.aleatoric[i], shown.total[i])
        rows.append(
            el(
                "tr",
                el("td", _sample(shown, i), style=LEFT),
                el("td", el("b", cut(names[label])), style=LEFT),
                el("td", f"{mean[i, label]:.3f}", style=RIGHT),
                el("td", *bars, style=LEFT),
                *(el("td", f"{float(u):.3f}", style=RIGHT) for u in numbers),
            )
        )
    heads = ("sample", "label", "probability", f"top {min(TOP, len(names))}: lower to upper", "EU", "AU", "TU")
    return _block(prediction, table(heads, rows, left=(0, 1, 3)), _words(prediction))


def numbers_html(prediction: GaussianPrediction) -> Html:
    """Name, mean and standard deviation of the first samples, an interval on a common scale, and uncertainties."""
    shown = prediction[:ROWS]
    lower, upper = (array(end) for end in shown.interval(LEVEL))
    start, end = (float(lower.min()), float(upper.max())) if len(shown) else (0.0, 1.0)
    span = (end - start) or 1.0
    rows = []
    for i in range(len(shown)):
        mean, low, high = float(shown.mean[i]), float(lower[i]), float(upper[i])
        label = f"mean {mean:.4g}, interval {low:.4g} to {high:.4g}"
        bar = _bar((mean - start) / span, (low - start) / span, (high - start) / span, ACCENT, label)
        numbers = (shown.epistemic[i], shown.aleatoric[i], shown.total[i])
        rows.append(
            el(
                "tr",
                el("td", _sample(shown, i), style=LEFT),
                el("td", el("b", f"{mean:.4g}"), style=RIGHT),
                el("td", f"{float(shown.std[i]):.3g}", style=RIGHT),
                el("td", bar, f" {low:.4g} to {high:.4g}", style=LEFT),
                *(el("td", f"{float(u):.3g}", style=RIGHT) for u in numbers),
            )
        )
    heads = ("sample", "mean", "std", f"{LEVEL:.0%} interval, on {start:.4g} to {end:.4g}", "EU", "AU", "TU")
    words = "Tick: mean. EU, AU, TU are variances."
    return _block(prediction, table(heads, rows, left=(0, 3)), words)


def table(heads: Sequence[str], rows: Sequence[Html], left: Sequence[int]) -> Html:
    """A table in the notebook's own colours. left: columns of text; the others hold numbers."""
    head = el("tr", *(el("th", h, style=LEFT if i in left else RIGHT) for i, h in enumerate(heads)))
    return el("table", el("thead", head), el("tbody", *rows), style="border-collapse:collapse;margin:0;color:inherit")


def cut(name: object, longest: int = LONGEST, *, tail: bool = False) -> str:
    """A name of at most ``longest`` letters; ``tail`` keeps its end, where paths differ."""
    text = str(name)
    if len(text) <= longest:
        return text
    return "…" + text[-longest + 1 :] if tail else text[: longest - 1] + "…"


def _sample(shown: Prediction | GaussianPrediction, i: int) -> str:
    return cut(shown.samples[i], tail=True)


def _block(prediction: Prediction | GaussianPrediction, rows: Html, words: str) -> Html:
    count = len(prediction)
    most = ""
    if count > ROWS:
        words = f"The first {ROWS} of {count:,} samples; to_frame() has all. {words}"
        most = "The most uncertain first: pred[pred.epistemic.argsort(descending=True)]."
    head = el("p", el("b", repr(prediction)), style="margin:.3em 0")
    return el("div", head, rows, el("p", f"{words} {most}".strip(), style=QUIET), style="overflow-x:auto")


def _words(prediction: Prediction) -> str:
    bars = "Bars: lower to upper probability" if prediction.set is not None else "Bars: range of the members"
    measure = "EU, AU, TU in nats."
    if prediction.set is not None and prediction.measure == "width":
        measure = "EU: width of the interval; AU, TU in nats."
    return f"{bars}; tick: mean. {measure}"


def _bar_line(name: str, mean: float, low: float, high: float, colour: str) -> Html:
    label = f"{cut(name)}: {mean:.3f}, {low:.3f} to {high:.3f}"
    text = el("span", f" {cut(name)}: {mean:.2f} [{low:.2f}, {high:.2f}]")
    return el("div", _bar(mean, low, high, colour, label), text, style="line-height:1.4")


def _bar(mean: float, low: float, high: float, colour: str, label: str) -> Html:
    """An interval within [0, 1] as a drawing; at least a pixel and a half wide, so that a point is seen."""
    width = max(1.5, BAR * (high - low))
    return el(
        "svg",
        el("rect", x=0, y=3, width=BAR, height=6, fill="currentColor", opacity=0.12),
        el("rect", x=_px(min(BAR * low, BAR - width)), y=2, width=_px(width), height=8, fill=colour, opacity=0.75),
        el("rect", x=_px(BAR * mean - 1), y=0, width=2, height=12, fill="currentColor"),
        width=BAR,
        height=12,
        role="img",
        aria_label=label,
        style="vertical-align:middle",
    )


def _px(value: Any) -> str:
    return f"{max(0.0, float(value)):.1f}"
