"""How results become figures: PNG and PDF, one colour per method throughout. ``FIGURES`` has them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from credro.experiments._values import auroc, severity
from credro.experiments.benchmarks import title
from credro.experiments.results import TEST, Result, Results, Value, Where
from credro.experiments.tables import contrast
from credro.methods import colour, label
from credro.report.figures import density_panels
from credro.report.style import legend_below, plotting, save_all

Paths: TypeAlias = Sequence[Path]
RATES = np.linspace(0, 1, 201)
EU = "epistemic uncertainty"
ID = "in distribution"


def sizes(results: Results, folder: Path) -> Paths:
    """AUROC over the size of the ensemble, a panel per OOD set and one for the mean."""
    values: dict[str, Value] = {**{title(name): auroc(name) for name in results.ood}, "mean": lambda r: r.mean_auroc}
    methods, variants = results.experiment.compared, [v for v in results.experiment.variants if v.members]
    figure, axes = plotting().subplots(1, len(values), figsize=(2.3 * len(values), 2.6), squeeze=False)
    for ax, (name, value) in zip(axes[0], values.items(), strict=True):
        for i, method in enumerate(methods):
            numbers = [results.number(value, Where(method, variant=v.label)) for v in variants]
            aside = 0.3 * (i - (len(methods) - 1) / 2)  # so that the bars stand beside each other
            ax.errorbar(
                [(v.members or 0) + aside for v in variants],
                [n.mean for n in numbers],
                [n.std or 0.0 for n in numbers],
                capsize=2,
                **_line(method),
            )
        ax.set(title=name, xlabel="members", xticks=[v.members for v in variants])
    axes[0][0].set_ylabel("AUROC, %")
    return _with_legend(figure, axes, folder / "sizes")


def densities(results: Results, folder: Path) -> Paths:
    """Densities of EU of the first run, a panel per method: in distribution against each OOD set."""
    names = {TEST: ID, **{name: title(name) for name in results.ood}}
    panels = [(label(r.method), {shown: r.eu[name] for name, shown in names.items()}) for r in _first_run(results)]
    return density_panels(panels, EU, _files(folder / "densities"), fill=ID)


def pil(results: Results, folder: Path) -> Paths:
    """Densities of the averaged interval length, a panel per set, a line per variant."""
    first = [r for r in _first_run(results) if r.pil]
    names = {TEST: ID, **{name: title(name) for name in results.ood}}
    panels = [(shown, {r.variant: r.pil[name] for r in first}) for name, shown in names.items()]
    return density_panels(panels, "interval length (PIL)", _files(folder / "pil"))


def right_wrong(results: Results, folder: Path) -> Paths:
    """Densities of EU of right and of wrong answers, a panel per method."""
    made: list[Path] = []
    for place in results.benchmarks:
        first = [r for r in _first_run(results) if r.benchmark == place]
        panels = [(label(r.method), {"right": r.eu[TEST][r.correct], "wrong": r.eu[TEST][~r.correct]}) for r in first]
        made += density_panels(panels, EU, _files(folder / f"right-wrong-{place}"), fill="right")
    return made


def severities(results: Results, folder: Path) -> Paths:
    """AUROC over the severity of the corruptions, the mean over all of them."""
    made: list[Path] = []
    for place in results.benchmarks:
        figure, axes = plotting().subplots(1, 1, figsize=(4.6, 3.2), squeeze=False)
        for method in results.experiment.compared:
            where = Where(method, benchmark=place)
            means = [results.number(severity(level), where).mean for level in range(1, 6)]
            axes[0][0].plot(range(1, 6), means, **_line(method))
        axes[0][0].set(xlabel="severity", ylabel="mean AUROC, %", title=title(place), xticks=range(1, 6))
        made += _with_legend(figure, axes, folder / f"severities-{place}")
    return made


def rejection(results: Results, folder: Path) -> Paths:
    """Accuracy-rejection curves (top) and normalised ones (bottom), the mean over the runs, a column per benchmark."""
    places = results.benchmarks
    figure, axes = plotting().subplots(2, len(places), figsize=(4.0 * len(places), 5.2), squeeze=False)
    for (above, below), place in zip(axes.T, places, strict=True):
        for method in results.experiment.compared:
            found = results.pick(Where(method, benchmark=place))
            curves = [r.curve for r in found]
            for ax, lines in ((above, [c.accuracy for c in curves]), (below, [c.normalised for c in curves])):
                at = [np.interp(RATES, np.asarray(c.rates), line) for c, line in zip(curves, lines, strict=True)]
                ax.plot(RATES, np.mean(at, 0), **{**_line(method), "marker": None})
        above.set(title=title(place), ylabel="accuracy of what is kept")
        below.set(xlabel="fraction rejected", ylabel="normalised accuracy")
    return _with_legend(figure, axes, folder / "rejection")


def regimes(results: Results, folder: Path) -> Paths:
    """The claims' differences of mean AUROC over fit (epochs) and generalisation (samples), a map each."""
    claims, variants = results.experiment.claims, results.experiment.variants
    samples, epochs = (list(dict.fromkeys(v.changes[what] for v in variants)) for what in ("samples", "epochs"))
    places = {v.label: (samples.index(v.changes["samples"]), epochs.index(v.changes["epochs"])) for v in variants}
    maps = np.zeros((len(claims), len(samples), len(epochs)))
    for found, claim in zip(maps, claims, strict=True):
        for name, place in places.items():
            found[place] = np.mean(results.differences(claim, claim.calibrated or (False, False), name))
    limit = max(1.0, float(np.abs(maps).max()))
    figure, axes = plotting().subplots(1, len(maps), figsize=(3.1 * len(maps), 2.9), squeeze=False)
    for ax, claim, found in zip(axes[0], claims, maps, strict=True):
        image = ax.imshow(found, cmap="PuOr_r", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
        for (y, x), v in np.ndenumerate(found):
            ax.text(x, y, f"{v:+.1f}", ha="center", va="center", color="white" if abs(v) > 0.6 * limit else "black")
        ax.set(title=contrast(claim), xlabel="fraction of the epochs")
        ax.set_xticks(range(len(epochs)), [f"{e:.0%}" for e in epochs])
        ax.set_yticks(range(len(samples)), [f"{s:.0%}" for s in samples])
        ax.grid(False)
    axes[0][0].set_ylabel("fraction of the training set")
    figure.tight_layout()
    figure.colorbar(image, ax=list(axes[0]), label="points of mean AUROC", fraction=0.02, pad=0.01)
    return save_all(figure, _files(folder / "regimes"))


def _line(method: str) -> dict[str, Any]:
    return {"color": colour(method), "label": label(method), "marker": "o", "ms": 3, "lw": 1.2}


def _first_run(results: Results) -> Iterator[Result]:
    return (r for r in results.all if r.run == 0 and not r.calibrated)


def _with_legend(figure: Any, axes: Any, path: Path) -> Paths:
    legend_below(figure, axes)
    return save_all(figure, _files(path))


def _files(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}.{kind}") for kind in ("png", "pdf")]


FIGURES: dict[str, Callable[[Results, Path], Paths]] = {
    f.__name__: f for f in (sizes, densities, pil, right_wrong, severities, rejection, regimes)
}
"""Every figure: from the results of an experiment and a folder to the files that were written."""
