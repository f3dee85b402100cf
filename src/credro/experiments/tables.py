"""The tables as data: what stands in the rows and in the columns. ``TABLES`` has them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from credro.experiments import _values as values
from credro.experiments._paper import Asked, paper_value
from credro.experiments._table import Entry, Number, Table, best_in_columns
from credro.experiments._values import auroc
from credro.experiments.benchmarks import COLOUR, title
from credro.experiments.results import KINDS, TEST, Result, Results, Value, Where
from credro.experiments.spec import Claim, Variant
from credro.methods import label

AUROC = "AUROC in per cent, OOD is the positive class, the score is EU; mean ± standard deviation over the runs."
LARGE = "In brackets the paper's value: ResNet-18 on all of CIFAR-10, M = 20."
SMALL = "In brackets the paper's value at M = 5"


@dataclass(frozen=True)
class Column:
    """One number of every row."""

    title: str
    value: Value
    paper: Asked | None = None
    digits: int = 1

    def number(self, results: Results, where: Where, variant: Variant) -> Number:
        """That of the row about these results; beside plain ones stands the paper's value."""
        found = None
        if self.paper is not None and where.method is not None and not where.calibrated:
            asked = replace(self.paper, members=variant.members or self.paper.members)
            name, options = results.experiment.name, variant.options
            found = paper_value(name, where.method, asked, noise=variant.noise, options=options)
        paper = None if found is None else round(found, max(2, self.digits))
        return results.number(self.value, where, paper=paper, digits=self.digits)


@dataclass(frozen=True)
class TableSpec:
    """A table with a row per variant, kind and method, as far as the experiment has several of them.

    columns: by the results and the row's OOD set. title: the experiment's if not given. by_ood: whether there is a row
    for every OOD set. by_benchmark: whether there is a table for every benchmark. best: whether the best of each
    variant and kind is marked. only: methods that have such a result.
    """

    name: str
    note: str
    columns: Callable[[Results, str], list[Column]]
    title: str = ""
    by_ood: bool = False
    by_benchmark: bool = False
    best: bool = False
    only: Callable[[Result], bool] = lambda result: True

    def __call__(self, results: Results) -> list[Table]:
        """The tables of these results."""
        places = results.benchmarks if self.by_benchmark else [None]
        return [self._table(results, place) for place in places]

    def _table(self, results: Results, place: str | None) -> Table:
        experiment, sets = results.experiment, results.ood if self.by_ood else [""]
        several, kinds = len(experiment.variants) > 1, len(results.kinds) > 1
        rows: list[tuple[Entry, ...]] = []
        for variant, calibrated in product(experiment.variants, results.kinds):
            block: list[list[Entry]] = []
            for method, ood in product(experiment.compared, sets):
                where = Where(method, calibrated, variant.label, place)
                if any(map(self.only, results.pick(where))):
                    heads = [variant.label] * several + [label(method)] + [KINDS[calibrated]] * kinds
                    heads += [title(ood)] * self.by_ood
                    numbers = [c.number(results, where, variant) for c in self.columns(results, ood)]
                    block.append([*heads, *numbers])
            rows += best_in_columns(block) if self.best else map(tuple, block)
        named = [""] * several + ["method"] + ["as"] * kinds + ["OOD"] * self.by_ood
        named += [column.title for column in self.columns(results, sets[0])]
        name, note = self.name if place is None else f"{self.name}-{place}", f"{results.setting(place)} {self.note}"
        return Table(name, self.title or experiment.title, tuple(named), tuple(rows), note)


MEAN: Value = lambda r: r.mean_auroc  # noqa: E731 - a value beside the others
WORST = Column("worst member on its training data", values.worst_fit)
ACCURACY = Column("accuracy", lambda r: 100 * r.accuracy, Asked("accuracy", scale=100))


def _auroc(results: Results, _: str) -> list[Column]:
    sets = [Column(title(name), auroc(name), Asked("auroc", name)) for name in results.ood]
    return [*sets, Column("mean", MEAN)]


def _members(results: Results, _: str) -> list[Column]:
    count = max(r.members for r in results.all)
    each = [Asked("member_accuracy", members=count, member=i, scale=100) for i in range(count)]
    named = [Column(f"member {i + 1}", values.member(i), paper) for i, paper in enumerate(each)]
    return [*named, Column("ensemble", lambda r: 100 * r.accuracy)]


