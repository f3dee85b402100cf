"""How readings become tables: one function a layout, and the dict of all of them (figures are next door)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from credro.experiments import figures, values
from credro.experiments.claims import claims_table
from credro.experiments.results import KINDS, Made, Results, paper_value
from credro.experiments.spec import Variant
from credro.experiments.tables import Entry, Table, best_in_columns
from credro.experiments.values import auroc, fact, mean_auroc, ood
from credro.report.style import NAMES

PAPER = "In brackets the paper's value: ResNet-18 on all of CIFAR-10, M = {}."
PERCENT = "AUROC in per cent, OOD is the positive class, the score is EU; mean ± deviation over the runs."
Rows = list[list[Entry]]
ERRORS = ((values.slsqp_off(outside=False), 1), (values.slsqp_off(inside=False), 1), (values.slsqp_worst, 2))


def auroc_table(results: Results, _: Path) -> Made:
    """Method against OOD set, plain and calibrated."""
    sets: list[str] = results.strangers()
    rows: list[tuple[Entry, ...]] = []
    for calibrated in results.kinds():
        block: Rows = []
        for method in results.experiment.methods:
            where = {"method": method, "calibrated": calibrated}
            row: list[Entry] = [NAMES[method], KINDS[calibrated]]
            for name in sets:
                paper = None if calibrated else paper_value("main", method=method, measure="auroc", set=name)
                row.append(results.number(auroc(name), where, paper=paper))
            block.append([*row, results.number(mean_auroc, where)])
        rows += best_in_columns(block)
    note = f"{results.setting()} {PERCENT} {PAPER.format(20)}"
    return _one("auroc", results.experiment.title, ("method", "as", *sets, "mean"), rows, note)


def accuracy_table(results: Results, _: Path) -> Made:
    """Accuracy, ECE, NLL and Brier score of the point prediction; training accuracy of the worst member."""
    rows: Rows = []
    for calibrated in results.kinds():
        for method in results.experiment.methods:
            where = {"method": method, "calibrated": calibrated}
            paper = {m: None if calibrated else _paper_share(method, m) for m in ("accuracy", "ece")}
            rows.append(
                [
                    NAMES[method],
                    KINDS[calibrated],
                    results.number(fact("accuracy", 100), where, paper=paper["accuracy"]),
                    results.number(fact("ece", 100), where, paper=paper["ece"]),
                    results.number(fact("nll"), where, digits=3),
                    results.number(fact("brier"), where, digits=3),
                    results.number(values.worst_fit, where),
                ]
            )
    columns = ("method", "as", "accuracy", "ECE", "NLL", "Brier", "worst member on its training data")
    note = f"{results.setting()} Accuracy and ECE (10 bins) in per cent. {PAPER.format(20)}"
    return _one("accuracy", "Accuracy and calibration of the point prediction", columns, rows, note)


def members_table(results: Results, _: Path) -> Made:
    """Test accuracy of every member, for each variant where there are several."""
    count, several = max(r.facts["members"] for r in results.readings), len(results.experiment.variants) > 1
    rows: Rows = []
    for variant in results.experiment.variants:
        for method in results.experiment.methods:
            where = {"method": method, "variant": variant.label}
            row: list[Entry] = [*([variant.label] if several else []), NAMES[method]]
            for i in range(count):
                keys = {"measure": "member_accuracy", "member": i, "members": count}
                paper = _in_percent(_paper_of(results, variant, method=method, **keys))
                row.append(results.number(values.member(i), where, paper=paper))
            rows.append([*row, results.number(fact("accuracy", 100), where)])
    columns = (*([""] if several else []), "method", *(f"member {i + 1}" for i in range(count)), "ensemble")
    note = (
        f"{results.setting()} Test accuracy in per cent; CreDRO's shares rise from delta_G to 1 with the number. In "
        "brackets the paper's value where it has as many members."
    )
    return _one("members", "Accuracy of every member of every method", columns, rows, note)


def complexity_table(results: Results, _: Path) -> Made:
    """Seconds and bytes, as recorded when each ensemble was trained and read."""
    parts: list[tuple[str, values.Value, str, int]] = [
        ("training, s", values.training_seconds, "training_seconds", 0),
        ("networks on the test set, s", fact("predict_seconds"), "inference_seconds", 2),
        ("uncertainty, s", fact("uq_seconds"), "uq_seconds", 3),
        ("weights, MiB", fact("weight_bytes", 2**-20), "", 2),
    ]
    rows: Rows = []
    for method in results.experiment.methods:
        row: list[Entry] = [NAMES[method]]
        for _title, value, measure, digits in parts:
            paper = paper_value("complexity", method=method, measure=measure)
            row.append(results.number(value, {"method": method}, paper=paper, digits=digits))
        rows.append(row)
    note = (
        f"{results.setting()} Training: the members' seconds added up, not the wall clock. In brackets the paper's, on "
        "one A100: ResNet-18, M = 5; its uncertainty is by SLSQP."
    )
    return _one("complexity", results.experiment.title, ("method", *(p[0] for p in parts)), rows, note)


def auroc_by_variant(results: Results, _: Path) -> Made:
    """Variant and method against OOD set."""
    sets: list[str] = results.strangers()
    rows: list[tuple[Entry, ...]] = []
    for variant in results.experiment.variants:
        block: Rows = []
        for method in results.experiment.methods:
            where = {"method": method, "variant": variant.label}
            row: list[Entry] = [variant.label, NAMES[method]]
            row += [
                results.number(
                    auroc(s), where, paper=_paper_of(results, variant, method=method, measure="auroc", set=s)
                )
                for s in sets
            ]
            others = (fact("accuracy", 100), values.worst_fit)
            block.append([*row, *(results.number(value, where) for value in (mean_auroc, *others))])
        rows += best_in_columns(block)
    columns = ("", "method", *sets, "mean", "accuracy", "worst member on its training data")
    note = f"{results.setting()} {PERCENT} In brackets the paper's value."
    return _one("auroc", results.experiment.title, columns, rows, note)


def sets_table(results: Results, _: Path) -> Made:
    """Box against hull on the same networks."""
    rows: Rows = []
    for method in results.experiment.methods:
        where = {"method": method}
        for name in results.strangers():
            known = {"method": method, "members": 5}
            paper = {m: paper_value("sets", measure=m, set=name, **known) for m in ("auroc", "fpr95", "gap")}
            eu = paper_value("sets", measure="mean_eu", **known)
            rows.append(
                [
                    NAMES[method],
                    name,
                    results.number(auroc(name), where, paper=paper["auroc"]),
                    results.number(ood("fpr95", name), where, paper=paper["fpr95"]),
                    results.number(values.mean_eu, where, paper=eu, digits=3),
                    results.number(ood("gap", name), where, paper=paper["gap"], digits=3),
                ]
            )
    columns = ("method", "OOD", "AUROC", "FPR95", "mean EU on ID", "normalised gap")
    note = f"{results.setting()} Per cent; EU in nats. In brackets the paper's value at M = 5 (its EU may be in bits)."
    return _one("sets", results.experiment.title, columns, rows, note)


def severities_table(results: Results, _: Path) -> Made:
    """AUROC at each severity, the mean over the corruptions."""
    tables = []
    for world in results.worlds:
        rows: Rows = []
        for method in results.experiment.methods:
            where = {"method": method, "world": world}
            rows.append([NAMES[method], *(results.number(values.severity(s), where) for s in range(1, 6))])
        columns = ("method", *(f"severity {s}" for s in range(1, 6)))
        note = f"{results.setting(world)} {PERCENT} Mean over 15 corruptions of the test images."
        tables.append(Table(f"severities-{world}", results.experiment.title, columns, best_in_columns(rows), note))
    return Made(tuple(tables))


def rejection_table(results: Results, _: Path) -> Made:
    """Areas under the accuracy-rejection curve."""
    tables = []
    parts = (fact("accuracy", 100), values.area, values.normalised_area, values.misclassification)
    for world in results.worlds:
        rows: Rows = []
        for method in results.experiment.methods:
            where = {"method": method, "world": world}
            rows.append([NAMES[method], *(results.number(value, where) for value in parts)])
        columns = ("method", "accuracy", "area", "normalised area", "AUROC of errors")
        note = f"{results.setting(world)} Per cent. Areas under the accuracy-rejection curve; rejected by falling EU."
        tables.append(Table(f"rejection-{world}", results.experiment.title, columns, best_in_columns(rows), note))
    return Made(tuple(tables))


def tightness_table(results: Results, _: Path) -> Made:
    """Interval length against the time that uncertainty takes, ours and SLSQP's, per 1,000 test samples."""
    rows: Rows = []
    for method in results.experiment.methods:
        where = {"method": method}
        if not any(r.slsqp for r in results.pick(where)):
            continue
        lengths = [paper_value("tightness", method=method, measure="pil", run=run) for run in range(3)]
        known = [length for length in lengths if length is not None]
        seconds = paper_value("tightness", method=method, measure="uq_seconds")  # for 10,000 samples
        rows.append(
            [
                NAMES[method],
                results.number(values.mean_pil, where, paper=round(mean(known), 4) if known else None, digits=4),
                results.number(values.ours_per_thousand, where, digits=4),
                results.number(values.slsqp_per_thousand, where, paper=seconds and round(seconds / 10, 1), digits=2),
                results.number(values.slsqp_off(), where),
            ]
        )
    columns = ("method", "interval length (PIL)", "ours, s per 1,000", "SLSQP, s per 1,000", "SLSQP off by > 1e-3, %")
    note = f"{results.setting()} Boxes only. In brackets the paper's value: CIFAR-10, ResNet-18, M = 5, SLSQP."
    return _one("tightness", results.experiment.title, columns, rows, note)


