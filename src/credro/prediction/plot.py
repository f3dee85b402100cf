"""A single sample's prediction as a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from credro.data.errors import need
from credro.prediction.classes import Prediction
from credro.prediction.columns import LEVEL, array, distinct
from credro.prediction.gaussian import GaussianPrediction
from credro.prediction.show import cut

MOST = 20
"""Classes in one figure."""
SET, MEMBER, POINT = "#56B4E9", "#444444", "#D55E00"  # of Okabe and Ito's palette, and a grey


def plot_classes(prediction: Prediction, i: int, ax: Any = None) -> Any:
    """Intervals, members and mean of every class of sample ``i``; of the 20 with the highest upper probability."""
    one = _one(prediction, i)
    mean, lower, upper = (array(t)[0] for t in (one.mean, one.lower, one.upper))
    members, names = array(one.probs)[:, 0], distinct(one.classes, mean.shape[-1])
    chosen = np.sort(np.argsort(-upper, kind="stable")[:MOST])
    ax = _axes(ax, 1.2 + 0.32 * len(chosen))
    rows = np.arange(len(chosen))
    label = "credal set: lower to upper" if one.set is not None else "range of the members"
    ax.barh(rows, (upper - lower)[chosen], left=lower[chosen], height=0.5, color=SET, alpha=0.6, label=label)
    apart = np.linspace(-0.15, 0.15, len(members)) if len(members) > 1 else np.zeros(1)
    for m, member in enumerate(members):
        named = {"label": f"{len(members)} members"} if m == 0 else {}
        ax.scatter(member[chosen], rows + apart[m], s=9, color=MEMBER, zorder=3, **named)
    ax.scatter(mean[chosen], rows, s=42, marker="D", color=POINT, edgecolor="white", zorder=4, label="mean")
    ax.set_yticks(rows, [_plain(cut(names[k])) for k in chosen])
    ax.set_ylim(len(chosen) - 0.4, -0.6)
    ax.set_xlim(-0.02, 1.02)
    left_out = f" ({MOST} of {len(names)} classes, by upper probability)" if len(names) > MOST else ""
    ax.set_xlabel(f"probability{left_out}")
    _finish(ax, one, cut(names[int(one.label[0])]))
    return ax


def plot_numbers(prediction: GaussianPrediction, i: int, ax: Any = None) -> Any:
    """Densities of the members and of their mixture for sample ``i``, and the interval with 90 % of the probability."""
    one = _one(prediction, i)
    means, stds = array(one.means)[:, 0], array(one.stds)[:, 0]
    low, high = (float(end[0]) for end in one.interval(LEVEL))
    start, end = (means - 4 * stds).min(), (means + 4 * stds).max()
    x = np.linspace(start, end, 800) if end > start else np.linspace(start - 1, start + 1, 801)
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = np.exp(-0.5 * ((x - means[:, None]) / stds[:, None]) ** 2) / (stds[:, None] * np.sqrt(2 * np.pi))
    ax = _axes(ax, 3.2)
    ax.axvspan(low, high, color=SET, alpha=0.3, linewidth=0, label=f"{LEVEL:.0%} interval")
    for m, height in enumerate(heights):
        ax.plot(x, height, color=MEMBER, linewidth=0.8, label=f"{len(means)} members" if m == 0 else None)
    ax.plot(x, heights.mean(0), color=POINT, linewidth=2, label="their mixture")
    ax.axvline(float(one.mean[0]), color=POINT, linewidth=1, linestyle="--", label="mean")
    ax.set_xlabel("predicted number")
    ax.set_ylabel("density")
    ax.set_ylim(bottom=0)
    _finish(ax, one, f"{float(one.mean[0]):.4g} ± {float(one.std[0]):.2g}")
    return ax


def _one(prediction: Any, i: int) -> Any:
    """The prediction of sample ``i`` alone."""
    one = prediction[i]
    if len(one) != 1:
        raise ValueError(f"plot shows one sample: give its number, got {i!r}")
    return one


def _axes(ax: Any, height: float) -> Any:
    if ax is not None:
        return ax
    need("matplotlib", "figures")
    return need("matplotlib.pyplot", "figures").subplots(figsize=(6.4, height), layout="constrained")[1]


def _finish(ax: Any, one: Prediction | GaussianPrediction, answer: str) -> None:
    eu = f"EU {float(one.epistemic[0]):.3g}, AU {float(one.aleatoric[0]):.3g}, TU {float(one.total[0]):.3g}"
    ax.set_title(_plain(f"sample {cut(one.samples[0], tail=True)}: {answer}\n{eu}"), fontsize="medium", loc="left")
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    ax.legend(fontsize="small", framealpha=0.6)


def _plain(text: str) -> str:
    """Text in which matplotlib sees no mathematics."""
    return text.replace("$", r"\$")
