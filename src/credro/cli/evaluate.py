"""``credro evaluate``."""

from __future__ import annotations

import csv
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli import _inputs, _readers
from credro.cli._inputs import Measured, named_arrays, npy
from credro.cli._wording import tell
from credro.cli.options import Device, Misuse, Root, at_least, check_device, one_of, status

if TYPE_CHECKING:
    from credro.evaluation import Evaluation, RegressionEvaluation


def evaluate(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN", hidden=True, show_default=False)] = None,
    data: _inputs.IdSet = None,
    split: _inputs.Split = None,
    ood: _inputs.OodSets = None,
    methods: Annotated[str | None, typer.Option(metavar="A,B", help="Only these methods. Default: all.")] = None,
    limit: _inputs.Limit = None,
    label: _inputs.LabelColumn = None,
    on_error: _readers.Skips = "stop",
    seen: _inputs.Seen = "drop",
    probs: _inputs.Probs = None,
    labels: Annotated[Path | None, typer.Option(metavar="NPY", help="Its labels (N,).")] = None,
    ood_probs: _inputs.OodProbs = None,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON; - for standard output.")
    ] = None,
    csv_: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write everything as CSV; - for standard output.")
    ] = None,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Measure accuracy, calibration and how well doubt works.

    Every method that can read a run's members is a row of two tables, in per cent.
    First accuracy, calibration (ECE) and OOD detection: AUROC is the chance that an
    OOD sample has a larger epistemic uncertainty (EU) than an ID sample. Then what
    EU, total uncertainty and 1 - max p are worth for finding errors: AUROC of wrong
    against right, area under accuracy-rejection, accuracy of the most certain 90 %.

    \b
    Examples:
      credro evaluate RUN --ood svhn --ood cifar100
      credro evaluate runs/de runs/credro --ood corrupt:gaussian_noise:3
      credro evaluate RUN --data new.csv --label outcome --json result.json
      credro evaluate --probs p.npy --labels y.npy --ood-probs letters=q.npy
    """
    if (probs is None) != (labels is None):
        raise Misuse("--probs and --labels go together")
    if not runs and probs is None:
        raise Misuse("name a RUN, or give --probs and --labels of your own ensemble; see credro evaluate --help")
    if ood and not runs:
        raise Misuse("--ood needs a RUN to predict it; --ood-probs NAME=FILE.npy is for your own ensemble")
    if ood_probs and probs is None:
        raise Misuse("--ood-probs goes with --probs, your own ensemble; --ood is for a RUN")
    at_least(1, limit=limit)
    one_of("--seen", seen, _inputs.SEEN)
    one_of("--on-error", on_error, _readers.ON_ERROR)
    check_device(device)
    from credro.methods import METHODS
    from credro.training.run import Run

    named = _named(runs or [])
    configs = [Run(folder).config() for folder in runs or []]
    wanted = [m.strip() for m in methods.split(",")] if methods else None
    for method in wanted or []:
        one_of("--methods", method, [*METHODS, *(str(config.method["name"]) for config in configs)])
    kinds = {bool(config.classes) for config in configs}
    if len(kinds) > 1:
        raise Misuse("these runs are of both kinds: measure classes and regressions one after the other")
    measured = Measured(data, split, ood or [], limit, label, on_error, root)
    if kinds == {False}:
        if probs is not None or ood or csv_ is not None:
            raise Misuse("--probs, --ood and --csv are for classes, and these runs are regressions")
        found: Any = [_regression(run, wanted, measured, seen, device) for run in named]
        _say_regression(found, to_terminal=str(json_) != "-")
    else:
        with status() as say:
            found = [_run(run, wanted, measured, seen, device, say) for run in named]
            if probs is not None and labels is not None:
                found.append(_own(probs, labels, ood_probs or [], wanted))
        if not any(evaluation.results for evaluation in found):
            raise Misuse(f"--methods {methods}: none of them reads what is given; leave it out to see those that do")
        _say(found, to_terminal=Path("-") not in (json_, csv_))
    if json_ is not None:
        _write(json_, lambda file: file.write(json.dumps([e.to_json() for e in found], indent=2) + "\n"))
    if csv_ is not None:
        _write(csv_, lambda file: _rows(file, found))


def _named(runs: list[Path]) -> list[tuple[str, Path]]:
    """Runs by the names of their folders, or by the whole path where these are the same."""
    names = [run.name for run in runs]
    return [(str(r) if names.count(r.name) > 1 or not r.name else r.name, r) for r in runs]


def _run(
    named: tuple[str, Path],
    wanted: list[str] | None,
    measured: Measured,
    seen: str,
    device: str,
    say: Callable[[str], None],
) -> Evaluation:
    from credro.ensemble import load
    from credro.evaluation import SeenWarning
    from credro.evaluation import evaluate as measure

    name, folder = named
    say(f"{name}: loading")
    ensemble = load(folder, device=device)
    known, ood = measured.both(ensemble)
    readable = None if wanted is None else [m for m in wanted if m in ensemble.readers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeenWarning)  # they are among the notes, which are printed with the run's name
        return measure(ensemble, known, ood, readable, name=name, seen=seen, say=lambda text: say(f"{name}: {text}"))


def _own(probs: Path, labels: Path, ood: list[str], wanted: list[str] | None) -> Evaluation:
    from credro.evaluation import evaluate as measure
    from credro.methods import of_probabilities

    far = named_arrays(ood)
    readable = None if wanted is None else [m for m in wanted if m in of_probabilities()]
    return measure(npy(probs), npy(labels), far, readable, name=probs.stem)


def _regression(
    named: tuple[str, Path], wanted: list[str] | None, measured: Measured, seen: str, device: str
) -> RegressionEvaluation:
    from credro.ensemble import load
    from credro.evaluation import SeenWarning, evaluate_regression

    ensemble = load(named[1], device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeenWarning)
        return evaluate_regression(ensemble, measured.known(ensemble), wanted, name=named[0], seen=seen)


def _say(found: list[Evaluation], *, to_terminal: bool) -> None:
    """Notes and warnings to standard error, the tables to standard output unless a program reads that."""
    from credro.evaluation import best_score, errors_table, results_table

    for evaluation in found:
        tell((*evaluation.notes, *evaluation.warnings), evaluation.name)
    if to_terminal:
        measured = [evaluation for evaluation in found if evaluation.results]
        typer.echo(f"{_id_sets(found)}\n\n{results_table(measured)}")
        typer.echo("\nFinding errors: AUROC, area under accuracy-rejection, accuracy at 90 % coverage\n")
        typer.echo(f"{errors_table(measured)}\n\n{best_score(measured)}")


def _say_regression(found: list[RegressionEvaluation], *, to_terminal: bool) -> None:
    from credro.evaluation import regression_table

    for evaluation in found:
        tell(evaluation.notes, evaluation.name)
    if to_terminal:
        typer.echo(f"{_id_sets(found)}\n\n{regression_table(found)}")


def _id_sets(found: list[Any]) -> str:
    return "\n".join(dict.fromkeys(f"ID: {e.data}, {e.samples:,} samples" for e in found))


def _rows(file: Any, found: list[Evaluation]) -> None:
    from credro.evaluation import csv_rows

    header, rows = csv_rows(found)
    csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _write(path: Path, write: Callable[[Any], Any]) -> None:
    if str(path) == "-":
        write(sys.stdout)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        write(file)
    print(f"wrote {path}", file=sys.stderr)
