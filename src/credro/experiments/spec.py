"""What an experiment is: data. ``EXPERIMENTS`` is the table of all of them; ``runner`` executes any."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from credro.experiments._benchmark import Benchmark
from credro.experiments.benchmarks import (
    BENCHMARKS,
    BREAKHIS,
    CAMELYON,
    CIFAR10_C,
    CIFAR100_C,
    CPU,
    DEMO,
    FASHION,
    FEATURES,
    HEART,
    NOISY,
)
from credro.methods import METHODS, Method, as_read, known_methods, make, options

PUBLISHED: Mapping[str, Mapping[str, Any]] = {"crebnn": {"kl_weight": 0.005}}
"""What methods are given in every experiment: the weight of the KL in CreBNN's published runs, 1e-7 of its sum at
50,000 samples. Under the full evidence bound, our default, small networks do not fit."""


@dataclass(frozen=True)
class Variant:
    """One point of an experiment's grid.

    options: of those methods that have them. noise: fraction of training labels replaced. changes: of the benchmark;
    ``samples`` and ``epochs`` as fractions of its own. members: another size of the ensemble.
    """

    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    noise: float = 0.0
    changes: Mapping[str, Any] = field(default_factory=dict)
    members: int | None = None


@dataclass(frozen=True)
class Claim:
    """``better`` is said to detect OOD samples better than ``other``.

    calibrated: whether each of the two is; None: neither, and then both where the experiment has them calibrated.
    """

    text: str
    better: str
    other: str
    calibrated: tuple[bool, bool] | None = None


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper (or ours).

    tables, figures: names in ``tables.TABLES`` and ``figures.FIGURES``, what is made of the results. methods: None
    takes all that the table of methods has when the experiment is run. benchmarks: by preset, where it does not take
    place in the preset's own. claims: differences between methods that are looked at. calibrated: whether methods are
    also measured with a temperature per member. slsqp: so many samples of each set are also measured by SciPy's SLSQP,
    as the paper does.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    methods: tuple[str, ...] | None = None
    variants: tuple[Variant, ...] = (Variant(),)
    figures: tuple[str, ...] = ()
    benchmarks: Mapping[str, tuple[Benchmark, ...]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    calibrated: bool = False
    slsqp: int = 0

    @property
    def compared(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(METHODS) if self.methods is None else self.methods

    def places(self, preset: str) -> tuple[Benchmark, ...]:
        """The benchmarks it takes place in under a preset."""
        return self.benchmarks.get(preset, (BENCHMARKS[preset],))


@dataclass(frozen=True)
class Cell:
    """One ensemble to train, and the methods that read it: they agree in all but the read-out."""

    benchmark: Benchmark
    variant: Variant
    seed: int
    members: int
    methods: tuple[Method, ...]

    @property
    def trainer(self) -> Method:
        """The method that the run is recorded under, whoever reads it: the first of the table that can."""
        first = self.methods[0]
        return as_read(first, known_methods(first)[0])


def cells(experiment: Experiment, preset: str, runs: int | None = None) -> Iterator[Cell]:
    """Everything the experiment needs trained, run by run, so that an interrupted one has whole runs first."""
    for benchmark in experiment.places(preset):
        for seed in range(runs or benchmark.runs):
            for variant in experiment.variants:
                place = benchmark.with_(**dict(variant.changes))
                members = variant.members or benchmark.members
                trained: dict[str, list[Method]] = {}
                for name in experiment.compared:
                    asked = {k: v for k, v in variant.options.items() if k in options(name)}
                    method = make(name, **{**PUBLISHED.get(name, {}), **asked})
                    trained.setdefault(json.dumps(method.training(), sort_keys=True), []).append(method)
                for methods in trained.values():
                    yield Cell(place, variant, seed, members, tuple(methods))


CLAIMS = (
    Claim("CVaR training, point prediction", "en-dro", "de"),
    Claim("CVaR training, credal set", "credro", "crewra"),
    Claim("credal set over point prediction, plain members", "crewra", "de"),
    Claim("credal set over point prediction, CreDRO's members", "credro", "en-dro"),
    Claim("worst samples over random ones", "credro", "creram"),
    Claim("box over hull", "credro", "credro-hull"),
    Claim("CreDRO over CreRL", "credro", "crerl"),
    Claim("CreDRO over CreDE", "credro", "crede"),
    Claim("CreDRO over CreBNN", "credro", "crebnn"),
)
"""What the paper claims."""
REGIMES = (
    Claim("CVaR training, credal set", "credro", "crewra", (False, False)),
    Claim("CVaR training, point prediction", "en-dro", "de", (False, False)),
    Claim("calibration of CreDRO", "credro", "credro", (True, False)),
    Claim("calibration of CreWra", "crewra", "crewra", (True, False)),
)
"""What depends on how well members fit and generalise. How well they do is told by the first claim's better method."""
CORRUPTED = {
    "fashion": (FASHION.with_(ood=(), corruptions=CIFAR10_C.corruptions, corrupted=500),),
    "features": (FEATURES.with_(ood=(), corruptions=CIFAR10_C.corruptions, corrupted=500),),
    "cpu": (CPU.with_(ood=(), corruptions=CIFAR10_C.corruptions, corrupted=500),),
    "demo": (DEMO.with_(ood=(), corruptions=CIFAR10_C.corruptions, severities=(1, 2, 3, 4, 5), corrupted=500),),
    "paper": (CIFAR10_C, CIFAR100_C),
}
MEDICAL = {"fashion": (BREAKHIS, HEART), "cpu": (BREAKHIS, HEART), "paper": (CAMELYON,)}

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment(
            "main", "OOD detection by all methods", ("auroc", "accuracy", "claims"), claims=CLAIMS, calibrated=True
        ),
        Experiment("members", "Accuracy of every member of every method", ("members",)),
        Experiment("complexity", "Time and memory of every method", ("complexity",)),
        Experiment(
            "sizes",
            "Ensembles of 5, 10, 15 and 20",
            ("auroc_by_variant", "claims"),
            ("de", "crewra", "creens", "en-dro", "credro", "credro-hull"),
            tuple(Variant(f"M = {m}", members=m) for m in (5, 10, 15, 20)),
            ("sizes",),
            claims=CLAIMS,
        ),
        Experiment("densities", "Densities of EU, in distribution and out of it", (), figures=("densities",)),
        Experiment(
            "delta",
            "The smallest CVaR level delta_G",
            ("auroc_by_variant",),
            ("credro",),
            tuple(Variant(f"delta_G = {d}", {"delta_g": d}) for d in (0.5, 0.6, 0.7, 0.8, 0.9)),
            ("pil",),
        ),
        Experiment(
            "spacing",
            "How the CVaR levels are spread",
            ("auroc_by_variant",),
            ("credro",),
            tuple(Variant(s, {"spacing": s}) for s in ("uniform", "exponential", "logarithmic")),
        ),
        Experiment("sets", "Box against hull", ("sets",), ("crewra", "creens", "credro", "credro-hull")),
        Experiment(
            "noise",
            "Symmetric label noise",
            ("auroc_by_variant", "claims", "members"),
            variants=tuple(Variant(f"noise {r:.0%}", noise=r) for r in (0.0, 0.1, 0.2)),
            benchmarks={"fashion": (NOISY,)},
            claims=CLAIMS,
        ),
        Experiment(
            "corrupted",
            "15 corruptions at 5 severities",
            ("severities",),
            figures=("severities",),
            benchmarks=CORRUPTED,
        ),
        Experiment(
            "medical",
            "Selective prediction on medical data",
            ("rejection",),
            figures=("rejection", "right_wrong"),
            benchmarks=MEDICAL,
        ),
        Experiment("tightness", "Interval length against time", ("tightness",), slsqp=100),
        Experiment(
            "regimes",
            "When does CreDRO help, when calibration",
            ("regimes",),
            ("de", "crewra", "en-dro", "credro"),
            tuple(
                Variant(f"{n:.0%} / {e:.0%}", changes={"samples": n, "epochs": e})
                for n, e in product((0.25, 0.5, 1.0), (0.2, 0.5, 1.0))
            ),
            ("regimes",),
            claims=REGIMES,
            calibrated=True,
        ),
        Experiment("exact", "What exactness changes", ("exact",), ("crewra", "credro"), slsqp=1000),
    )
}
