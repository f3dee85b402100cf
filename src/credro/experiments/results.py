"""What is kept of an ensemble under a method: every sample's EU, so that tables and figures need no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeAlias

from torch import Tensor

from credro._records import Record
from credro.experiments._table import Number
from credro.experiments.benchmarks import title
from credro.experiments.spec import Claim, Experiment
from credro.metrics import AccuracyRejection, OODScores, accuracy_rejection, evaluate_ood
from credro.training.records import MemberRecord

TEST = "test"
"""The ID set's name among the sets of a result."""
KINDS = {False: "plain", True: "calibrated"}
"""How a table calls results without and with temperatures."""


@dataclass(frozen=True, kw_only=True)
class Facts(Record):
    """What is known of one ensemble under one method, but for its samples.

    variant: its label in the experiment at hand. run: the seed. accuracy to member_accuracy: of the test set, which
    has so many samples. records: of the members' training. uq_seconds, slsqp_seconds: what the test set's uncertainty
    took, ours and SLSQP's; predict_seconds: what its prediction took.
    """

    method: str
    benchmark: str
    variant: str
    members: int
    run: int
    calibrated: bool
    samples: int
    accuracy: float
    ece: float
    nll: float
    brier: float
    member_accuracy: tuple[float, ...]
    temperatures: tuple[float, ...]
    records: tuple[MemberRecord, ...]
    weight_bytes: int
    predict_seconds: float
    uq_seconds: float
    slsqp_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Facts):
    """The facts, and the samples beside them.

    eu, pil: of each set (N,), the test set's under ``TEST``; pil is empty without a credal set. correct: (N,) of the
    test set. slsqp: of each set (n,), EU of its first samples by SciPy's SLSQP.
    """

    eu: dict[str, Tensor]
    pil: dict[str, Tensor]
    correct: Tensor
    slsqp: dict[str, Tensor] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The facts alone."""
        return Facts(**{f.name: getattr(self, f.name) for f in fields(Facts)}).to_json()

    @property
    def ood(self) -> list[str]:
        """Names of the OOD sets."""
        return [name for name in self.eu if name != TEST]

    @cached_property
    def scores(self) -> dict[str, OODScores]:
        """Of each OOD set, by EU."""
        return {name: evaluate_ood(self.eu[TEST], self.eu[name]) for name in self.ood}

    @property
    def mean_auroc(self) -> float:
        """The mean over the OOD sets, in per cent; NaN without any."""
        return 100 * sum(s.auroc for s in self.scores.values()) / len(self.ood) if self.ood else float("nan")

    @cached_property
    def curve(self) -> AccuracyRejection:
        """Accuracy of the test set, rejected by falling EU."""
        return accuracy_rejection(self.correct, self.eu[TEST])


Value: TypeAlias = Callable[[Result], float]
"""What a table's cell is the mean of, over the runs."""


@dataclass(frozen=True)
class Where:
    """Which results are meant; None: any."""

    method: str | None = None
    calibrated: bool = False
    variant: str | None = None
    benchmark: str | None = None

    def holds(self, result: Result) -> bool:
        """Whether ``result`` is one of them."""
        asked = ((self.method, result.method), (self.variant, result.variant), (self.benchmark, result.benchmark))
        return self.calibrated == result.calibrated and all(want in (None, have) for want, have in asked)


@dataclass(frozen=True)
class Results:
    """Every result of an experiment under a preset."""

    experiment: Experiment
    preset: str
    all: Sequence[Result]

    @cached_property
    def runs(self) -> int:
        """Repetitions."""
        return len({r.run for r in self.all})

    @cached_property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks."""
        return list(dict.fromkeys(r.benchmark for r in self.all))

    @property
    def ood(self) -> list[str]:
        """Names of the OOD sets, in the order in which their benchmark has them; corruptions in the file's."""
        named = [name for benchmark in self.experiment.places(self.preset) for name in benchmark.ood]
        return sorted(self.all[0].ood, key=lambda name: named.index(name) if name in named else len(named))

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Plain, and calibrated where the experiment asks for it."""
        return tuple(KINDS) if self.experiment.calibrated else (False,)

    def pick(self, where: Where) -> list[Result]:
        """Those that are meant, one per run."""
        return [r for r in self.all if where.holds(r)]

    def number(self, value: Value, where: Where, *, paper: float | None = None, digits: int = 1) -> Number:
        """Mean and standard deviation of ``value`` over the runs."""
        return Number.of([value(r) for r in self.pick(where)], paper=paper, digits=digits)

    def differences(self, claim: Claim, calibrated: tuple[bool, bool], variant: str) -> list[float]:
        """Points of mean AUROC by which ``better`` is better, in every run that has both."""
        better, other = (
            {r.run: r.mean_auroc for r in self.pick(Where(method, kind, variant))}
            for method, kind in zip((claim.better, claim.other), calibrated, strict=True)
        )
        return [better[run] - other[run] for run in better if run in other]

    def setting(self, benchmark: str | None = None) -> str:
        """A sentence for a table's note."""
        place = next(b for b in self.experiment.places(self.preset) if benchmark in (None, b.name))
        size = "all" if place.samples is None else f"{place.samples:,}"
        return (
            f"{title(place.data)}, {size} training samples, {place.network_name}, {place.recipe.epochs} epochs, "
            f"{self.runs} run{'s' if self.runs > 1 else ''}."
        )
