"""Credal sets of three classes on the probability triangle: the geometry, and a drawing of it.

Class 0 is the corner at the lower left, class 1 that at the lower right, class 2 the one on top; sides have length 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from credro.credal.entropy import lower_entropy, shannon, upper_entropy
from credro.credal.sets import CredalSet
from credro.report.style import ACCENT, plotting

Floats = npt.NDArray[np.float64]
CORNERS: Floats = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
SAME = 1e-10  # points nearer than this, and triangles of less than this area, are rounding


def to_plane(p: Any) -> Floats:
    """Probabilities (..., 3), tensor or array, to points (..., 2) of the triangle."""
    points: Floats = _array(p) @ CORNERS
    return points


def polygon(credal_set: CredalSet) -> Floats:
    """The set's corner points (K, 2) in the plane, anticlockwise. One point: K = 1, a segment: K = 2.

    credal_set: of one sample and three classes, shape (3,) or (1, 3).
    """
    if credal_set.shape[-1] != 3 or math.prod(credal_set.shape[:-1]) != 1:
        got = tuple(credal_set.shape)
        raise ValueError(f"the set must be of one sample and three classes, shape (3,) or (1, 3), got {got}")
    return convex(to_plane(credal_set.vertices()[0]))


def convex(points: Floats) -> Floats:
    """The corners (K, 2) of the convex hull of ``points`` (N, 2), anticlockwise, by Andrew's monotone chain."""
    _, first = np.unique((points / SAME).round(), axis=0, return_index=True)  # sorted from left to right
    ordered = points[first]
    if len(ordered) < 3:
        return ordered
    return np.concatenate([_chain(ordered)[:-1], _chain(ordered[::-1])[:-1]])


def _chain(points: Floats) -> Floats:
    """Those of the sorted ``points`` at which a walk along the hull's one side turns left."""
    kept: list[Floats] = []
    for c in points:
        while len(kept) > 1:
            (ax, ay), (bx, by) = kept[-1] - kept[-2], c - kept[-2]
            if ax * by - ay * bx > SAME:
                break
            kept.pop()
        kept.append(c)
    return np.array(kept)


def simplex(
    ax: Any,
    credal_set: CredalSet | None,
    *,
    probs: Any = None,
    mean: Any = None,
    names: Sequence[str] = ("class 0", "class 1", "class 2"),
    colour: str = ACCENT,
) -> None:
    """Draw one sample's credal set on the triangle: its area, members, mean, and ends of entropy.

    credal_set: of three classes, or None to draw the members alone. probs: (M, 3) or (M, 1, 3) members; those outside
    the set are drawn hollow. mean: (3,) or (1, 3); the set's own, or the members', if not given. Grey: the entropy,
    darker where it is higher. Every part carries a label, for ``ax.legend()``.
    """
    _background(ax, names)
    members = None if probs is None else _array(probs).reshape(-1, 3)
    if mean is None:
        mean = credal_set.mean if credal_set is not None else None if members is None else members.mean(0)
    if credal_set is not None:
        _area(ax, polygon(credal_set), colour)
    if members is not None:
        inside = np.ones(len(members), bool)
        if credal_set is not None:
            inside = np.array([_contains(credal_set, p) for p in members])
        style = {"ls": "none", "marker": "o", "ms": 5, "mec": "black", "zorder": 4}
        ax.plot(*to_plane(members[inside]).T, mfc="black", label="members", **style)
        if not inside.all():
            ax.plot(*to_plane(members[~inside]).T, mfc="white", label="members outside the set", **style)
    if mean is not None:
        ax.plot(*to_plane(mean).reshape(2, 1), "x", color="black", ms=8, mew=2, label="mean", zorder=5)
    if credal_set is not None:
        for find, marker, label in ((upper_entropy, "^", "highest entropy"), (lower_entropy, "v", "lowest entropy")):
            at = to_plane(find(credal_set, return_distribution=True)[1]).reshape(2, 1)
            ax.plot(*at, marker, color=colour, mec="black", ms=8, label=label, zorder=3)


def _background(ax: Any, names: Sequence[str]) -> None:
    """Triangle, shade of entropy and the classes' names."""
    if len(names) != 3:
        raise ValueError(f"names must be those of three classes, got {len(names)}")
    plotting()
    grid = _lattice(60)
    ax.tricontourf(*to_plane(grid).T, shannon(grid), levels=12, cmap="Greys", alpha=0.3, vmax=1.6)
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="black", lw=1)
    for name, (x, y), where in zip(names, CORNERS, ("top", "top", "bottom"), strict=True):
        ax.text(x, y + (0.05 if where == "bottom" else -0.04), name, ha="center", va=where)
    ax.set_xlim(-0.12, 1.12)
    ax.set_ylim(-0.1, CORNERS[2, 1] + 0.1)
    ax.set_aspect("equal")
    ax.axis("off")


def _area(ax: Any, corners: Floats, colour: str) -> None:
    """The set filled; where it is a segment or a point, a line or a ring, which a fill would not show."""
    if len(corners) > 2:
        ax.fill(*corners.T, fc=colour, alpha=0.45, lw=0, label="credal set", zorder=2)
        ax.fill(*corners.T, fc="none", ec=colour, lw=1.2, zorder=2)
    elif len(corners) == 2:
        ax.plot(*corners.T, color=colour, lw=4, alpha=0.7, label="credal set", zorder=2)
    else:
        ax.plot(*corners.T, "o", mfc="none", color=colour, ms=13, mew=2, label="credal set", zorder=2)


def _lattice(steps: int) -> Floats:
    """All (n, 3) probabilities that are multiples of ``1 / steps``."""
    return np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps


def _contains(credal_set: CredalSet, p: Floats) -> bool:
    given = p if credal_set.numpy else torch.from_numpy(p)
    return bool(np.all(_array(credal_set.contains(given, tol=1e-6))))


def _array(x: Any) -> Floats:
    """Tensor, on any device, or array in float64."""
    return np.asarray(x.detach().cpu() if isinstance(x, torch.Tensor) else x, dtype=np.float64)
