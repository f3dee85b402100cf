"""Credal sets of three classes on the probability triangle, a sample at a time: the reader chooses which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from credro.report.page._numbers import Floats
from credro.report.page._samples import Samples
from credro.report.simplex import CORNERS, polygon, to_plane

CHOICES = 120
"""Samples that can be chosen besides those of the gallery."""
SIDE, LEFT, BOTTOM = 340, 30, 330
"""The triangle in the drawing."""
Places = list[list[float]]


@dataclass(frozen=True)
class Simplex:
    """The triangle's corners and dots, the samples that can be chosen, and what the script draws of each of them.

    groups: title -> descriptions, in the order of ``content``. first: the number of the one that is shown at the start.
    """

    corners: Places
    dots: Places
    groups: dict[str, list[str]]
    content: list[dict[str, Any]]
    first: int


def simplex(samples: Samples, groups: Mapping[str, Sequence[int]]) -> Simplex:
    """groups: title -> numbers of samples; more are added, spread evenly over the order of EU."""
    rising = np.argsort(samples.eu, kind="stable")
    even = rising[np.unique(np.linspace(0, len(rising) - 1, min(CHOICES, len(rising))).astype(int))]
    chosen = {**groups, "From the least to the most uncertain": even.tolist()}
    content = [_drawn(samples, n) for numbers in chosen.values() for n in numbers]
    first = len(groups["Most certain"])  # then come the least certain: the largest set says most
    texts = {title: [_describe(samples, n) for n in numbers] for title, numbers in chosen.items() if len(numbers)}
    return Simplex(_places(CORNERS), _places(to_plane(samples.mean[even])), texts, content, first)


def _describe(samples: Samples, n: int) -> str:
    truth, said = samples.classes[int(samples.labels[n])], samples.classes[int(samples.said[n])]
    verdict = f"{said}, right" if truth == said else f"{said}, truly {truth}"
    return f"{samples.name(n)}: {verdict}, EU {samples.eu_text(n)}"


def _drawn(samples: Samples, n: int) -> dict[str, Any]:
    """Places of the set's corners, the members and the mean, and the bounds as text."""
    one = samples.prediction[n]
    columns = (samples.lower[n], samples.mean[n], samples.upper[n])
    return {
        "set": [] if one.set is None else _places(polygon(one.set)),
        "members": _places(to_plane(one.probs[:, 0])),
        "mean": _places(to_plane(samples.mean[n : n + 1]))[0],
        "bounds": [[f"{value:.3f}" for value in row] for row in zip(*columns, strict=True)],
    }


def _places(points: Floats) -> Places:
    """Points (K, 2) of the triangle in the drawing, whose y points down."""
    return [[round(LEFT + SIDE * float(x), 2), round(BOTTOM - SIDE * float(y), 2)] for x, y in points]
