"""Figures of an evaluation: densities of uncertainty, accuracy against rejection, images with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from credro.evaluation import AccuracyRejection
from credro.readouts import Prediction
from credro.report.style import COLOURS, INSIDE, NAMES, SETS, plotting, save

Floats = npt.NDArray[np.float64]


def density(values: Any, grid: Floats) -> Floats:
    """Gaussian kernel density of ``values`` (N,) on ``grid`` (G,), Silverman's bandwidth, mirrored at zero.

    Uncertainty is never negative and crowds at zero; without the mirror half of that mass would be smeared below it.
    """
    x = np.asarray(values, dtype=np.float64)
    spread = min(x.std(), float(np.subtract(*np.percentile(x, [75, 25]))) / 1.349 or np.inf)
    width = max(0.9 * spread * len(x) ** -0.2, float(grid[1] - grid[0]))
    out = np.zeros_like(grid)
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096, None]
        out += np.exp(-0.5 * ((grid - part) / width) ** 2).sum(0) + np.exp(-0.5 * ((grid + part) / width) ** 2).sum(0)
    result: Floats = out / (len(x) * width * np.sqrt(2 * np.pi))
    return result


def densities(uncertainty: Mapping[str, Mapping[str, Any]], inside: str, path: Path) -> Path:
    """Densities of EU, one panel per method, the test set against each other set.

    uncertainty: method -> set -> (N,). inside: the name of the in-distribution set.
    """
    plt = plotting()
    figure, axes = plt.subplots(1, len(uncertainty), figsize=(3.0 * len(uncertainty), 2.6), squeeze=False)
    for ax, (method, sets) in zip(axes[0], uncertainty.items(), strict=True):
        top = max(float(np.quantile(np.asarray(eu), 0.995)) for eu in sets.values())
        grid = np.linspace(0, max(top, 1e-6), 300)
        others = [name for name in sets if name != inside]
        ax.fill_between(grid, density(sets[inside], grid), color=INSIDE, alpha=0.25, lw=0)
        ax.plot(grid, density(sets[inside], grid), color=INSIDE, label=f"{inside} (in distribution)")
        for colour, name in zip(SETS, others, strict=False):
            ax.plot(grid, density(sets[name], grid), color=colour, label=name)
        # The spike of certain test samples would press everything else flat.
        ax.set_ylim(0, 1.3 * max(density(sets[name], grid).max() for name in others))
        ax.set_title(NAMES.get(method, method))
        ax.set_xlabel("epistemic uncertainty (nats)")
    axes[0][0].set_ylabel("density")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(labels))
    figure.tight_layout()
    return save(figure, path)


def accuracy_rejection_curves(curves: Mapping[str, AccuracyRejection], path: Path) -> Path:
    """Accuracy of what is kept against the fraction rejected, one line per method.

    From three methods on, bars of the areas stand beside them: curves that coincide cannot be told apart.
    """
    plt = plotting()
    bars = len(curves) > 2
    figure, axes = plt.subplots(
        1, 2 if bars else 1, figsize=(7.6 if bars else 4.2, 3.0), squeeze=False, width_ratios=[3, 2] if bars else [1]
    )
    ax = axes[0][0]
    for method, curve in curves.items():
        label = f"{NAMES.get(method, method)} (area {curve.area:.4f})"
        style = "--" if method in ("de", "en-dro") else "-"
        # The last point is 1 by definition; it says nothing about the method.
        ax.plot(curve.rates[:-1], curve.accuracy[:-1], style, color=COLOURS.get(method), label=label)
    ax.set_xlabel("fraction of samples rejected, most uncertain first")
    ax.set_ylabel("accuracy of the rest")
    ax.legend(loc="lower right")
    if bars:
        _areas(axes[0][1], curves)
        figure.tight_layout()
    return save(figure, path)


def _areas(ax: Any, curves: Mapping[str, AccuracyRejection]) -> None:
    names = [NAMES.get(method, method) for method in curves]
    drawn = ax.barh(names, [c.area for c in curves.values()], color=[COLOURS.get(m, INSIDE) for m in curves])
    ax.bar_label(drawn, fmt="%.4f", padding=3)
    ax.set_xlim(0, 1.3)  # room for the numbers
    ax.set_xticks([0, 0.5, 1])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("area under the curve")


def gallery(
    images: Tensor, prediction: Prediction, labels: Tensor, classes: Sequence[str], path: Path, each: int = 6
) -> Path:
    """The least and the most certain images with the probability intervals of their classes.

    images: (N, C, H, W) bytes.
    """
    plt = plotting()
    order = torch.as_tensor(prediction.epistemic).argsort()
    rows = {"least epistemic uncertainty": order[:each], "most epistemic uncertainty": order.flip(0)[:each]}
    figure, axes = plt.subplots(2 * len(rows), each, figsize=(1.75 * each, 3.6 * len(rows)), squeeze=False)
    for r, (title, chosen) in enumerate(rows.items()):
        for c, n in enumerate(chosen.tolist()):
            _picture(axes[2 * r][c], images[n], f"{classes[int(labels[n])]}\nEU {float(prediction.epistemic[n]):.3g}")
            _intervals(axes[2 * r + 1][c], prediction, n, int(labels[n]), classes, names=c == 0)
        axes[2 * r][0].text(
            -0.15, 0.5, title, rotation=90, ha="right", va="center", transform=axes[2 * r][0].transAxes, weight="bold"
        )
    figure.text(0.5, 0.005, "bars: probability interval; line: mean; orange: true class", ha="center", fontsize=8)
    figure.tight_layout(rect=(0.02, 0.015, 1, 1))
    return save(figure, path)


def _picture(ax: Any, image: Tensor, title: str) -> None:
    ax.imshow(image.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray_r" if image.shape[0] == 1 else None)
    ax.set_title(title, fontsize=8)
    ax.axis("off")


def _intervals(ax: Any, prediction: Prediction, n: int, truth: int, classes: Sequence[str], *, names: bool) -> None:
    low, high, mean = (np.asarray(part[n]) for part in (prediction.lower, prediction.upper, prediction.mean))
    at = np.arange(len(mean))
    colours = [COLOURS["credro"] if k == truth else COLOURS["crewra"] for k in at]
    ax.barh(at, np.maximum(high - low, 0.008), left=low, height=0.7, color=colours)
    ax.vlines(mean, at - 0.35, at + 0.35, color="black", lw=1)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(len(mean) - 0.5, -0.5)
    ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.set_yticks(at, classes if names else [""] * len(mean), fontsize=7)
