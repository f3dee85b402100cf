"""Which threshold to use: the largest coverage whose error is proven to be below a target.

A sample is accepted where its score is below the threshold, so samples that tie with the threshold are rejected
together. The score is EU, or any other that grows with doubt.

Why the guarantee holds. Put the held-out samples in the order of their scores, and let E(k) be the number of errors
among the first k. The limits b(k) are such that a walk W which errs with probability e = ``max_error`` at every step
is ever at or below them with probability 1 - confidence at most (``_limits``). *Claim*: whatever the population, the
chance that some threshold t has a true error rate R(t) above e and yet E(k) <= b(k), k being the samples below t, is no
larger. So *every* threshold that passes may be trusted at once, and the one that accepts most is taken.

*Proof.* Break ties at random, for the argument only, so that scores are continuous, and let D(t) = P(wrong, score < t)
- e P(score < t). D is continuous, and R(t) > e where D(t) > 0. Cut the line where D is 0. Between two cuts the error
rate is e exactly; so, given how many samples fall between each two, the errors there are binomial with e. Within a
piece where D > 0, given which of its samples are wrong, D > 0 says that the scores of the wrong ones are stochastically
smaller than those of the right ones: their distribution functions are G1 >= G0. Draw both by inversion, from the same
uniform numbers that would order them if G1 = G0 (the walk W, whose errors are spread evenly): this only moves right
samples up past wrong ones, so E(k) >= W(k) for every k in the piece, and E = W at its ends. (In the last piece the rate
may exceed e: count its last wrong samples as right until it is e.) So E(k) >= W(k) wherever R > e, and E(k) <= b(k)
there entails W(k) <= b(k). A flat risk of e is the worst population there is.

No assumption on score, ties or monotone risk is made. Bonferroni's correction over 20 coverages tests each at 1/20 of
the level; here full coverage is tested at 1/2 to 1/4 of it (``python -m benchmarks threshold`` measures what it gains).
SGR (Geifman and El-Yaniv, 2017) and Learn then Test (Angelopoulos et al., 2021) ask the same question.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ._arrays import Array, Booleans, Integers, correct_and_eu, fraction, positive
from ._limits import limits
from .scores import SCORES, score_of

if TYPE_CHECKING:
    from credro.prediction import Prediction

FEW = 20
"""An error rate observed on fewer samples is no basis for advice."""
MOST = 64
"""Advice to collect more than so many times the held-out samples is none."""
DIGITS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
TARGETS = tuple(round(digit * 10.0**power, 6) for power in (-4, -3, -2, -1) for digit in DIGITS)
"""Round numbers among which a target that can be met is looked for."""


@dataclass(frozen=True)
class Threshold:
    """A threshold on a score of uncertainty and what is known of it."""

    threshold: float
    """Accept where the score is below; infinity accepts everything, minus infinity nothing."""
    found: bool
    """Whether any threshold qualified; if not, everything is rejected and ``note`` says why."""
    coverage: float
    """Fraction of the held-out samples that are accepted."""
    error: float
    """Observed error rate of those; NaN where none is accepted."""
    confidence: float
    """Probability, over the draw of the held-out set, that the true error rate is at most ``max_error``."""
    accepted: int
    """Number of held-out samples that are accepted."""
    max_error: float
    """The target: what is proven of accepted new samples."""
    note: str
    """The result in a sentence; where nothing was found, what would help."""
    score: str = "epistemic"
    """What is compared with the threshold: epistemic, total or confidence (1 - max p)."""
    needed: int | None = None
    """Where nothing was found: about how many held-out samples like these would do; None: no number would."""
    reachable: float | None = None
    """Where nothing was found: a larger ``max_error`` that these samples show; None: none below 0.8."""

    def accepts(self, score: Array | Prediction) -> Array:
        """Boolean mask of the samples to accept: of a prediction by its own score, or of the scores themselves.

        The mask has the shape and kind of the scores; a NaN is not accepted.
        """
        values: Any = score if isinstance(score, Tensor | np.ndarray) else score_of(score, self.score)
        accepted: Array = values < self.threshold
        return accepted


def threshold(
    eu: Array,
    correct: Array,
    max_error: float = 0.05,
    confidence: float = 0.95,
    steps: int = 100,
    *,
    score: str = "epistemic",
) -> Threshold:
    """Choose a threshold on held-out data such that at most ``max_error`` of what is accepted is wrong.

    With probability ``confidence`` over the draw of the held-out samples, new samples *of the same distribution* that
    are accepted have an error rate of at most ``max_error``. The data must not have been used for training or
    calibration (``Ensemble.threshold`` sees to that). eu: (N,), EU or another score that grows with doubt; ``score``
    says which. correct: (N,) boolean. steps: numbers of samples at which the limit on errors changes; 1 accepts
    everything or nothing.
    """
    right, scores = correct_and_eu(correct, eu)
    max_error, confidence = fraction(max_error, "max_error"), fraction(confidence, "confidence")
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    order = np.argsort(scores)
    ranked, n = scores[order], len(scores)
    counts = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1, n)  # samples below each score that occurs
    alpha = round(1 - confidence, 15)  # in floats, 1 - 0.95 is a little above 0.05
    curve = Curve(counts, np.cumsum(~right[order])[counts - 1], alpha, positive(steps, "steps"))
    shown = np.flatnonzero(curve.shows(max_error))
    if not len(shown):
        needed, reachable, why = _remedy(curve, max_error)
        note = f"no threshold: an error of at most {max_error:g} cannot be shown with confidence {confidence:g}; {why}"
        missing = (-math.inf, False, 0.0, math.nan, confidence, 0, max_error, note, score)
        return Threshold(*missing, needed=needed, reachable=reachable)
    accepted, wrong = int(counts[shown[-1]]), int(curve.errors[shown[-1]])
    limit = float(ranked[accepted]) if accepted < n else math.inf
    note = (
        f"accept {SCORES[score]} < {limit:g}: {accepted} of {n} accepted, {wrong} wrong; of new samples that are "
        f"accepted at most {max_error:g} are wrong, with confidence {confidence:g}"
    )
    return Threshold(limit, True, accepted / n, wrong / accepted, confidence, accepted, max_error, note, score)


@dataclass(frozen=True, eq=False)
class Curve:
    """Errors (K,) among the ``counts`` (K,) samples below each threshold, and how they are judged."""

    counts: Integers
    errors: Integers
    alpha: float
    steps: int

    @property
    def n(self) -> int:
        """All samples."""
        return int(self.counts[-1])

    def shows(self, max_error: float) -> Booleans:
        """Which thresholds (K,) are shown to hold the target."""
        return limits(self.n, max_error, self.alpha, self.steps).passes(self.counts, self.errors)

    def times(self, factor: float) -> Curve:
        """The same, had there been ``factor`` times as many samples with errors as frequent."""
        counts, errors = self.counts * factor, np.ceil(self.errors * factor - 1e-9)
        return replace(self, counts=np.floor(counts + 1e-9).astype(np.int64), errors=errors.astype(np.int64))


def _remedy(curve: Curve, max_error: float) -> tuple[int | None, float | None, str]:
    """What would help where nothing is shown: more samples (how many), a larger target (which), or a better model."""
    n, least = curve.n, math.ceil(math.log(curve.alpha) / math.log1p(-max_error))
    some = curve.counts >= min(FEW, n)
    rates = curve.errors[some] / curve.counts[some]
    lowest, among = float(rates.min()), int(curve.counts[some][rates.argmin()])
    enough = replace(curve, counts=curve.counts[some], errors=curve.errors[some])
    needed = _needed(enough, max_error, least) if lowest < max_error else None
    reachable = _reachable(curve, max_error)
    parts = [f"even without an error, {least:,} samples are needed, got {n:,}"] if n < least else []
    if n < FEW:
        pass
    elif lowest >= max_error:
        where = f"the lowest error observed at any coverage is {lowest:.2g}, of {among:,} samples"
        parts.append(f"{where}: the model is not good enough")
    elif needed is None:
        parts.append(f"{MOST} times as many held-out samples like these {n:,} would not do")
    else:
        parts.append(f"about {needed:,} held-out samples are needed, if the others are like these {n:,}")
    if reachable is not None:
        parts.append(f"these show max_error={reachable:g}")
    return needed, reachable, "; ".join(parts)


def _reachable(curve: Curve, max_error: float) -> float | None:
    """The smallest round target that these samples show; a larger one is never harder."""
    larger = [target for target in TARGETS if target > max_error]
    first = bisect_left(larger, True, key=lambda target: bool(curve.shows(target).any()))
    return larger[first] if first < len(larger) else None


def _needed(curve: Curve, max_error: float, least: int) -> int | None:
    """How many samples would show it if errors came as often at every coverage as they did: two digits, rounded up."""
    low, high = 1.0, max(2.0, least / curve.n)
    most = MOST * high
    while not curve.times(high).shows(max_error).any():
        low, high = high, 2 * high
        if high > most:
            return None
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if curve.times(middle).shows(max_error).any() else (middle, high)
    unit: int = 10 ** max(0, math.floor(math.log10(curve.n * high)) - 1)
    return math.ceil(curve.n * high / unit) * unit


def clopper_pearson(errors: int, count: int, confidence: float = 0.95) -> float:
    """Exact one-sided upper bound on an error rate after ``errors`` errors in ``count`` independent trials."""
    if not 0 <= errors <= count:
        raise ValueError(f"errors must lie in [0, count = {count}], got {errors}")
    return _upper(errors, count, 1 - fraction(confidence, "confidence"))


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
