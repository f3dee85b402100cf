"""``credro report``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from credro.cli.options import Device, Misuse, Root, at_least, check_device, one_of, status

SEEN = ("drop", "keep")


def report(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", hidden=True, show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default: RUN/report.html, or report.html without a run.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="ID set. Default: the one the run was trained on.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its split. Default: test, or val; all of a file without.")
    ] = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="OOD set, folder or file (NAME=PATH), or corrupt:fog:3; repeat it."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the members by another method of their training rule.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without the temperatures of a calibrated run.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many samples of each set, by a seeded shuffle.")
    ] = None,
    seen: Annotated[
        str, typer.Option(metavar="drop|keep", help="Samples that the run was trained on: leave out, or count.")
    ] = "drop",
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Label column of a table.")] = None,
    on_error: Annotated[
        str, typer.Option(metavar="stop|skip", help="Image files that cannot be read: stop, or leave them out.")
    ] = "stop",
    probs: Annotated[
        Path | None, typer.Option(metavar="NPY", help="Your own ensemble: probabilities (M, N, C).")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="NPY", help="Its labels (N,); or --data, whose samples are then shown.")
    ] = None,
    ood_probs: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NPY", help="Its probabilities on an OOD set; repeat it.")
    ] = None,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Write one HTML page about a run, to open anywhere.

    What is against its figures, in red; a summary in words, densities of epistemic
    uncertainty, accuracy under rejection with a slider, calibration, samples with
    their intervals, confusions, and tables of every reading and member.

    \b
    Examples:
      credro report RUN --ood svhn --ood corrupt:fog:3
      credro report RUN --data new.csv --label outcome --out new.html
      credro report --probs p.npy --labels y.npy --ood-probs letters=q.npy
    """
    if (run is None) == (probs is None):
        either = "not both" if run is not None else "see credro report --help"
        raise Misuse(f"name a RUN, or give --probs and --labels of your own ensemble; {either}")
    if probs is not None and ood:
        raise Misuse("--ood needs a RUN to predict it; --ood-probs NAME=FILE.npy is for your own ensemble")
    if run is not None and (labels or ood_probs):
        raise Misuse("--labels and --ood-probs go with --probs, your own ensemble; a RUN takes --data and --ood")
    if probs is not None and (limit or plain):
        raise Misuse("--limit and --plain are for a RUN; with --probs give the arrays that are meant")
    at_least(1, limit=limit)
    check_device(device)
    one_of("--seen", seen, SEEN)
    one_of("--on-error", on_error, ("stop", "skip"))
    if method is not None:
        from credro.methods import METHODS

        one_of("--method", method, METHODS)
    with status() as say:
        if run is not None:
            target = out or run / "report.html"
            reading = Reading(data, split, ood or [], limit, label, on_error, root)
            against = _of_run(target, run, say, reading, method, plain, seen, device)
        else:
            target = out or Path("report.html")
            against = _own(target, Path(str(probs)), labels, ood_probs or [], method, data, split, label, root)
    for text in against:
        print(f"note: {text}", file=sys.stderr)
    typer.echo(f"report: {target} ({target.stat().st_size / 1024:,.0f} KiB)")


@dataclass(frozen=True)
class Reading:
    """The options of ``report`` that say what is read for a run."""

    data: str | None
    split: str | None
    ood: list[str]
    limit: int | None
    label: str | None
    on_error: str
    root: Path | None


def _of_run(
    out: Path,
    run: Path,
    say: Callable[[str], None],
    reading: Reading,
    method: str | None,
    plain: bool,
    seen: str,
    device: str,
) -> list[str]:
    """Write the report on a run; what is against it."""
    from credro.cli.inputs import read_id, read_ood
    from credro.ensemble import load
    from credro.report.page.gather import gather
    from credro.report.page.write import write_page

    say("loading")
    ensemble = load(run, method=method, device=device)
    if not ensemble.classes:
        raise Misuse(f"{run} predicts numbers, and the page is about classes: credro evaluate measures it")
    r = reading
    known = read_id(ensemble, r.data, r.split, r.root, first=r.limit, label=r.label, on_error=r.on_error)
    sets = read_ood(ensemble, r.ood, known, r.root, first=r.limit, on_error=r.on_error)
    found = gather(ensemble, known, ood=sets, plain=plain, say=say, seen=seen)
    write_page(out, found)
    return found.against


def _own(
    out: Path,
    probs: Path,
    labels: Path | None,
    ood: list[str],
    method: str | None,
    data: str | None,
    split: str | None,
    label: str | None,
    root: Path | None,
) -> list[str]:
    """Write the report on the probabilities of somebody's own ensemble."""
    from credro.cli.inputs import named_arrays, npy
    from credro.data.again import some_split
    from credro.report.page.gather import gather
    from credro.report.page.write import write_page

    if (labels is None) == (data is None):
        raise Misuse("--probs needs --labels, or --data with the samples and their labels")
    strangers = named_arrays(ood)
    if labels is not None:
        truth: Any = npy(labels)
    else:
        truth = some_split(str(data), split, root, {} if label is None else {"label": label})
    found = gather(npy(probs), truth, ood=strangers, method=method, name=probs.stem)
    write_page(out, found)
    return found.against
