"""docs/images/regression.png: Gaussian members, their 90 % interval and EU. ``python scripts/figure_regression.py``"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from credro.methods import colour, label
from credro.report.style import plotting, save
from credro.sklearn import CredalRegressor


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    x = np.sort(np.concatenate([rng.uniform(-3, -0.5, 150), rng.uniform(1.2, 3, 150)]))
    y = np.sin(2 * x) + 0.1 * (1 + np.abs(x)) * rng.normal(size=300)
    grid = np.linspace(-5, 5, 400)
    plt = plotting()
    figure, axes = plt.subplots(2, 2, figsize=(8, 4.2), sharex=True, sharey="row", height_ratios=(3, 1))
    for column, method in enumerate(("de", "credro")):
        model = CredalRegressor(method, epochs=150, random_state=0).fit(x[:, None], y)
        prediction = model.prediction(grid[:, None])
        low, high = prediction.interval(0.9)
        top, below = axes[:, column]
        top.fill_between(grid, low, high, color=colour(method), alpha=0.25, lw=0, label="90 % interval")
        top.plot(grid, prediction.means.T, color=colour(method), lw=0.7, alpha=0.8)
        top.plot([], [], color=colour(method), lw=0.7, label="members' means")
        top.plot(x, y, ".", color="0.3", ms=2, label="training data")
        top.set(title=label(method), ylim=(-2.6, 2.6))
        top.legend(loc="upper right", fontsize=7)
        below.plot(grid, np.sqrt(prediction.epistemic), color=colour(method), label="root of EU")
        below.plot(grid, np.sqrt(prediction.aleatoric), color="0.5", ls="--", label="root of AU")
        below.set(xlabel="x", ylim=(0, 1.1))
        below.legend(loc="upper right", fontsize=7, ncols=2)
    axes[0, 0].set_ylabel("y")
    save(figure, Path(__file__).resolve().parents[1] / "docs" / "images" / "regression.png")


if __name__ == "__main__":
    main()
