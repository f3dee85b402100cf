"""Whether probabilities mean what they say.

Conventions: ``probs`` (N, C) is one probability vector a sample, for an ensemble its mean vector; ``labels`` (N,) are
class numbers. The prediction is the most probable class, the lowest number among equals, and its probability is the
confidence. Logarithms are natural.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._arrays import Array, Floats, Integers, class_numbers, like, numbers, positive, probabilities


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram: B equal-width bins (b/B, (b+1)/B] of confidence."""

    edges: Array
    """(B+1,) edges of the bins, from 0 to 1."""
    confidence: Array
    """(B,) mean confidence in each bin; NaN where it is empty."""
    accuracy: Array
    """(B,) accuracy in each bin; NaN where it is empty."""
    count: Array
    """(B,) number of samples in each bin."""
    ece: float
    """Expected calibration error: the mean over samples of |accuracy - confidence| of their bin."""


def reliability(probs: Array, labels: Array, bins: int = 10) -> Reliability:
    """Confidence against accuracy in equal-width bins. probs: (N, C). labels: (N,)."""
    p, y = _checked(probs, labels)
    bins = positive(bins, "bins")
    predicted = p.argmax(1)
    confidence = p[np.arange(len(p)), predicted]
    edges = np.arange(bins + 1) / bins
    number = np.searchsorted(edges[1:-1], confidence)  # side "left": an edge belongs to the bin below it
    count = np.bincount(number, minlength=bins)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN of an empty bin
        mean_confidence = np.bincount(number, confidence, bins) / count
        mean_accuracy = np.bincount(number, predicted == y, bins) / count
    return Reliability(
        edges=like(edges, probs),
        confidence=like(mean_confidence, probs),
        accuracy=like(mean_accuracy, probs),
        count=like(count, probs),
        ece=float(np.nansum(count * np.abs(mean_accuracy - mean_confidence)) / len(p)),
    )


def ece(probs: Array, labels: Array, bins: int = 10) -> float:
    """Expected calibration error over equal-width bins of confidence. probs: (N, C). labels: (N,)."""
    return reliability(probs, labels, bins).ece


def brier(probs: Array, labels: Array) -> float:
    """Brier score: the mean over samples of ``sum_k (p_k - [k = y])^2``, in [0, 2]. probs: (N, C). labels: (N,)."""
    p, y = _checked(probs, labels)
    right = p[np.arange(len(p)), y]
    return float(((p * p).sum(1) - right * right + (1 - right) ** 2).mean())


def nll(probs: Array, labels: Array, floor: float = 2.0**-52) -> float:
    """Negative log-likelihood: the mean over samples of ``-log p_y``, in nats. probs: (N, C). labels: (N,).

    A probability below ``floor`` counts as ``floor``, so that one sample costs at most ``-log floor`` (36 nats by
    default, as in scikit-learn for float64). ``floor=0``: a single zero makes the result infinite.
    """
    p, y = _checked(probs, labels)
    if not 0 <= floor < 1:
        raise ValueError(f"floor must lie in [0, 1), got {floor}")
    with np.errstate(divide="ignore"):
        return float(-np.log(np.maximum(p[np.arange(len(p)), y], floor)).mean())


def accuracy(predicted: Array, labels: Array) -> float:
    """Fraction of right predictions. predicted: (N,) class numbers, or (N, C) scores, largest wins. labels: (N,)."""
    if np.ndim(predicted) == 2:
        scores = numbers(predicted, "predicted", "N", "C")
        return float((scores.argmax(1) == class_numbers(labels, "labels", *scores.shape)).mean())
    y = class_numbers(labels, "labels")
    return float((class_numbers(predicted, "predicted", len(y)) == y).mean())


def member_accuracy(probs: Array, labels: Array) -> Array:
    """Accuracy (M,) of every member of an ensemble. probs: (M, N, C) probabilities or logits. labels: (N,)."""
    scores = numbers(probs, "probs", "M", "N", "C")
    return like((scores.argmax(2) == class_numbers(labels, "labels", *scores.shape[1:])).mean(1), probs)


def _checked(probs: Array, labels: Array) -> tuple[Floats, Integers]:
    p = probabilities(probs)
    return p, class_numbers(labels, "labels", *p.shape)
