"""Predictions as a notebook shows them: a small table of the first samples, with bars, readable on light and dark.

Nothing is loaded, names are escaped and cut short, and only the samples shown are computed: the result is small however
many samples there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from credro._templates import render
from credro.prediction.classes import Prediction
from credro.prediction.columns import LEVEL, array, distinct
from credro.prediction.gaussian import GaussianPrediction

ROWS = 10
"""Samples shown."""
TOP = 3
"""Classes shown of each sample."""
BAR = 120
"""Width of a bar in pixels."""
LONGEST = 40
"""Letters of a name."""

ACCENT, REST = "#D55E00", "#8a8a8a"


@dataclass(frozen=True)
class Bar:
    """An interval within [0, 1] as a drawing, in pixels; at least a pixel and a half wide, so that a point is seen."""

    label: str
    text: str
    colour: str
    left: float
    width: float
    tick: float
    whole: int = BAR

    @classmethod
    def of(cls, mean: float, low: float, high: float, *, label: str, text: str, colour: str = ACCENT) -> Bar:
        """From fractions. label: for those who do not see it; text: beside it."""
        width = max(1.5, BAR * (high - low))
        left, tick = (max(0.0, float(at)) for at in (min(BAR * low, BAR - width), BAR * mean - 1))
        return cls(label, text, colour, left, width, tick)


@dataclass(frozen=True)
class Row:
    """A sample: its name, what is said of it, a number, intervals, and EU, AU, TU."""

    sample: str
    answer: str
    number: str
    bars: Sequence[Bar]
    uncertainties: Sequence[str]


def prediction_html(prediction: Prediction) -> str:
    """Name, label and probability of the first samples, the intervals of their top classes, and uncertainties."""
    shown = prediction[:ROWS]
    names = [cut(name) for name in distinct(shown.classes, shown.mean.shape[-1])]
    mean, lower, upper = array(shown.mean), array(shown.lower), array(shown.upper)
    rows = []
    for i in range(len(shown)):
        label = int(shown.label[i])
        bars = [
            Bar.of(
                *(p := (mean[i, k], lower[i, k], upper[i, k])),
                label="{}: {:.3f}, {:.3f} to {:.3f}".format(names[k], *p),
                text="{}: {:.2f} [{:.2f}, {:.2f}]".format(names[k], *p),
                colour=ACCENT if k == label else REST,
            )
            for k in (-mean[i]).argsort(kind="stable")[:TOP]
        ]
        rows.append(
            Row(_sample(shown, i), names[label], f"{mean[i, label]:.3f}", bars, _uncertainties(shown, i, ".3f"))
        )
    heads = ("sample", "label", "probability", f"top {min(TOP, len(names))}: lower to upper", "EU", "AU", "TU")
    return _html(prediction, heads, (0, 1, 3), rows, _words(prediction))


def regression_html(prediction: GaussianPrediction) -> str:
    """Name, mean and standard deviation of the first samples, an interval on a common scale, and uncertainties."""
    shown = prediction[:ROWS]
    lower, upper = (array(end) for end in shown.interval(LEVEL))
    start, end = (float(lower.min()), float(upper.max())) if len(shown) else (0.0, 1.0)
    span = (end - start) or 1.0
    rows = []
    for i in range(len(shown)):
        mean, low, high = float(shown.mean[i]), float(lower[i]), float(upper[i])
        text = f"{low:.4g} to {high:.4g}"
        at = ((value - start) / span for value in (mean, low, high))
        bar = Bar.of(*at, label=f"mean {mean:.4g}, interval {text}", text=text)
        std = f"{float(shown.std[i]):.3g}"
        rows.append(Row(_sample(shown, i), f"{mean:.4g}", std, [bar], _uncertainties(shown, i, ".3g")))
    heads = ("sample", "mean", "std", f"{LEVEL:.0%} interval, on {start:.4g} to {end:.4g}", "EU", "AU", "TU")
    return _html(prediction, heads, (0, 3), rows, "Tick: mean. EU, AU, TU are variances.")


def cut(name: object, longest: int = LONGEST, *, tail: bool = False) -> str:
    """A name of at most ``longest`` letters; ``tail`` keeps its end, where paths differ."""
    text = str(name)
    if len(text) <= longest:
        return text
    return "…" + text[-longest + 1 :] if tail else text[: longest - 1] + "…"


def _html(prediction: Any, heads: Sequence[str], left: Sequence[int], rows: Sequence[Row], words: str) -> str:
    """The table with the prediction's own words above and ``words`` below it. left: columns of text."""
    if len(prediction) > ROWS:
        words = f"The first {ROWS} of {len(prediction):,} samples; to_frame() has all. {words}"
        words += " The most uncertain first: pred[pred.epistemic.argsort(descending=True)]."
    title = repr(prediction)
    return render("prediction/show.html.j2", title=title, heads=heads, left=left, rows=rows, words=words)


def _sample(shown: Prediction | GaussianPrediction, i: int) -> str:
    return cut(shown.samples[i], tail=True)


def _uncertainties(shown: Prediction | GaussianPrediction, i: int, form: str) -> list[str]:
    return [format(float(u[i]), form) for u in (shown.epistemic, shown.aleatoric, shown.total)]


def _words(prediction: Prediction) -> str:
    bars = "Bars: lower to upper probability" if prediction.set is not None else "Bars: range of the members"
    measure = "EU, AU, TU in nats."
    if prediction.set is not None and prediction.measure == "width":
        measure = "EU: width of the interval; AU, TU in nats."
    return f"{bars}; tick: mean. {measure}"
