"""Draw docs/images/exactness.png: one box of three classes, and where each method thinks its entropy is smallest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import credro

MEMBERS = np.array([[0.6, 0.2, 0.2], [0.0, 0.4, 0.6]])
OUT = Path(__file__).parent.parent / "docs" / "images" / "exactness.png"
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log(np.maximum(p, 1e-300))).sum(-1)


def slsqp(lower: np.ndarray, upper: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The path (steps, 3) of SLSQP and its end."""
    from scipy.optimize import minimize

    path = [start]
    end = minimize(
        entropy,
        start,
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        callback=lambda p: path.append(p.copy()),
    ).x
    return np.array(path), end


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    box = credro.Box.of(MEMBERS)
    value, best = credro.lower_entropy(box, return_distribution=True)
    path, end = slsqp(box.lower, box.upper, MEMBERS.mean(0))
    corners = box.vertices()[0] @ CORNERS
    middle = corners.mean(0)
    around = corners[np.argsort(np.arctan2(*(corners - middle).T[::-1]))]

    a, b = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401))
    grid = np.stack([a, b, 1 - a - b], -1)
    inside = grid[..., 2] >= -1e-12
    xy = grid @ CORNERS
    level = np.where(inside, entropy(grid.clip(0)), np.nan)

    figure, ax = plt.subplots(figsize=(7.2, 4.8), dpi=150)
    lines = ax.contour(xy[..., 0], xy[..., 1], level, levels=np.arange(0.2, 1.1, 0.1), colors="0.75", linewidths=0.8)
    ax.clabel(lines, levels=lines.levels[3:], fontsize=7)
    ax.fill(*CORNERS.T, fill=False, edgecolor="0.3", linewidth=1.2)
    ax.fill(*around.T, facecolor="tab:blue", alpha=0.2, edgecolor="tab:blue", linewidth=1.5, label="box")
    ax.plot(*(MEMBERS @ CORNERS).T, "s-", color="tab:blue", markersize=6, label="members and their hull")
    ax.plot(*(path @ CORNERS).T, ".--", color="tab:red", linewidth=1.2, label="SLSQP, from the mean")
    ax.plot(*(end @ CORNERS), "X", color="tab:red", markersize=11, label=f"SLSQP stops: {float(entropy(end)):.3f} nats")
    ax.plot(*(best @ CORNERS), "*", color="tab:green", markersize=17, label=f"true minimum: {float(value):.3f} nats")
    for k, (corner, align, shift) in enumerate(zip(CORNERS, ("right", "left", "center"), (0, 0, 0.03), strict=True)):
        ax.text(corner[0], corner[1] + shift, f" class {k} ", ha=align, va="center", fontsize=9)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_xlim(-0.12, 1.12)
    ax.set_ylim(-0.04, 0.92)
    ax.legend(loc="upper left", fontsize=8, frameon=False, bbox_to_anchor=(0.72, 1.0))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT, bbox_inches="tight")


if __name__ == "__main__":
    main()
