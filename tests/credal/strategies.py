"""Hypothesis strategies for ensembles of probabilities and for boxes: ordinary ones and all the awkward ones.

Each draw mixes styles sample by sample, so that one batch holds easy and degenerate cases side by side.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

STYLES = ("flat", "peaky", "tight", "zeros", "one-hot", "duplicates", "same")


def _members(rng: np.random.Generator, style: str, M: int, C: int) -> np.ndarray:
    """The members (M, C) of one sample."""
    if style == "flat":
        return rng.dirichlet(np.full(C, 3.0), M)
    if style == "peaky":  # a softmax of wide logits: a few classes take nearly everything
        logits = 6 * rng.standard_normal(C) + 2 * rng.standard_normal((M, C))
        p = np.exp(logits - logits.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True)
    if style == "tight":
        p = rng.dirichlet(np.ones(C)) * (1 + 10.0 ** rng.uniform(-10, -2) * rng.uniform(-1, 1, (M, C)))
        return p / p.sum(-1, keepdims=True)
    if style == "zeros":
        p = rng.dirichlet(np.ones(C), M) * (rng.random((M, C)) < 0.6)
        p[np.arange(M), rng.integers(C, size=M)] += 0.25
        return p / p.sum(-1, keepdims=True)
    if style == "one-hot":
        return np.eye(C)[rng.integers(C, size=M)]
    if style == "duplicates":  # at most two distinct members, on a coarse grid, so that classes tie as well
        p = (rng.multinomial(4, np.full(C, 1 / C), 2) / 4)[rng.integers(2, size=M)]
        return np.asarray(p, dtype=np.float64)
    return np.repeat(rng.dirichlet(np.ones(C))[None], M, 0)  # "same": every width is zero


@st.composite
def ensembles(
    draw: st.DrawFn,
    min_members: int = 1,
    max_members: int = 6,
    min_classes: int = 1,
    max_classes: int = 7,
    max_samples: int = 4,
) -> np.ndarray:
    """Probabilities (M, N, C) in float64, each sample in a style of its own; N from 1 to ``max_samples``."""
    M = draw(st.integers(min_members, max_members))
    C = draw(st.integers(min_classes, max_classes))
    styles = draw(st.lists(st.sampled_from(STYLES), min_size=1, max_size=max_samples))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return np.stack([_members(rng, style, M, C) for style in styles], axis=1)


@st.composite
def boxes(
    draw: st.DrawFn,
    min_classes: int = 1,
    max_classes: int = 7,
    max_samples: int = 4,
    max_members: int = 6,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (lower, upper), each (N, C): never an empty set, but often wider than any point of it reaches."""
    probs = draw(
        ensembles(max_members=max_members, min_classes=min_classes, max_classes=max_classes, max_samples=max_samples)
    )
    lower, upper = probs.min(0), probs.max(0)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Some bounds of some samples are moved outwards, some all the way: those can no longer be attained.
    loose = rng.random((2, len(lower), 1)) < 0.5
    moved = rng.random((2, *lower.shape)) * (rng.random((2, *lower.shape)) < 0.5) * loose
    moved = np.where(rng.random(moved.shape) < 0.2, np.sign(moved), moved)
    return lower * (1 - moved[0]), upper + (1 - upper) * moved[1]
