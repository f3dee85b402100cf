"""What rejecting the uncertain samples buys.

Conventions: larger EU means more uncertain, and samples are rejected by falling EU. Samples that tie in EU are
rejected in random order, and every value is the expectation over that order: the curve is then defined at each
number of rejected samples and never depends on the order of the file. At the ends of a group of ties it is what
rejecting the group together gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._arrays import Array, Booleans, Floats, correct_and_eu, fraction, like
from .ood import auroc


@dataclass(frozen=True, eq=False)
class AccuracyRejection:
    """The accuracy-rejection (AR) curve and its normalised form."""

    rates: Array
    """(N+1,) rejection rates 0, 1/N, ..., 1."""
    accuracy: Array
    """(N+1,) A(r): accuracy of the samples that are kept; A(1) = 1."""
    normalised: Array
    """(N+1,) (A(r) - A(0)) / (1 - A(0)): from 0 to 1. All ones where A(0) = 1: nothing was left to gain."""
    area: float
    """Area under ``accuracy`` over the rates, by the trapezoid rule."""
    normalised_area: float
    """Area under ``normalised``."""


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk-coverage curve."""

    coverage: Array
    """(N,) fraction of samples that are kept: 1/N, 2/N, ..., 1."""
    risk: Array
    """(N,) error rate of the samples that are kept."""
    area: float
    """AURC: the mean of ``risk`` over the N coverages (Geifman and El-Yaniv, 2017). Smaller is better."""
    excess_area: float
    """E-AURC: ``area`` less that of the best order of the same errors, every wrong sample rejected first."""


@dataclass(frozen=True)
class ErrorScores:
    """How well one score of uncertainty finds the wrong predictions."""

    auroc: float
    """P(score of a wrong prediction > score of a right one), ties counted half; NaN where all are right, or wrong."""
    area: float
    """Area under the accuracy-rejection curve of the score."""
    accuracy_at_90: float
    """Accuracy of the 90 % of the samples that have the lowest score (of the smallest number that is at least 90 %)."""


def error_detection(correct: Array, score: Array) -> ErrorScores:
    """What a score is worth for finding errors: wrong predictions are the positive class.

    correct: (N,) boolean. score: (N,), larger where a prediction is more in doubt: EU, total uncertainty, 1 - max p.
    """
    right, scores = correct_and_eu(correct, score, "score")
    kept = _kept_accuracy(right, scores)
    both = bool(right.any()) and not bool(right.all())
    return ErrorScores(
        auroc=auroc(scores[right], scores[~right]) if both else float("nan"),
        area=_trapezoid(np.append(kept[::-1], 1.0)),
        accuracy_at_90=float(kept[-(-9 * len(scores) // 10) - 1]),
    )


def accuracy_rejection(correct: Array, eu: Array) -> AccuracyRejection:
    """Accuracy of what is kept as the most uncertain samples are rejected.

    correct: (N,) boolean, whether the prediction was right. eu: (N,).
    """
    right, scores = correct_and_eu(correct, eu)
    accuracy = np.append(_kept_accuracy(right, scores)[::-1], 1.0)
    gain = 1 - accuracy[0]
    normalised = (accuracy - accuracy[0]) / gain if gain > 0 else np.ones_like(accuracy)
    return AccuracyRejection(
        rates=like(np.arange(len(accuracy)) / len(scores), eu),
        accuracy=like(accuracy, eu),
        normalised=like(normalised, eu),
        area=_trapezoid(accuracy),
        normalised_area=_trapezoid(normalised),
    )


def risk_coverage(correct: Array, eu: Array) -> RiskCoverage:
    """Error rate of the ``k`` least uncertain samples, k = 1..N. correct: (N,) boolean. eu: (N,)."""
    right, scores = correct_and_eu(correct, eu)
    risk = 1 - _kept_accuracy(right, scores)
    kept = np.arange(1, len(scores) + 1)
    best = np.maximum(kept - right.sum(), 0) / kept
    return RiskCoverage(
        coverage=like(kept / len(scores), eu),
        risk=like(risk, eu),
        area=float(risk.mean()),
        excess_area=float(risk.mean() - best.mean()),
    )


def rejection_for(correct: Array, eu: Array, accuracy: float = 0.95) -> float:
    """The smallest rejection rate r with A(r) >= ``accuracy``; NaN where only rejecting everything would do.

    It describes these samples; A(r) may fall again beyond r. To choose a threshold for new samples, with a
    guarantee, use ``threshold``. correct: (N,) boolean. eu: (N,).
    """
    right, scores = correct_and_eu(correct, eu)
    enough = np.flatnonzero(_kept_accuracy(right, scores) >= fraction(accuracy, "accuracy", closed=True))
    return (len(scores) - 1 - int(enough[-1])) / len(scores) if len(enough) else float("nan")


def _kept_accuracy(correct: Booleans, eu: Floats) -> Floats:
    """Expected accuracy of the k least uncertain samples, k = 1..N.

    A group of g ties with c right ones adds c/g of a right sample each. Kept as one integer ratio, so that every value
    is rounded once and ``accuracy >= 0.95`` is true at 19 of 20.
    """
    order = np.argsort(eu)
    ordered = eu[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(eu) - 1)  # of each group of ties
    total = last + 1
    right = np.cumsum(correct[order], dtype=np.int64)[last]
    size = np.diff(total, prepend=0)
    gained = np.diff(right, prepend=0)
    before, right_before, gained, group = (
        np.repeat(part, size) for part in (total - size, right - gained, gained, size)
    )
    kept = np.arange(1, len(eu) + 1)
    accuracy: Floats = (right_before * group + (kept - before) * gained) / (group * kept)
    return accuracy


def _trapezoid(values: Floats) -> float:
    """Area under N+1 values at 0, 1/N, ..., 1."""
    return float((values[1:] + values[:-1]).mean() / 2)
