"""How readings become figures: PNG and PDF, one colour per method throughout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credro.evaluation import accuracy_rejection
from credro.experiments.readings import TEST, Reading
from credro.experiments.results import Made, Results
from credro.experiments.values import auroc, mean_auroc, severity
from credro.report.figures import density
from credro.report.style import COLOURS, INSIDE, NAMES, SETS, plotting

GRID = 200


def sizes(results: Results, folder: Path) -> Made:
    """AUROC over the size of the ensemble, a panel per OOD set and one for the mean."""
    plt = plotting()
    names = [*results.strangers(), "mean"]
    figure, axes = plt.subplots(1, len(names), figsize=(2.3 * len(names), 2.6), squeeze=False)
    counts = [v.members for v in results.experiment.variants if v.members]
    for ax, name in zip(axes[0], names, strict=True):
        value = mean_auroc if name == "mean" else auroc(name)
        methods = results.experiment.methods
        for i, method in enumerate(methods):
            numbers = [results.number(value, {"method": method, "members": m}) for m in counts]
            spread = [n.std or 0.0 for n in numbers]
            aside = 0.3 * (i - (len(methods) - 1) / 2)  # so that the bars stand beside each other
            ax.errorbar(
                [m + aside for m in counts],
                [n.mean for n in numbers],
                spread,
                color=COLOURS[method],
                label=NAMES[method],
                marker="o",
                ms=3,
                capsize=2,
                lw=1.2,
            )
        ax.set(title=name, xlabel="members", xticks=counts)
    axes[0][0].set_ylabel("AUROC, %")
    return _with_legend(figure, axes, folder / "sizes")


def densities(results: Results, folder: Path) -> Made:
    """Densities of EU of the first run, a panel per method: in distribution against each stranger."""
    names = [TEST, *results.strangers()]
    panels = [(NAMES[r.facts["method"]], {name: r.eu[name] for name in names}) for r in _first_run(results)]
    return _density_panels(panels, "epistemic uncertainty", folder / "densities", fill=TEST)


def pil_densities(results: Results, folder: Path) -> Made:
    """Densities of the averaged interval length, a panel per set, a line per variant."""
    first = _first_run(results)
    panels = [(name, {r.facts["variant"]: r.pil[name] for r in first}) for name in (TEST, *results.strangers())]
    return _density_panels(panels, "interval length (PIL)", folder / "pil")


def right_wrong(results: Results, folder: Path) -> Made:
    """Densities of EU of right and of wrong answers, a panel per method."""
    made: list[Path] = []
    for world in results.worlds:
        panels = []
        for r in (r for r in _first_run(results) if r.facts["world"] == world):
            eu = r.eu[TEST]
            panels.append((NAMES[r.facts["method"]], {"right": eu[r.correct], "wrong": eu[~r.correct]}))
        made += _density_panels(panels, "epistemic uncertainty", folder / f"right-wrong-{world}", fill="right").figures
    return Made(figures=tuple(made))


def severities(results: Results, folder: Path) -> Made:
    """AUROC over the severity of the corruptions, the mean over the 15 of them."""
    plt = plotting()
    made: list[Path] = []
    for world in results.worlds:
        figure, axes = plt.subplots(1, 1, figsize=(4.6, 3.2), squeeze=False)
        ax = axes[0][0]
        for method in results.experiment.methods:
            where = {"method": method, "world": world}
            means = [results.number(severity(level), where).mean for level in range(1, 6)]
            ax.plot(range(1, 6), means, color=COLOURS[method], marker="o", ms=3, lw=1.2, label=NAMES[method])
        ax.set(xlabel="severity", ylabel="mean AUROC, %", title=f"{world}: 15 corruptions", xticks=range(1, 6))
        made += _with_legend(figure, axes, folder / f"severities-{world}").figures
    return Made(figures=tuple(made))


def rejection(results: Results, folder: Path) -> Made:
    """Accuracy-rejection curves (top) and normalised ones (bottom), the mean over the runs, a column per world."""
    plt = plotting()
    figure, axes = plt.subplots(2, len(results.worlds), figsize=(4.0 * len(results.worlds), 5.2), squeeze=False)
    rates = np.linspace(0, 1, GRID + 1)
    for column, world in enumerate(results.worlds):
        for method in results.experiment.methods:
            curves = [
                accuracy_rejection(r.correct, r.eu[TEST]) for r in results.pick({"method": method, "world": world})
            ]
            for row, field in enumerate(("accuracy", "normalised")):
                lines = [np.interp(rates, np.asarray(c.rates), np.asarray(getattr(c, field))) for c in curves]
                axes[row][column].plot(rates, np.mean(lines, 0), color=COLOURS[method], label=NAMES[method], lw=1.2)
        axes[0][column].set(title=world, ylabel="accuracy of what is kept")
        axes[1][column].set(xlabel="share rejected", ylabel="normalised accuracy")
    return _with_legend(figure, axes, folder / "rejection")


def regimes(results: Results, folder: Path) -> Made:
    """Differences of mean AUROC over fit (epochs) and generalisation (samples): four maps."""
    plt = plotting()
    samples = list(dict.fromkeys(v.changes["samples"] for v in results.experiment.variants))
    epochs = list(dict.fromkeys(v.changes["epochs"] for v in results.experiment.variants))
    maps = [
        ("CreDRO − CreWra", ("credro", False), ("crewra", False)),
        ("EN-DRO − DE", ("en-dro", False), ("de", False)),
        ("CreDRO: calibrated − plain", ("credro", True), ("credro", False)),
        ("CreWra: calibrated − plain", ("crewra", True), ("crewra", False)),
    ]
    figure, axes = plt.subplots(1, len(maps), figsize=(3.1 * len(maps), 2.9), squeeze=False)
    values = [np.array([[_difference(results, s, e, a, b) for e in epochs] for s in samples]) for _, a, b in maps]
    limit = max(1.0, max(float(np.abs(v).max()) for v in values))
    image = None
    for ax, (title, _, _), value in zip(axes[0], maps, values, strict=True):
        image = ax.imshow(value, cmap="PuOr_r", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
        for (y, x), v in np.ndenumerate(value):
            ax.text(x, y, f"{v:+.1f}", ha="center", va="center", color="white" if abs(v) > 0.6 * limit else "black")
        ax.set(title=title, xticks=range(len(epochs)), yticks=range(len(samples)), xlabel="share of the epochs")
        ax.set_xticklabels([f"{e:.0%}" for e in epochs])
        ax.set_yticklabels([f"{s:.0%}" for s in samples])
        ax.grid(False)
    axes[0][0].set_ylabel("share of the training set")
    figure.tight_layout()
    figure.colorbar(image, ax=list(axes[0]), label="points of mean AUROC", fraction=0.02, pad=0.01)
    return Made(figures=_saved(figure, folder / "regimes"))


def _difference(results: Results, samples: float, epochs: float, a: tuple[str, bool], b: tuple[str, bool]) -> float:
    label = next(
        v.label for v in results.experiment.variants if (v.changes["samples"], v.changes["epochs"]) == (samples, epochs)
    )
    first, second = (
        results.number(mean_auroc, {"method": m, "calibrated": c, "variant": label}).mean for m, c in (a, b)
    )
    return first - second


def _first_run(results: Results) -> list[Reading]:
    return [r for r in results.readings if r.facts["run"] == 0 and not r.facts["calibrated"]]


def _density_panels(
    panels: Sequence[tuple[str, dict[str, Any]]], label: str, path: Path, fill: str | None = None
) -> Made:
    """Kernel densities, up to five panels a row; ``fill``: the set that is shaded and never sets the scale."""
    plt = plotting()
    high = -(-len(panels) // 5)
    wide = -(-len(panels) // high)
    figure, axes = plt.subplots(high, wide, figsize=(2.5 * wide, 2.2 * high), squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    for ax, (title, sets) in zip(axes.flat, panels, strict=False):
        known = {k: np.asarray(v) for k, v in sets.items() if len(v) > 1}
        top = max(float(np.quantile(v, 0.995)) for v in known.values())
        grid = np.linspace(0, max(top, 1e-6), GRID)
        lines = {k: density(v, grid) for k, v in known.items()}
        colours = iter(SETS)
        for name, line in lines.items():
            colour = INSIDE if name == fill else next(colours, "#000000")
            if name == fill:
                ax.fill_between(grid, line, color=colour, alpha=0.25, lw=0)
            ax.plot(grid, line, color=colour, lw=1.2, label=name)
        others = [line.max() for name, line in lines.items() if name != fill] or [line.max() for line in lines.values()]
        ax.set_ylim(0, 1.3 * max(others))  # the spike of certain samples would press everything else flat
        ax.set(title=title, xlabel=label, yticks=[])
    return _with_legend(figure, axes, path)


def _with_legend(figure: Any, axes: Any, path: Path) -> Made:
    """One legend below all panels."""
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.tight_layout()
    lines = -(-len(labels) // 6)
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=-(-len(labels) // lines))
    return Made(figures=_saved(figure, path))


def _saved(figure: Any, path: Path) -> tuple[Path, ...]:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_name(f"{path.name}.{kind}") for kind in ("png", "pdf")]
    for file in written:
        figure.savefig(file)
    plotting().close(figure)
    return tuple(written)
