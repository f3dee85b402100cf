"""docs/images/idea.png: what a credal set is, on three classes. ``python scripts/figure_idea.py``"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import credro
from credro.methods import colour
from credro.report.style import plotting, save

CLASSES = ("cat", "dog", "fox")
CASES = {
    "members agree: little epistemic uncertainty": [
        [0.80, 0.12, 0.08],
        [0.76, 0.16, 0.08],
        [0.84, 0.10, 0.06],
        [0.79, 0.11, 0.10],
    ],
    "members disagree: much of it": [
        [0.85, 0.10, 0.05],
        [0.15, 0.75, 0.10],
        [0.30, 0.15, 0.55],
        [0.50, 0.30, 0.20],
    ],
}


def flat(p: np.ndarray) -> np.ndarray:
    return np.stack([p[..., 1] + 0.5 * p[..., 2], p[..., 2] * np.sqrt(3) / 2], -1)


def around(points: np.ndarray) -> np.ndarray:
    centre = points.mean(0)
    return points[np.argsort(np.arctan2(*(points - centre).T[::-1]))]


def hull_corners(points: np.ndarray) -> np.ndarray:
    from scipy.spatial import ConvexHull

    return points[ConvexHull(points).vertices]


def main() -> None:
    plt = plotting()
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.0))
    grid = np.random.default_rng(0).dirichlet(np.ones(3), 20000)
    for ax, (title, members) in zip(axes, CASES.items(), strict=True):
        probs = np.array(members)[:, None, :]
        box = credro.Box.of(probs)
        ax.tricontourf(*flat(grid).T, credro.shannon(grid), levels=14, cmap="Greys", alpha=0.35)
        ax.fill(
            *around(flat(box.vertices()[0])).T,
            color=colour("crewra"),
            alpha=0.45,
            label="box: class-wise intervals",
            lw=0,
        )
        ax.fill(*hull_corners(flat(probs[:, 0])).T, color=colour("crerl"), alpha=0.45, label="convex hull", lw=0)
        ax.plot(*flat(probs[:, 0]).T, "o", color="black", ms=5, label="members")
        high, p_high = credro.upper_entropy(box, return_distribution=True)
        low, p_low = credro.lower_entropy(box, return_distribution=True)
        ax.plot(*flat(p_high[0]), "^", color=colour("credro"), ms=9, label="highest entropy in the box")
        ax.plot(*flat(p_low[0]), "v", color=colour("credro"), ms=9, label="lowest entropy in the box")
        ax.plot(*flat(np.eye(3)[[0, 1, 2, 0]]).T, color="black", lw=1)
        for name, corner, shift in zip(
            CLASSES, flat(np.eye(3)), ((-0.02, -0.06), (0.02, -0.06), (0, 0.03)), strict=True
        ):
            ax.text(*(corner + shift), name, ha="center", va="center")
        ax.set_title(f"{title}\nEU = {high[0]:.2f} − {low[0]:.2f} = {high[0] - low[0]:.2f} nats", fontsize=9)
        ax.set_aspect("equal")
        ax.axis("off")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, bbox_to_anchor=(0.5, -0.04))
    save(figure, Path("docs/images/idea.png"))


if __name__ == "__main__":
    main()