def _sets(_: Results, ood: str) -> list[Column]:
    return [
        Column("AUROC", auroc(ood), Asked("auroc", ood, 5)),
        Column("FPR95", lambda r: 100 * r.scores[ood].fpr95, Asked("fpr95", ood, 5)),
        Column("mean EU on ID", lambda r: float(r.eu[TEST].mean()), Asked("mean_eu", members=5), 3),
        Column("normalised gap", lambda r: r.scores[ood].gap, Asked("gap", ood, 5), 3),
    ]


def _mean(parts: list[Value]) -> Value:
    return lambda r: sum(value(r) for value in parts) / len(parts)


def exact_table(results: Results) -> list[Table]:
    """AUROC with exact entropies and with SLSQP's, on the same samples of the same networks."""
    errors: tuple[tuple[Value, int], ...] = (
        (values.slsqp_off(outside=False), 1),
        (values.slsqp_off(inside=False), 1),
        (lambda r: float(values.slsqp_errors(r).max()) if r.slsqp else values.NONE, 2),
    )
    rows: list[tuple[Entry, ...]] = []
    for method, exact in product(results.experiment.compared, (True, False)):
        where, parts = Where(method), [values.auroc_of_some(name, exact) for name in results.ood]
        row: list[Entry] = [label(method), "exact" if exact else "SLSQP"]
        row += [results.number(value, where, digits=2) for value in (*parts, _mean(parts))]
        row += ["0" if exact else results.number(value, where, digits=digits) for value, digits in errors]
        rows.append(tuple(row))
    sets = (*map(title, results.ood), "mean")
    columns = ("method", "entropies", *sets, "off by > 1e-3: ID, %", "OOD, %", "largest error, nats")
    note = f"{results.setting()} {AUROC} The first {results.experiment.slsqp:,} samples of each set."
    return [Table("exact", results.experiment.title, columns, tuple(rows), note)]


def regimes_table(results: Results) -> list[Table]:
    """Mean AUROC of every method, plain and calibrated, over fit and generalisation."""
    experiment = results.experiment
    told_by = experiment.claims[0].better
    pairs = list(product(results.kinds, experiment.compared))
    rows: list[tuple[Entry, ...]] = []
    for variant in experiment.variants:
        fits = [results.number(c.value, Where(told_by, variant=variant.label)) for c in (WORST, ACCURACY)]
        scores = [results.number(MEAN, Where(method, kind, variant.label)) for kind, method in pairs]
        rows.append((variant.label, *fits, *scores))
    names = (f"{label(method)} calibrated" if kind else label(method) for kind, method in pairs)
    columns = ("samples / epochs", "worst member, training", "accuracy", *names)
    note = f"{results.setting()} Fractions of those samples and epochs. Mean AUROC over the OOD sets, per cent."
    return [Table("regimes", experiment.title, columns, tuple(rows), note)]


def claims_table(results: Results) -> list[Table]:
    """Differences of mean AUROC within each run, and in how many runs they are positive."""
    experiment, several = results.experiment, len(results.experiment.variants) > 1
    rows: list[tuple[Entry, ...]] = []
    for variant, kind, claim in product(experiment.variants, results.kinds, experiment.claims):
        if {claim.better, claim.other} <= {*experiment.compared}:
            found = results.differences(claim, claim.calibrated or (kind, kind), variant.label)
            number = Number.of(found, paper=None if kind else paper_difference(claim, variant))
            head = [*([variant.label] if several else []), claim.text, contrast(claim), KINDS[kind]]
            rows.append((*head, number, f"{sum(d > 0 for d in found)} of {len(found)}"))
    note = (
        f"{results.setting()} Points of mean AUROC over the OOD sets, run by run. In brackets the paper's, over its "
        f"own five sets{'' if several else ', at M = 5'}."
    )
    columns = (*([""] if several else []), "claim", "difference", "as", "points", "positive in runs")
    return [Table("claims", "The paper's claims, within each run", columns, tuple(rows), note)]


