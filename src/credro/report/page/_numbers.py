"""The numbers behind the report's charts: pure functions of uncertainties, labels and bounds, all numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from credro.metrics import AccuracyRejection, accuracy_rejection
from credro.report.figures import density

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

STEPS = 1000
"""The slider's rejection rates are 0, 1 / STEPS, ..., 1."""
GRID = 240
PERCENTILES = (10, 25, 50, 75, 90)


def as_numpy(values: Any) -> npt.NDArray[Any]:
    """A tensor or array as numpy."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def as_floats(values: Any) -> Floats:
    """The same in double precision."""
    return as_numpy(values).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Rejection:
    """What rejecting at least a fraction ``i / STEPS`` of the samples leaves, i = 0..STEPS; ties are rejected together.

    curve: as the library computes it. kept, right: (STEPS + 1,) how many samples are kept, and right. limits: abstain
    above this EU to reject just these samples; None where all or none are kept. ood: how many OOD samples are rejected.
    """

    curve: AccuracyRejection
    kept: Integers
    right: Integers
    limits: list[float | None]
    ood: dict[str, Integers]

    def accuracy(self, step: int, none: float = math.nan) -> float:
        """Of what is kept at this step; ``none`` where nothing is."""
        return float(self.right[step] / self.kept[step]) if self.kept[step] else none

    def reaches(self, accuracy: float) -> int | None:
        """The first step that leaves samples, and at least this fraction of them right; None if there is none."""
        found = np.flatnonzero((self.kept > 0) & (self.right >= accuracy * self.kept))
        return int(found[0]) if len(found) else None


def rejection(correct: Booleans, eu: Floats, ood: Mapping[str, Floats]) -> Rejection:
    """Every step of the slider. correct, eu: (N,). ood: EU of OOD sets (K,) by name."""
    curve = accuracy_rejection(correct, eu)
    n, ordered = len(eu), np.sort(eu)
    asked = -(-np.arange(STEPS + 1) * n // STEPS)  # rounded up: at least so many
    kept = np.where(asked > 0, np.searchsorted(ordered, ordered[n - np.maximum(asked, 1)]), n)
    right = np.rint(np.asarray(curve.accuracy)[n - kept] * kept).astype(np.int64)
    known: dict[int, float | None] = {0: None, n: None}
    for k in set(kept.tolist()) - set(known):
        known[k] = between(float(ordered[k - 1]), float(ordered[k]))
    limits = [known[int(k)] for k in kept]
    at = np.array(
        [limit if limit is not None else -np.inf if k == 0 else np.inf for k, limit in zip(kept, limits, strict=True)]
    )
    rejected = {name: len(far) - np.searchsorted(np.sort(far), at, side="right") for name, far in ood.items()}
    return Rejection(curve, kept, right, limits, rejected)


def between(low: float, high: float) -> float:
    """The decimal with the fewest digits in [low, high): a threshold that people can copy. low < high."""
    for digits in range(1, 17):
        found = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(low)))
        if low <= found < high:
            return found
    return low


@dataclass(frozen=True, eq=False)
class Shapes:
    """Densities of EU on one grid (G,). ticks: of the axis. top: where the drawing ends. cut: which are higher."""

    grid: Floats
    lines: dict[str, Floats]
    ticks: list[float]
    top: float
    cut: list[str]


def shapes(inside: str, eu: Floats, ood: Mapping[str, Floats]) -> Shapes:
    """Density of the ID set's EU and of each OOD set's.

    A spike of certain ID samples would press everything else flat: it is cut off well above the OOD sets' peaks.
    """
    sets = {inside: eu, **ood}
    marks = ticks(0, max(1e-6, *(float(np.quantile(values, 0.995)) for values in sets.values())))
    grid = np.linspace(0, marks[-1], GRID)
    lines = {name: density(values, grid) for name, values in sets.items()}
    top = 1.5 * max(float(lines[name].max()) for name in ood) if ood else float(lines[inside].max()) * 1.05
    top = min(top, 1.05 * max(float(line.max()) for line in lines.values()))
    return Shapes(grid, lines, marks, top, [name for name, line in lines.items() if line.max() > top])


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Evenly spaced round numbers, at most ``most`` + 1 of them, from at or below ``low`` to at or above ``high``."""
    span = max(high - low, 1e-9)
    power = 10.0 ** math.floor(math.log10(span / most))
    for step in (power * f for f in (1, 2, 2.5, 5, 10, 20)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= most:
            return [float(f"{i * step:.12g}") for i in range(first, max(last, first + 1) + 1)]
    raise AssertionError("some step is always large enough")


@dataclass(frozen=True)
class ClassRow:
    """The samples of one class. width: PERCENTILES of the length of the interval of that very class."""

    name: str
    samples: int
    accuracy: float
    width: tuple[float, ...]
    mean_eu: float


def class_rows(
    classes: Sequence[str], labels: Integers, correct: Booleans, eu: Floats, width: Floats
) -> list[ClassRow]:
    """One row for each class that has samples. width: (N, C)."""
    rows = []
    for k, name in enumerate(classes):
        mine = labels == k
        if mine.any():
            spread = tuple(float(v) for v in np.percentile(width[mine, k], PERCENTILES))
            rows.append(ClassRow(name, int(mine.sum()), float(correct[mine].mean()), spread, float(eu[mine].mean())))
    return rows


def picks(eu: Floats, confidence: Floats, said: Integers, correct: Booleans, each: int) -> dict[str, list[int]]:
    """Numbers of the most certain, the least certain, and the wrong but certain samples; confidence breaks ties.

    The most certain are taken from every predicted class (``said``, (N,)) in turn, or one easy class would fill them.
    """
    rising = np.lexsort((-confidence, eu))
    falling = np.lexsort((confidence, -eu))
    return {
        "Most certain": in_turn(rising, said)[:each].tolist(),
        "Least certain": falling[:each].tolist(),
        "Confidently wrong": rising[~correct[rising]][:each].tolist(),
    }


def ends(eu: Floats, each: int) -> tuple[list[int], list[int]]:
    """Numbers of the samples with the least and with the most EU, no sample in both."""
    rising = np.argsort(eu, kind="stable")
    low = min(each, (len(eu) + 1) // 2)
    return rising[:low].tolist(), rising[low:][::-1][:each].tolist()


def in_turn(order: Integers, kinds: Integers) -> Integers:
    """``order`` (N,) with the first of each kind before the second of any. kinds: (N,) of the samples."""
    rank, met = np.zeros(len(order), np.int64), dict.fromkeys(np.unique(kinds).tolist(), 0)
    for place, kind in enumerate(kinds[order].tolist()):
        rank[place] = met[kind]
        met[kind] += 1
    found: Integers = order[np.argsort(rank, kind="stable")]
    return found


def confusion(labels: Integers, said: Integers, classes: int) -> Integers:
    """How many samples of each class (rows) were taken for each (columns): (C, C)."""
    found: Integers = np.bincount(labels * classes + said, minlength=classes * classes).reshape(classes, classes)
    return found
