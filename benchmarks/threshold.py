"""What a threshold with a guarantee accepts, and how often it is broken: exact limits against Bonferroni's correction.

The score is uniform on (0, 1), and the chance of an error is a function of it. Target 5 %, confidence 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from credro.metrics import clopper_pearson, threshold

Floats = NDArray[np.float64]
TARGET, ALPHA, STEPS = 0.05, 0.05, 20
RUNS = 1000

POPULATIONS: dict[str, tuple[Callable[[Floats], Floats], float]] = {
    "rising, 0.25 u^2": (lambda u: 0.25 * u**2, math.sqrt(0.6)),
    "sharp, 1 % up to 0.8, then 40 %": (lambda u: np.where(u < 0.8, 0.01, 0.4), 0.8 * 0.39 / 0.35),
    "gentle, 0.02 + 0.08 u": (lambda u: 0.02 + 0.08 * u, 0.75),
    "useless score, 3 %": (lambda u: 0.03 + 0 * u, 1.0),
    "worst case, 5 %": (lambda u: 0.05 + 1e-9 + 0 * u, 0.0),
}
"""The chance of an error, and the largest coverage whose error is at most the target."""


def bonferroni(score: Floats, right: NDArray[np.bool_]) -> float:
    """The threshold of version 0.1: 20 coverages from the largest down, each tested at its part of alpha."""
    n, ranked = len(score), np.append(np.sort(score), math.inf)
    counts = [n * (STEPS - m + 1) // STEPS for m in range(1, STEPS + 1)]
    counts = [k for m, k in enumerate(counts, 1) if (1 - TARGET) ** k <= ALPHA / m]
    for count in counts:
        accepted = score < ranked[count]
        if clopper_pearson(int((~right[accepted]).sum()), int(accepted.sum()), 1 - ALPHA / len(counts)) <= TARGET:
            return float(ranked[count])
    return -math.inf


def main() -> None:
    print(f"{RUNS} draws of n held-out samples each.")
    print("In per cent: samples accepted, and draws whose promise is broken (5 % may be).\n")
    print("| n | errors | at best | Bonferroni | exact limits | broken: Bonferroni | exact limits |")
    print("|---|---|---|---|---|---|---|")
    for n in (150, 300, 1000, 5000):
        for title, (chance, best) in POPULATIONS.items():
            rng = np.random.default_rng(n)
            cuts: list[tuple[float, float]] = []
            for _ in range(RUNS):
                u = rng.random(n)
                right = rng.random(n) >= chance(u)
                cuts.append((bonferroni(u, right), threshold(u, right, TARGET, 1 - ALPHA).threshold))
            coverage = np.clip(np.array(cuts), 0, 1)
            broken = coverage > best + 1e-9  # the errors of all of these grow with the coverage
            parts = [best, *coverage.mean(0), *broken.mean(0)]
            print(f"| {n} | {title} | " + " | ".join(f"{100 * part:.1f}" for part in parts) + " |", flush=True)
