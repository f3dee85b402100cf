"""What an experiment is: data. ``EXPERIMENTS`` is the table of all of them; ``runner`` executes any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from credro.experiments.worlds import (
    BREAKHIS,
    CAMELYON,
    CIFAR10_C,
    CIFAR100_C,
    CPU,
    FASHION,
    HEART,
    NOISY,
    WORLDS,
    World,
)
from credro.methods import METHODS, Method, make, options, reading

TEN = tuple(METHODS)
PAIRS = ("de", "crewra", "en-dro", "credro")
"""Point and credal read-outs of the two training rules that the paper's claim is about."""
PUBLISHED: Mapping[str, Mapping[str, Any]] = {"crebnn": {"kl_weight": 0.005}}
"""What methods are given in every experiment: the weight of the KL in CreBNN's published runs, 1e-7 of its sum at
50,000 samples. Under the full evidence bound, our default, small networks do not fit."""


@dataclass(frozen=True)
class Variant:
    """One point of an experiment's grid.

    options: of those methods that have them. noise: share of training labels replaced. changes: of the world; the
    ``samples`` and ``epochs`` as shares of its own. members: another size of the ensemble.
    """

    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    noise: float = 0.0
    changes: Mapping[str, Any] = field(default_factory=dict)
    members: int | None = None


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper (or ours).

    worlds: by preset, where it does not take place in the preset's main one. calibrated: whether methods are also read
    with a temperature per member. layouts: names in ``layouts.LAYOUTS``, what is made of the readings.
    slsqp: so many samples of each set are also measured by SciPy's SLSQP, as the paper does.
    """

    name: str
    title: str
    layouts: tuple[str, ...]
    methods: tuple[str, ...] = TEN
    variants: tuple[Variant, ...] = (Variant(),)
    worlds: Mapping[str, tuple[World, ...]] = field(default_factory=dict)
    calibrated: bool = False
    slsqp: int = 0

    def places(self, preset: str) -> tuple[World, ...]:
        """The worlds it takes place in under a preset."""
        return self.worlds.get(preset, (WORLDS[preset],))


@dataclass(frozen=True)
class Cell:
    """One ensemble to train, and the methods that read it."""

    world: World
    variant: Variant
    seed: int
    members: int
    methods: tuple[Method, ...]  # all of one training rule

    @property
    def trainer(self) -> Method:
        """The first method of the training rule: what the run is recorded under, whoever reads it."""
        rule = self.methods[0].rule
        first = make(reading(rule)[0])
        return Method(first.name, rule, first.readout)

    @property
    def key(self) -> str:
        """Name of its run's folder: cells with equal keys are one and the same run, in whatever experiments."""
        rule = self.methods[0].rule.config()
        parts = [self.world.name, rule.pop("rule")]
        default = make(self.methods[0].name).rule.config()
        parts += [f"{k}-{v}" for k, v in rule.items() if v != default[k]]
        parts += [f"{k}-{v}" for k, v in self.variant.changes.items() if v != 1.0]
        parts += [f"noise-{self.variant.noise:g}"] if self.variant.noise else []
        return "_".join([*parts, f"m{self.members}", f"run{self.seed}"])


def cells(experiment: Experiment, preset: str, runs: int | None = None) -> Iterator[Cell]:
    """Everything the experiment needs trained, run by run, so that an interrupted one has whole runs first."""
    for world in experiment.places(preset):
        for seed in range(runs or world.runs):
            for variant in experiment.variants:
                place = world.with_(**dict(variant.changes))
                members = variant.members or world.members
                by_rule: dict[Any, list[Method]] = {}
                for name in experiment.methods:
                    asked = {k: v for k, v in variant.options.items() if k in options(name)}
                    method = make(name, **{**PUBLISHED.get(name, {}), **asked})
                    by_rule.setdefault(str(method.rule.config()), []).append(method)
                for methods in by_rule.values():
                    yield Cell(place, variant, seed, members, tuple(methods))


def _sizes(*sizes: int) -> tuple[Variant, ...]:
    return tuple(Variant(f"M = {m}", members=m) for m in sizes)


def _grid(samples: tuple[float, ...], epochs: tuple[float, ...]) -> tuple[Variant, ...]:
    """Shares of the world's own samples and epochs."""
    return tuple(Variant(f"{n:.0%} / {e:.0%}", changes={"samples": n, "epochs": e}) for n in samples for e in epochs)


CORRUPTED = {
    "fashion": (FASHION.with_(ood=(), corruptions=CIFAR10_C.corruptions, corrupted=500),),
    "cpu": (CPU.with_(ood=(), corruptions=CIFAR10_C.corruptions, corrupted=500),),
    "paper": (CIFAR10_C, CIFAR100_C),
}
MEDICAL = {"fashion": (BREAKHIS, HEART), "cpu": (BREAKHIS, HEART), "paper": (CAMELYON,)}

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment("main", "OOD detection by all ten methods", ("auroc", "accuracy", "claims"), calibrated=True),
        Experiment("members", "Accuracy of every member of every method", ("members",)),
        Experiment("complexity", "Time and memory of every method", ("complexity",)),
        Experiment(
            "sizes",
            "Ensembles of 5, 10, 15 and 20",
            ("auroc_by_variant", "claims", "sizes_figure"),
            ("de", "crewra", "creens", "en-dro", "credro", "credro-hull"),
            _sizes(5, 10, 15, 20),
        ),
        Experiment("densities", "Densities of EU, in distribution and out of it", ("densities",)),
        Experiment(
            "delta",
            "The smallest share delta_G",
            ("auroc_by_variant", "pil_densities"),
            ("credro",),
            tuple(Variant(f"delta_G = {d}", {"delta_g": d}) for d in (0.5, 0.6, 0.7, 0.8, 0.9)),
        ),
        Experiment(
            "spacing",
            "How the shares are spread",
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
            worlds={"fashion": (NOISY,)},
        ),
        Experiment(
            "corrupted",
            "15 corruptions at 5 severities",
            ("severities", "severities_figure"),
            worlds=CORRUPTED,
        ),
        Experiment(
            "medical",
            "Selective prediction on medical data",
            ("rejection", "rejection_figure", "right_wrong_densities"),
            worlds=MEDICAL,
        ),
        Experiment("tightness", "Interval length against time", ("tightness",), slsqp=100),
        Experiment(
            "regimes",
            "When does CreDRO help, when calibration",
            ("regimes", "regimes_figure"),
            PAIRS,
            variants=_grid((0.25, 0.5, 1.0), (0.2, 0.5, 1.0)),
            calibrated=True,
        ),
        Experiment("exact", "What exactness changes", ("exact",), ("crewra", "credro"), slsqp=1000),
    )
}