def exact_table(results: Results, _: Path) -> Made:
    """AUROC with exact entropies and with SLSQP's, on the same samples of the same networks."""
    names: list[str] = results.strangers()
    rows: Rows = []
    for method in results.experiment.methods:
        for title, exact in (("exact", True), ("SLSQP", False)):
            parts = [values.auroc_of_some(name, exact) for name in names]
            row: list[Entry] = [NAMES[method], title]
            row += [results.number(v, {"method": method}, digits=2) for v in (*parts, values.mean_of(parts))]
            for error, digits in ERRORS:
                row.append("0" if exact else results.number(error, {"method": method}, digits=digits))
            rows.append(row)
    columns = ("method", "entropies", *names, "mean", "off by > 1e-3: ID, %", "OOD, %", "largest error, nats")
    note = f"{results.setting()} {PERCENT} The first {results.experiment.slsqp:,} samples of each set."
    return _one("exact", results.experiment.title, columns, rows, note)


def regimes_table(results: Results, _: Path) -> Made:
    """What CreDRO adds to CreWra and EN-DRO to DE, plain and calibrated, over fit and generalisation."""
    rows: Rows = []
    for variant in results.experiment.variants:
        credro = {"variant": variant.label, "method": "credro"}
        row: list[Entry] = [variant.label, results.number(values.worst_fit, credro)]
        row.append(results.number(fact("accuracy", 100), credro))
        for calibrated in KINDS:
            for method in results.experiment.methods:
                where = {"variant": variant.label, "method": method, "calibrated": calibrated}
                row.append(results.number(mean_auroc, where))
        rows.append(row)
    names = [NAMES[m] for m in results.experiment.methods]
    columns = ("samples / epochs", "worst member, training", "accuracy", *names, *(f"{n} calibrated" for n in names))
    note = f"{results.setting()} Shares of those samples and epochs. Mean AUROC over the OOD sets, per cent."
    return _one("regimes", results.experiment.title, columns, rows, note)


