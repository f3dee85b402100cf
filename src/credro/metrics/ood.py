"""How well epistemic uncertainty (EU) tells OOD samples from ID samples.

Conventions: out-of-distribution (OOD) is the positive class, the score is EU, larger means more uncertain.
A sample is called OOD where its EU is at or above a threshold, so samples that tie are called together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ._arrays import Array, Floats, Integers, fraction, numbers


@dataclass(frozen=True)
class OODScores:
    """Detection of OOD samples by EU."""

    auroc: float
    """P(EU of an OOD sample > EU of an ID sample), ties counted half."""
    aupr: float
    """Average precision: the sum of precision times the step in recall, over distinct thresholds."""
    fpr95: float
    """Fraction of ID samples called OOD at the largest threshold that finds at least 95 % of the OOD samples."""
    gap: float
    """Normalised gap (mean_ood - mean_id) / mean_ood; NaN unless mean_ood > 0."""
    mean_id: float
    """Mean EU of the ID samples, in the unit of the EU given."""
    mean_ood: float
    """Mean EU of the OOD samples."""


def evaluate_ood(eu_id: Array, eu_ood: Array) -> OODScores:
    """Every OOD measure at once, from the EU of ID samples (N,) and of OOD samples (K,)."""
    known, ood = _scores(eu_id, eu_ood)
    fp, tp = _cumulative(known, ood)
    mean_id, mean_ood = float(known.mean()), float(ood.mean())
    return OODScores(
        auroc=_auroc(fp, tp),
        aupr=_aupr(fp, tp),
        fpr95=_fpr_at(fp, tp, 0.95),
        gap=(mean_ood - mean_id) / mean_ood if mean_ood > 0 else float("nan"),
        mean_id=mean_id,
        mean_ood=mean_ood,
    )


def auroc(eu_id: Array, eu_ood: Array) -> float:
    """Area under the ROC curve, ties counted half (the Mann-Whitney statistic). EU: (N,) and (K,)."""
    return _auroc(*_cumulative(*_scores(eu_id, eu_ood)))


def aupr(eu_id: Array, eu_ood: Array) -> float:
    """Average precision; depends on the ratio K : N, and is K / (N + K) for a useless score. EU: (N,) and (K,)."""
    return _aupr(*_cumulative(*_scores(eu_id, eu_ood)))


def fpr_at(eu_id: Array, eu_ood: Array, tpr: float = 0.95) -> float:
    """False-positive rate at the largest threshold whose true-positive rate is at least ``tpr``. EU: (N,) and (K,)."""
    return _fpr_at(*_cumulative(*_scores(eu_id, eu_ood)), fraction(tpr, "tpr", closed=True))


def _scores(eu_id: Array, eu_ood: Array) -> tuple[Floats, Floats]:
    return numbers(eu_id, "eu_id", "N"), numbers(eu_ood, "eu_ood", "K")


def _cumulative(known: Floats, ood: Floats) -> tuple[Integers, Integers]:
    """False and true positives at every threshold: at infinity (0, 0), then at each distinct EU, falling."""
    scores = np.concatenate([known, ood])
    order = np.argsort(-scores)
    ordered = scores[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(scores) - 1)  # of each group of ties
    called = np.append(0, last + 1)
    tp = np.append(0, np.cumsum(order >= len(known), dtype=np.int64)[last])
    return called - tp, tp


def _auroc(fp: Integers, tp: Integers) -> float:
    doubled = int(((fp[1:] - fp[:-1]) * (tp[1:] + tp[:-1])).sum())  # twice the trapezoids, in exact integers
    return doubled / (2 * int(fp[-1]) * int(tp[-1]))


def _aupr(fp: Integers, tp: Integers) -> float:
    return float(((tp[1:] - tp[:-1]) * (tp[1:] / (tp[1:] + fp[1:]))).sum() / tp[-1])


def _fpr_at(fp: Integers, tp: Integers, tpr: float) -> float:
    # in floats 0.55 * 100 is above 55: count in exact arithmetic, from the number as it is written
    wanted = math.ceil(Fraction(str(tpr)) * int(tp[-1]))
    return int(fp[np.searchsorted(tp, wanted)]) / int(fp[-1])
