"""What a table's cell is the mean of: one number of one reading. Shares are given in per cent, EU in nats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import torch

from credro.evaluation import accuracy_rejection, evaluate_ood
from credro.experiments.readings import TEST, Reading

Value: TypeAlias = Callable[[Reading], float]


def ood(score: str, name: str) -> Value:
    """A score of ``OODScores`` for one OOD set: "auroc" and "fpr95" in per cent, "gap" as it is."""
    scale = 1 if score == "gap" else 100
    return lambda r: scale * float(getattr(evaluate_ood(r.eu[TEST], r.eu[name]), score))


def auroc(name: str) -> Value:
    """AUROC of one OOD set."""
    return ood("auroc", name)


def mean_auroc(r: Reading) -> float:
    """Mean AUROC over a reading's OOD sets."""
    names = [n for n in r.eu if n != TEST]
    return sum(auroc(n)(r) for n in names) / len(names)


def severity(level: int) -> Value:
    """Mean AUROC over the corruptions at one severity."""

    def value(r: Reading) -> float:
        scores = [auroc(n)(r) for n in r.eu if n.endswith(f"-{level}")]
        return sum(scores) / len(scores)

    return value


def fact(name: str, scale: float = 1.0) -> Value:
    """A number recorded with the reading; NaN where there is none."""
    return lambda r: float("nan") if r.facts[name] is None else scale * float(r.facts[name])


def member(i: int) -> Value:
    """Test accuracy of member i."""
    return lambda r: 100 * float(r.facts["member_accuracy"][i])


def worst_fit(r: Reading) -> float:
    """Accuracy of the worst member on its own training data."""
    return 100 * min(float(m["train"]["accuracy"]) for m in r.facts["records"])


def training_seconds(r: Reading) -> float:
    """Sum over the members."""
    return float(sum(m["seconds"] for m in r.facts["records"]))


def mean_eu(r: Reading) -> float:
    """Mean EU of the test set."""
    return float(r.eu[TEST].mean())


def mean_pil(r: Reading) -> float:
    """Mean interval length of the test set."""
    return float(r.pil[TEST].mean())


def area(r: Reading) -> float:
    """Area under the accuracy-rejection curve."""
    return 100 * accuracy_rejection(r.correct, r.eu[TEST]).area


def normalised_area(r: Reading) -> float:
    """Area under the normalised curve."""
    return 100 * accuracy_rejection(r.correct, r.eu[TEST]).normalised_area


def misclassification(r: Reading) -> float:
    """AUROC of EU for telling wrong answers from right ones; NaN where all are one or the other."""
    eu = r.eu[TEST]
    if bool(r.correct.all()) or not bool(r.correct.any()):
        return float("nan")
    return 100 * evaluate_ood(eu[r.correct], eu[~r.correct]).auroc


def ours_per_thousand(r: Reading) -> float:
    """Seconds that our uncertainty takes for 1,000 samples."""
    return 1000 * float(r.facts["uq_seconds"]) / int(r.facts["samples"])


def slsqp_per_thousand(r: Reading) -> float:
    """Seconds that SLSQP takes for 1,000 samples."""
    return 1000 * float(r.facts["slsqp_seconds"]) / len(r.slsqp[TEST])


def slsqp_errors(r: Reading, names: Iterable[str]) -> torch.Tensor:
    """By how many nats SLSQP's gap is wrong, on every sample of these sets that it was given."""
    return torch.cat([(r.slsqp[n] - r.eu[n][: len(r.slsqp[n])]).abs() for n in names])


def slsqp_off(inside: bool = True, outside: bool = True) -> Value:
    """Share of the samples, of the test set and of the OOD sets, on which SLSQP's gap is off by more than 1e-3 nats."""

    def value(r: Reading) -> float:
        names = [n for n in r.slsqp if (inside if n == TEST else outside)]
        return 100 * float((slsqp_errors(r, names) > 1e-3).double().mean())

    return value


def slsqp_worst(r: Reading) -> float:
    """SLSQP's largest error, in nats."""
    return float(slsqp_errors(r, r.slsqp).max())


def auroc_of_some(name: str, exact: bool) -> Value:
    """AUROC on those samples that SLSQP was given, by exact entropies or by SLSQP's."""

    def value(r: Reading) -> float:
        known, strange = r.slsqp[TEST], r.slsqp[name]
        if exact:
            known, strange = r.eu[TEST][: len(known)], r.eu[name][: len(strange)]
        return 100 * evaluate_ood(known, strange).auroc

    return value


def mean_of(values: list[Value]) -> Value:
    """The mean of several."""
    return lambda r: sum(v(r) for v in values) / len(values)
