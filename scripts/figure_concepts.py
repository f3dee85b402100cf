"""docs/images/concept-*.png: entropy of an interval, the worst part of a batch, and why fit comes first.

``python scripts/figure_concepts.py``; the last one trains ten tiny networks, some seconds.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import credro
from credro.methods import colour
from credro.report.style import plotting, save

IMAGES = Path("docs/images")
ORANGE, SKY = colour("credro"), colour("crewra")


def entropy() -> None:
    """Two classes: a credal set is an interval, and EU the height between the ends of its entropy."""
    plt = plotting()
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 2.9), sharey=True)
    p = np.linspace(1e-9, 1 - 1e-9, 400)
    cases = {"sure": (0.95, 0.99), "a coin, and sure of that": (0.46, 0.54), "no idea": (0.03, 0.97)}
    for ax, (title, (low, high)) in zip(axes, cases.items(), strict=True):
        box = credro.Box(np.array([1 - high, low]), np.array([1 - low, high]))
        top, bottom = float(credro.upper_entropy(box)), float(credro.lower_entropy(box))
        ax.plot(p, credro.shannon(np.stack([1 - p, p], -1)), color="black", lw=1.2)
        ax.axvspan(low, high, color=SKY, alpha=0.45, lw=0)
        ax.axhline(top, color=ORANGE, lw=1, ls=":")
        ax.axhline(bottom, color=ORANGE, lw=1, ls=":")
        ax.annotate("", (0.02, top), (0.02, bottom), arrowprops={"arrowstyle": "<->", "color": ORANGE, "shrinkA": 0})
        ax.set_title(f"{title}\nTU {top:.2f}, AU {bottom:.2f}, EU {top - bottom:.2f} nats")
        ax.set_xlabel("probability of class 1")
        ax.set_xlim(-0.03, 1.03)
        ax.grid(False)
    axes[0].set_ylabel("entropy, nats")
    figure.tight_layout()
    save(figure, IMAGES / "concept-entropy.png")


def worst() -> None:
    """A batch of sixteen losses, and what each of five members looks at."""
    plt = plotting()
    losses = np.sort(np.random.default_rng(3).exponential(size=16))[::-1]
    figure, axes = plt.subplots(1, 5, figsize=(9.6, 2.3), sharey=True)
    for i, (ax, delta) in enumerate(zip(axes, credro.deltas(members=5, delta_g=0.5), strict=True)):
        kept = int(np.floor(delta * len(losses)))
        value = float(credro.cvar(torch.tensor(losses.copy()), delta))
        ax.bar(range(kept), losses[:kept], color=ORANGE)
        ax.bar(range(kept, 16), losses[kept:], color="#d9d9d9")
        ax.axhline(value, color="black", lw=1, ls="--")
        ax.text(15.6, value + 0.06, f"{value:.2f}", ha="right")
        ax.set_title(f"member {i + 1}: worst {kept} of 16\ndelta {delta:g}", fontsize=8.5)
        ax.set_xticks([])
        ax.grid(False)
    axes[0].set_ylabel("loss of a sample")
    figure.supxlabel("one batch, sorted by loss", fontsize=9, y=0.06)
    figure.tight_layout()
    save(figure, IMAGES / "concept-worst.png")


def fit() -> None:
    """The same members early and late: EU everywhere, then EU where there were no data."""
    plt = plotting()
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(3).repeat_interleave(60)
    along = torch.rand(180, generator=draw)
    angle = 2 * torch.pi * y / 3 + 5.0 * along
    radius = 0.5 + 2.3 * along
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], 1) + 0.08 * torch.randn(180, 2, generator=draw)
    axis = torch.linspace(-4, 4, 121)
    grid = torch.cartesian_prod(axis, axis)
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.0), sharey=True)
    for ax, epochs in zip(axes, (6, 300), strict=True):
        recipe = credro.Recipe(epochs=epochs, batch_size=32, optimizer="adamw", lr=0.002, schedule="constant")
        ens = credro.fit("mlp", (x, y), members=5, recipe=recipe, progress="none")
        eu = ens.predict(grid).epistemic.reshape(121, 121).T
        fitted = [record.train for record in ens.records if record.train is not None]
        fits = [fit.accuracy for fit in fitted]
        confidence = [fit.confidence for fit in fitted]
        shown = ax.imshow(eu, origin="lower", extent=(-4, 4, -4, 4), cmap="YlGnBu", vmin=0, vmax=1)
        for k, (shade, marker) in enumerate(zip((ORANGE, "#111111", "#CC79A7"), "osD", strict=True)):
            style: dict[str, Any] = {"s": 11, "color": shade, "marker": marker, "edgecolor": "white", "linewidth": 0.3}
            ax.scatter(*x[y == k].T, **style)
        right = f"{min(fits):.0%} to {max(fits):.0%}" if min(fits) < max(fits) else f"{min(fits):.0%}"
        ax.set_title(
            f"{epochs} epochs: members {right} right\nmean confidence {confidence[0]:.2f} to {confidence[-1]:.2f}",
            fontsize=9,
        )
        ax.grid(False)
        print(epochs, fits, confidence, float(ens.predict(x).epistemic.mean()))
    figure.colorbar(shown, ax=axes, label="EU, nats", fraction=0.035)
    save(figure, IMAGES / "concept-fit.png")


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    entropy()
    worst()
    fit()
