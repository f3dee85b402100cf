"""Figures of an evaluation: densities of uncertainty, accuracy against rejection, images with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from credro import methods
from credro.metrics import AccuracyRejection
from credro.prediction import Prediction
from credro.report.style import ACCENT, INSIDE, REST, SETS, legend_below, plotting, save, save_all

Floats = npt.NDArray[np.float64]
GRID = 300
"""Points of a density."""


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


def density_panels(
    panels: Sequence[tuple[str, Mapping[str, Any]]],
    label: str,
    paths: Sequence[Path],
    *,
    fill: str | None = None,
    colours: Sequence[str] = SETS,
    size: tuple[float, float] = (2.5, 2.2),
) -> tuple[Path, ...]:
    """Kernel densities of several sets, up to five panels a row, one legend below them.

    Args:
        panels: title and values (N,) of each set by name; a set of fewer than two values is left out.
        label: of the horizontal axis.
        paths: files to write, PNG or PDF by their names.
        fill: the set that is shaded and never sets the scale: its spike would press everything else flat.
        colours: of the other sets, in turn.
        size: of a panel, in inches.
    """
    plt = plotting()
    high = -(-len(panels) // 5)
    wide = -(-len(panels) // high)
    figure, axes = plt.subplots(high, wide, figsize=(size[0] * wide, size[1] * high), squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    for ax, (title, sets) in zip(axes.flat, panels, strict=False):
        known = {name: np.asarray(values) for name, values in sets.items() if len(values) > 1}
        grid = np.linspace(0, max([1e-6, *(float(np.quantile(v, 0.995)) for v in known.values())]), GRID)
        lines = {name: density(values, grid) for name, values in known.items()}
        others = cycle(colours)
        for name, line in lines.items():
            colour = INSIDE if name == fill else next(others)
            if name == fill:
                ax.fill_between(grid, line, color=colour, alpha=0.25, lw=0)
            ax.plot(grid, line, color=colour, lw=1.2, label=name)
        tops = [line.max() for name, line in lines.items() if name != fill] or [line.max() for line in lines.values()]
        ax.set_ylim(0, 1.3 * max(tops))
        ax.set(title=title, xlabel=label, yticks=[])
    for row in axes:
        row[0].set_ylabel("density")
    legend_below(figure, axes)
    return save_all(figure, paths)


def densities(uncertainty: Mapping[str, Mapping[str, Any]], inside: str, path: Path) -> Path:
    """Densities of EU, one panel per method, the ID set against each OOD set.

    uncertainty: method -> set -> (N,). inside: the name of the ID set.
    """
    known = f"{inside} (ID)"
    panels = [
        (methods.label(method), {known if name == inside else name: eu for name, eu in sets.items()})
        for method, sets in uncertainty.items()
    ]
    return density_panels(panels, "epistemic uncertainty (nats)", [path], fill=known, size=(3.0, 2.6))[0]


def accuracy_rejection_curves(curves: Mapping[str, AccuracyRejection], path: Path) -> Path:
    """Accuracy of what is kept against the fraction rejected, one line per method, dashed without a credal set.

    From three methods on, bars of the areas stand beside them: curves that coincide cannot be told apart.
    """
    plt = plotting()
    bars = len(curves) > 2
    figure, axes = plt.subplots(
        1, 2 if bars else 1, figsize=(7.6 if bars else 4.2, 3.0), squeeze=False, width_ratios=[3, 2] if bars else [1]
    )
    ax = axes[0][0]
    for method, curve in curves.items():
        credal = method not in methods.METHODS or methods.METHODS[method].method.readout.credal
        # The last point is 1 by definition; it says nothing about the method.
        style = {"color": methods.colour(method), "label": f"{methods.label(method)} (area {curve.area:.4f})"}
        ax.plot(curve.rates[:-1], curve.accuracy[:-1], "-" if credal else "--", **style)
    ax.set_xlabel("fraction of samples rejected, most uncertain first")
    ax.set_ylabel("accuracy of the rest")
    ax.legend(loc="lower right")
    if bars:
        _areas(axes[0][1], curves)
        figure.tight_layout()
    return save(figure, path)


def _areas(ax: Any, curves: Mapping[str, AccuracyRejection]) -> None:
    drawn = ax.barh(
        [methods.label(m) for m in curves], [c.area for c in curves.values()], color=[methods.colour(m) for m in curves]
    )
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
    colours = [ACCENT if k == truth else REST for k in at]
    ax.barh(at, np.maximum(high - low, 0.008), left=low, height=0.7, color=colours)
    ax.vlines(mean, at - 0.35, at + 0.35, color="black", lw=1)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(len(mean) - 0.5, -0.5)
    ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.set_yticks(at, classes if names else [""] * len(mean), fontsize=7)
