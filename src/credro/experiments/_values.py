"""What a table's cell is the mean of: one number of one result. Fractions are given in per cent, EU in nats."""

from __future__ import annotations

import torch

from credro.experiments.results import TEST, Result, Value
from credro.metrics import evaluate_ood

NONE = float("nan")
"""Where a result has no such number."""


def auroc(name: str) -> Value:
    """AUROC of one OOD set."""
    return lambda r: 100 * r.scores[name].auroc


def severity(level: int) -> Value:
    """Mean AUROC over the corruptions at one severity."""

    def value(r: Result) -> float:
        scores = [s.auroc for name, s in r.scores.items() if name.endswith(f"-{level}")]
        return 100 * sum(scores) / len(scores) if scores else NONE

    return value


def member(i: int) -> Value:
    """Test accuracy of member i."""
    return lambda r: 100 * r.member_accuracy[i] if i < r.members else NONE


def worst_fit(r: Result) -> float:
    """Accuracy of the worst member on its own training data."""
    fits = [m.train.accuracy for m in r.records if m.train is not None and m.train.accuracy is not None]
    return 100 * min(fits) if fits else NONE


def mean_pil(r: Result) -> float:
    """Mean interval length of the test set."""
    return float(r.pil[TEST].mean()) if r.pil else NONE


def misclassification(r: Result) -> float:
    """AUROC of EU for telling wrong answers from right ones; NaN where all are one or the other."""
    eu = r.eu[TEST]
    if bool(r.correct.all()) or not bool(r.correct.any()):
        return NONE
    return 100 * evaluate_ood(eu[r.correct], eu[~r.correct]).auroc


def slsqp_per_thousand(r: Result) -> float:
    """Seconds that SLSQP takes for 1,000 samples."""
    return NONE if r.slsqp_seconds is None else 1000 * r.slsqp_seconds / len(r.slsqp[TEST])


def slsqp_errors(r: Result, inside: bool = True, outside: bool = True) -> torch.Tensor:
    """By how many nats SLSQP's gap is wrong, on every sample of the test set and of the OOD sets that it was given."""
    names = [n for n in r.slsqp if (inside if n == TEST else outside)]
    return torch.cat([torch.empty(0), *((r.slsqp[n] - r.eu[n][: len(r.slsqp[n])]).abs() for n in names)])


def slsqp_off(inside: bool = True, outside: bool = True) -> Value:
    """On how many samples SLSQP's gap is off by more than 1e-3 nats, in per cent; NaN where it was given none."""
    return lambda r: 100 * float((slsqp_errors(r, inside, outside) > 1e-3).double().mean())


def auroc_of_some(name: str, exact: bool) -> Value:
    """AUROC on those samples that SLSQP was given, by exact entropies or by SLSQP's."""

    def value(r: Result) -> float:
        sets = [(r.eu[n][: len(r.slsqp[n])] if exact else r.slsqp[n]) for n in (TEST, name) if n in r.slsqp]
        return 100 * evaluate_ood(*sets).auroc if sets else NONE

    return value
