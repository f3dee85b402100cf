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

from credro.cli import readers
from credro.cli.options import Device, Misuse, Root, at_least, check_device, one_of, status

if TYPE_CHECKING:
    from credro.assess import Assessment


def evaluate(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN", hidden=True, show_default=False)] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="ID set. Default: the one the run was trained on.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its split. Default: test, or val; all of a file without.")
    ] = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="OOD set, folder or file, or corrupt:fog:3; repeat it."),
    ] = None,
    methods: Annotated[str | None, typer.Option(metavar="A,B", help="Only these methods. Default: all.")] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many samples of each set, by a seeded shuffle.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Label column of a table.")] = None,
    on_error: readers.OnError = None,
    seen: Annotated[
        str, typer.Option(metavar="drop|keep", help="Samples that the run was trained or calibrated on.")
    ] = "drop",
    probs: Annotated[
        Path | None, typer.Option(metavar="NPY", help="Your own ensemble: probabilities (M, N, C).")
    ] = None,
    labels: Annotated[Path | None, typer.Option(metavar="NPY", help="Its labels (N,).")] = None,
    ood_probs: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NPY", help="Its probabilities on an OOD set; repeat it.")
    ] = None,
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

    Every method that can read a run's members is a line of two tables, in per cent.
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
    one_of("--seen", seen, ("drop", "keep"))
    one_of("--on-error", on_error or "stop", ("stop", "skip"))
    check_device(device)
    from credro.training.run import Run

    wanted = [m.strip() for m in methods.split(",")] if methods else None
    _check_methods(wanted)
    if runs and not any(Run(run).config()["classes"] for run in runs):
        if probs is not None or ood or csv_ is not None:
            raise Misuse("--probs, --ood and --csv are for classes; these runs predict numbers")
        _numbers(runs, wanted, data, split, limit, label, seen, json_, root, device)
        return
    with status() as say:
        common: dict[str, Any] = {"data": data, "split": split, "ood": ood or [], "limit": limit, "label": label}
        common |= {"seen": seen, "on_error": on_error or "stop"}
        found = [_run(run, say, wanted, root=root, device=device, **common) for run in _named(runs or [])]
        if probs is not None and labels is not None:
            found.append(_own(probs, labels, ood_probs or [], wanted))
    if not any(a.lines for a in found):
        raise Misuse(f"--methods {methods}: none of them reads what is given; leave it out to see those that do")
    _print(found, to_terminal=Path("-") not in (json_, csv_))
    if json_ is not None:
        _write(json_, lambda file: file.write(json.dumps([a.to_dict() for a in found], indent=2) + "\n"))
    if csv_ is not None:
        _write(csv_, lambda file: _rows(file, found))


def _numbers(
    runs: list[Path],
    wanted: list[str] | None,
    data: str | None,
    split: str | None,
    limit: int | None,
    label: str | None,
    seen: str,
    json_: Path | None,
    root: Path | None,
    device: str,
) -> None:
    """The table of runs that predict numbers."""
    from credro.assess import SeenWarning, assess_numbers, number_layout
    from credro.cli.inputs import read_id
    from credro.ensemble import load

    found = []
    for name, folder in _named(runs):
        ensemble = load(folder, device=device)
        known = read_id(ensemble, data, split, root, first=limit, label=label)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeenWarning)
            found.append(assess_numbers(ensemble, known, wanted, name=name, seen=seen))
        for note in found[-1].notes:
            print(f"note: {name}: {note}", file=sys.stderr)
    if str(json_) != "-":
        typer.echo(f"ID: {found[0].data}, {found[0].samples:,} samples\n\n{number_layout(found)}")
    if json_ is not None:
        _write(json_, lambda file: file.write(json.dumps([a.to_dict() for a in found], indent=2) + "\n"))


def _named(runs: list[Path]) -> list[tuple[str, Path]]:
    """Runs by the names of their folders, or by the whole path where these are the same."""
    names = [run.name for run in runs]
    return [(str(r) if names.count(r.name) > 1 or not r.name else r.name, r) for r in runs]


def _check_methods(wanted: list[str] | None) -> None:
    from credro.methods import METHODS

    for method in wanted or []:
        one_of("--methods", method, METHODS)


def _run(
    named: tuple[str, Path],
    say: Callable[[str], None],
    wanted: list[str] | None,
    *,
    data: str | None,
    split: str | None,
    ood: list[str],
    limit: int | None,
    label: str | None,
    seen: str,
    on_error: str,
    root: Path | None,
    device: str,
) -> Assessment:
    from credro.assess import SeenWarning, assess
    from credro.cli.inputs import read_id, read_ood
    from credro.ensemble import load
    from credro.methods import reading

    name, folder = named
    say(f"{name}: loading")
    ensemble = load(folder, device=device)
    known = read_id(ensemble, data, split, root, first=limit, label=label, on_error=on_error)
    sets = read_ood(ensemble, ood, known, root, first=limit, on_error=on_error)
    readable = None if wanted is None else [m for m in wanted if m in reading(ensemble.rule)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeenWarning)  # they are among the notes, which are printed with the run's name
        return assess(ensemble, known, sets, readable, name=name, seen=seen, say=lambda text: say(f"{name}: {text}"))


def _own(probs: Path, labels: Path, ood: list[str], wanted: list[str] | None) -> Assessment:
    from credro.assess import OF_PROBABILITIES, assess_probs
    from credro.cli.inputs import named_arrays, npy

    strangers = named_arrays(ood)
    readable = None if wanted is None else [m for m in wanted if m in OF_PROBABILITIES]
    return assess_probs(npy(probs), npy(labels), strangers, readable, name=probs.stem)


def _print(found: list[Assessment], *, to_terminal: bool) -> None:
    """Warnings to standard error, the tables to standard output unless a program reads that."""
    from credro.assess import error_layout, layout, worth

    for a in found:
        for text in (*a.notes, *a.warnings):
            print(f"note: {a.name}: {text}", file=sys.stderr)
    if to_terminal:
        for what in dict.fromkeys(f"{a.data}, {a.samples:,} samples" for a in found):
            typer.echo(f"ID: {what}")
        measured = [a for a in found if a.lines]
        typer.echo("\n" + layout(measured))
        typer.echo("\nFinding errors: AUROC, area under accuracy-rejection, accuracy at 90 % coverage\n")
        typer.echo(error_layout(measured) + "\n\n" + worth(measured))


def _rows(file: Any, found: list[Assessment]) -> None:
    from credro.assess import flat

    header, rows = flat(found)
    csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _write(path: Path, write: Callable[[Any], Any]) -> None:
    if str(path) == "-":
        write(sys.stdout)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        write(file)
    print(f"wrote {path}", file=sys.stderr)