def contrast(claim: Claim) -> str:
    """``CreDRO − CreWra``."""
    if claim.better == claim.other:
        return f"{label(claim.better)}: calibrated − plain"
    return f"{label(claim.better)} − {label(claim.other)}"


def paper_difference(claim: Claim, variant: Variant) -> float | None:
    """The same from the paper's tables of ensemble sizes and of label noise; None where they do not have both."""
    source, members = ("noise", None) if variant.noise else ("sizes", variant.members or 5)
    means = []
    for method in (claim.better, claim.other):
        found = [paper_value(source, method, Asked("auroc", s, members), noise=variant.noise) for s in COLOUR]
        known = [value for value in found if value is not None]
        if len(known) < len(found):
            return None
        means.append(sum(known) / len(known))
    return round(means[0] - means[1], 1)


_SPECS = (
    TableSpec("auroc", f"{AUROC} {LARGE}", _auroc, best=True),
    TableSpec(
        "accuracy",
        f"Accuracy and ECE (10 bins) in per cent. {LARGE}",
        lambda results, _: [
            ACCURACY,
            Column("ECE", lambda r: 100 * r.ece, Asked("ece", scale=100)),
            Column("NLL", lambda r: r.nll, digits=3),
            Column("Brier", lambda r: r.brier, digits=3),
            WORST,
        ],
        "Accuracy and calibration of the point prediction",
    ),
    TableSpec(
        "members",
        "Test accuracy in per cent; CVaR levels rise from delta_G to 1 with the number. In brackets the paper's value "
        "where it has as many members.",
        _members,
        "Accuracy of every member of every method",
    ),
    TableSpec(
        "complexity",
        "Training: the members' seconds added up, not the wall clock. In brackets the paper's, on one A100: ResNet-18, "
        "M = 5; its uncertainty is by SLSQP.",
        lambda results, _: [
            Column("training, s", lambda r: sum(m.seconds for m in r.records), Asked("training_seconds"), 0),
            Column("networks on the test set, s", lambda r: r.predict_seconds, Asked("inference_seconds"), 2),
            Column("uncertainty, s", lambda r: r.uq_seconds, Asked("uq_seconds"), 3),
            Column("weights, MiB", lambda r: r.weight_bytes / 2**20, digits=2),
        ],
    ),
    TableSpec("sets", f"Per cent; EU in nats. {SMALL} (its EU may be in bits).", _sets, by_ood=True),
    TableSpec(
        "severities",
        f"{AUROC} Mean over 15 corruptions of the test images.",
        lambda results, _: [Column(f"severity {s}", values.severity(s)) for s in range(1, 6)],
        by_benchmark=True,
        best=True,
    ),
    TableSpec(
        "rejection",
        "Per cent. Areas under the accuracy-rejection curve; rejected by falling EU.",
        lambda results, _: [
            ACCURACY,
            Column("area", lambda r: 100 * r.curve.area),
            Column("normalised area", lambda r: 100 * r.curve.normalised_area),
            Column("AUROC of errors", values.misclassification),
        ],
        by_benchmark=True,
        best=True,
    ),
    TableSpec(
        "tightness",
        f"Boxes only. {SMALL}: CIFAR-10, ResNet-18, SLSQP.",
        lambda results, _: [
            Column("interval length (PIL)", values.mean_pil, Asked("pil"), 4),
            Column("ours, s per 1,000", lambda r: 1000 * r.uq_seconds / r.samples, digits=4),
            # The paper's seconds are for 10,000 samples.
            Column("SLSQP, s per 1,000", values.slsqp_per_thousand, Asked("uq_seconds", scale=0.1), 2),
            Column("SLSQP off by > 1e-3, %", values.slsqp_off()),
        ],
        only=lambda result: bool(result.slsqp),
    ),
)
TABLES: dict[str, Callable[[Results], list[Table]]] = {
    **{spec.name: spec for spec in _SPECS},
    "auroc_by_variant": TableSpec(
        "auroc",
        f"{AUROC} In brackets the paper's value.",
        lambda results, _: [*_auroc(results, ""), ACCURACY, WORST],
        best=True,
    ),
    "exact": exact_table,
    "regimes": regimes_table,
    "claims": claims_table,
}
"""Every table: from the results of an experiment to what is written."""