def _one(name: str, title: str, columns: Iterable[str], rows: Iterable[Iterable[Entry]], note: str) -> Made:
    return Made((Table(name, title, tuple(columns), tuple(tuple(row) for row in rows), note),))


def _paper_share(method: str, measure: str) -> float | None:
    """The paper prints accuracy and ECE as shares; our tables are in per cent."""
    return _in_percent(paper_value("main", method=method, measure=measure))


def _in_percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)


def _paper_of(results: Results, variant: Variant, **keys: Any) -> float | None:
    keys |= variant.options
    if variant.members:
        keys["members"] = variant.members
    if results.experiment.name == "noise":
        keys["noise"] = variant.noise
    return paper_value(results.experiment.name, **keys)


Layout = Callable[[Results, Path], Made]
LAYOUTS: dict[str, Layout] = {
    "auroc": auroc_table,
    "accuracy": accuracy_table,
    "claims": claims_table,
    "members": members_table,
    "complexity": complexity_table,
    "auroc_by_variant": auroc_by_variant,
    "sets": sets_table,
    "severities": severities_table,
    "rejection": rejection_table,
    "tightness": tightness_table,
    "exact": exact_table,
    "regimes": regimes_table,
    "sizes_figure": figures.sizes,
    "densities": figures.densities,
    "pil_densities": figures.pil_densities,
    "severities_figure": figures.severities,
    "rejection_figure": figures.rejection,
    "right_wrong_densities": figures.right_wrong,
    "regimes_figure": figures.regimes,
}
"""Every layout: from results and a folder for figures to what was made."""
