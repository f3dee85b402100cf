"""Which EU threshold to use: the largest coverage whose error is proven to be below a target.

A sample is accepted where ``eu < threshold``, so samples that tie with the threshold are rejected together.

Why the guarantee holds. Fix a number k before looking at the data, and let T be the EU of rank k+1. Given T, the
samples below T are independent draws from the population below T, so the wrong ones among them are binomial with the
very error rate that ``eu < T`` has on new samples, and Clopper and Pearson's bound is exact for it; this needs no
assumption on EU, ties or monotone risk. (The sample at T itself is another matter: it is left out.) Looking at
several k and keeping the best is paid for by Bonferroni: each of m is tested at (1 - confidence) / m. The same
question is asked by SGR (Geifman and El-Yaniv, 2017) and in general by Learn then Test (Angelopoulos et al., 2021).
Testing thresholds one after the other without a correction would need them fixed before any EU is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._arrays import Array, correct_and_eu, fraction, positive


@dataclass(frozen=True)
class Threshold:
    """A threshold on EU and what is known of it."""

    threshold: float
    """Accept where ``eu < threshold``; infinity accepts everything, minus infinity nothing."""
    found: bool
    """Whether any threshold qualified; if not, everything is rejected and ``note`` says why."""
    coverage: float
    """Share of the held-out samples that are accepted."""
    error: float
    """Observed error rate of those; NaN where none is accepted."""
    bound: float
    """Upper bound on the error rate of accepted new samples, valid with ``confidence``; NaN where not found."""
    confidence: float
    """Probability, over the draw of the held-out set, that the true error rate is at most ``max_error``."""
    accepted: int
    """Number of held-out samples that are accepted."""
    max_error: float
    """The target."""
    note: str
    """The result in a sentence."""

    def accepts(self, eu: Array) -> Array:
        """Boolean mask of the samples to accept, of the shape and kind of ``eu``; a NaN is not accepted."""
        return eu < self.threshold


def threshold(
    eu: Array, correct: Array, max_error: float = 0.05, confidence: float = 0.95, steps: int = 20
) -> Threshold:
    """Choose an EU threshold on held-out data such that at most ``max_error`` of what is accepted is wrong.

    With probability ``confidence`` over the draw of the held-out samples, new samples *of the same distribution* that
    are accepted have an error rate of at most ``max_error``. The data must not have been used for training or
    calibration. eu: (N,). correct: (N,) boolean. steps: coverages 1, 1 - 1/steps, ... are tried, down to the last that
    could qualify; more steps are finer and pay a slightly larger correction.
    """
    right, scores = correct_and_eu(correct, eu)
    max_error, confidence = fraction(max_error, "max_error"), fraction(confidence, "confidence")
    n, alpha = len(scores), 1 - confidence
    counts = _counts(n, max_error, alpha, positive(steps, "steps"))
    if not counts:
        needed = math.ceil(math.log(alpha) / math.log1p(-max_error))
        return _nothing(max_error, confidence, f"even without an error, {needed} samples are needed, got {n}")
    order = np.argsort(scores)
    limits = np.append(scores[order], np.inf)
    errors_below = np.append(0, np.cumsum(~right[order]))
    level, lowest = alpha / len(counts), 1.0
    for count in counts:
        limit = float(limits[count])
        accepted = int(np.searchsorted(limits, limit))
        if accepted == 0:
            continue
        errors = int(errors_below[accepted])
        error = errors / accepted
        if error < max_error and _at_most(errors, accepted, max_error) <= level:  # the bound is below max_error
            bound = _upper(errors, accepted, level)
            note = f"accept eu < {limit:g}: {accepted} of {n} accepted, {errors} wrong, error at most {bound:.4g}"
            return Threshold(limit, True, accepted / n, error, bound, confidence, accepted, max_error, note)
        lowest = min(lowest, error)
    why = f"of {len(counts)} coverages tried the lowest observed error is {lowest:.4g}"
    return _nothing(max_error, confidence, why)


def clopper_pearson(errors: int, count: int, confidence: float = 0.95) -> float:
    """Exact one-sided upper bound on an error rate after ``errors`` errors in ``count`` independent trials."""
    if not 0 <= errors <= count:
        raise ValueError(f"errors must lie in [0, count = {count}], got {errors}")
    return _upper(errors, count, 1 - fraction(confidence, "confidence"))


def _nothing(max_error: float, confidence: float, why: str) -> Threshold:
    note = f"no threshold: an error of at most {max_error:g} cannot be shown with confidence {confidence:g}; {why}"
    return Threshold(-math.inf, False, 0.0, math.nan, math.nan, confidence, 0, max_error, note)


def _counts(n: int, max_error: float, alpha: float, steps: int) -> list[int]:
    """Sample counts to try, falling from n; as many as could each pass at alpha / m without an error.

    Depends on nothing but the numbers given: the grid must be fixed before the data are seen.
    """
    counts: list[int] = []
    for m in range(1, steps + 1):
        count = n * (steps - m + 1) // steps
        if (1 - max_error) ** count > alpha / m:
            break
        counts.append(count)
    return counts


def _upper(errors: int, count: int, alpha: float) -> float:
    """The rate p at which so few errors have probability alpha, by bisection, rounded up."""
    if errors == count:
        return 1.0
    low, high = errors / count, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(errors, count, middle) > alpha:
            low = middle
        else:
            high = middle
    return high


def _at_most(errors: int, count: int, p: float) -> float:
    """P(Binomial(count, p) <= errors) for p >= errors / count.

    There the term d places below the last is smaller than it by exp(-d (d - 1) / (2 errors)) or more: 10 sqrt(errors)
    terms hold all that double precision can see.
    """
    if p >= 1:
        return float(errors == count)
    i = np.arange(errors, max(0, errors - 10 * math.isqrt(errors) - 10), -1)
    ratios = i / (count - i + 1) * ((1 - p) / p)
    choices = math.lgamma(count + 1) - math.lgamma(errors + 1) - math.lgamma(count - errors + 1)
    log_last = choices + errors * math.log(p) + (count - errors) * math.log1p(-p)
    return math.exp(log_last) * (1 + float(np.cumprod(ratios).sum()))
