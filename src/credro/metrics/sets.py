"""How good decisions are that may name more than one class.

Conventions: ``decision`` (N, C) is a boolean mask of the classes that remain, ``labels`` (N,) are class numbers.
A set is right where it holds the true class; an empty set is never right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._arrays import Array, Booleans, Floats, class_numbers, flags


@dataclass(frozen=True)
class CoverageAndSize:
    """Set-valued decisions at a glance."""

    coverage: float
    """Fraction of sets that hold the true class."""
    size: float
    """Mean number of classes in a set."""
    determinacy: float
    """Fraction of sets that name exactly one class."""
    single_accuracy: float
    """Accuracy of those; NaN where there is none."""
    set_accuracy: float
    """Coverage of the sets of two classes and more; NaN where there is none."""
    set_size: float
    """Mean size of those; NaN where there is none."""


def coverage_and_size(decision: Array, labels: Array) -> CoverageAndSize:
    """How often the sets hold the truth, and how large they are. decision: (N, C) boolean. labels: (N,)."""
    right, size = _right_and_size(decision, labels)
    single, several = size == 1, size > 1
    return CoverageAndSize(
        coverage=float(right.mean()),
        size=float(size.mean()),
        determinacy=float(single.mean()),
        single_accuracy=float(right[single].mean()) if single.any() else float("nan"),
        set_accuracy=float(right[several].mean()) if several.any() else float("nan"),
        set_size=float(size[several].mean()) if several.any() else float("nan"),
    )


def discounted_accuracy(decision: Array, labels: Array) -> float:
    """Mean of z: ``1 / |set|`` where the set is right, else 0. A coin among the set does as well."""
    return float(_discounted(decision, labels).mean())


def u65(decision: Array, labels: Array) -> float:
    """Mean of ``1.6 z - 0.6 z^2``: two classes, one of them right, are worth 0.65 (Zaffalon et al., 2012)."""
    z = _discounted(decision, labels)
    return float((1.6 * z - 0.6 * z * z).mean())


def u80(decision: Array, labels: Array) -> float:
    """Mean of ``2.2 z - 1.2 z^2``: two classes, one of them right, are worth 0.80 (Zaffalon et al., 2012)."""
    z = _discounted(decision, labels)
    return float((2.2 * z - 1.2 * z * z).mean())


def _right_and_size(decision: Array, labels: Array) -> tuple[Booleans, Floats]:
    mask = flags(decision, "decision", "N", "C")
    y = class_numbers(labels, "labels", *mask.shape)
    return mask[np.arange(len(mask)), y], mask.sum(1, dtype=np.float64)


def _discounted(decision: Array, labels: Array) -> Floats:
    right, size = _right_and_size(decision, labels)
    return right / np.maximum(size, 1)
