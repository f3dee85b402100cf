"""``credro report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli import _inputs, _readers
from credro.cli._inputs import Measured, named_arrays, npy
from credro.cli._wording import tell
from credro.cli.options import Device, Misuse, Root, at_least, check_device, one_of, status

if TYPE_CHECKING:
    from credro.data import Data


def report(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", hidden=True, show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default: RUN/report.html, or report.html without a run.")
    ] = None,
    data: _inputs.IdSet = None,
    split: _inputs.Split = None,
    ood: _inputs.OodSets = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the members by another method, trained the same way.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without the temperatures of a calibrated run.")] = False,
    limit: _inputs.Limit = None,
    seen: _inputs.Seen = "drop",
    label: _inputs.LabelColumn = None,
    on_error: _readers.Skips = "stop",
    probs: _inputs.Probs = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="NPY", help="Its labels (N,); or --data, whose samples are then shown.")
    ] = None,
    ood_probs: _inputs.OodProbs = None,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Write one HTML page about a run, to open anywhere.

    What is against its figures, in red; a summary in words, densities of epistemic
    uncertainty, accuracy under rejection with a slider, calibration, samples with
    their intervals, confusions, and tables of every method and member.

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
    if probs is not None and (labels is None) == (data is None):
        raise Misuse("--probs needs --labels, or --data with the samples and their labels")
    at_least(1, limit=limit)
    check_device(device)
    one_of("--seen", seen, _inputs.SEEN)
    one_of("--on-error", on_error, _readers.ON_ERROR)
    from credro.ensemble import load
    from credro.methods import METHODS
    from credro.report.page.gather import gather
    from credro.report.page.write import write_page

    if method is not None:
        one_of("--method", method, METHODS)
    target = out or (Path("report.html") if run is None else run / "report.html")
    with status() as say:
        if run is not None:
            say("loading")
            ensemble = load(run, method=method, device=device)
            if ensemble.regression:
                raise Misuse(f"{run} is a regression, and the page is about classes: credro evaluate measures it")
            known, far = Measured(data, split, ood or [], limit, label, on_error, root).both(ensemble)
            found = gather(ensemble, known, ood=far, plain=plain, say=say, seen=seen)
        else:
            own = Path(str(probs))
            given = named_arrays(ood_probs or [])
            found = gather(npy(own), _truth(labels, data, split, label, root), ood=given, method=method, name=own.stem)
        write_page(target, found)
    tell(found.against)
    typer.echo(f"report: {target} ({target.stat().st_size / 1024:,.0f} KiB)")


def _truth(
    labels: Path | None, data: str | None, split: str | None, label: str | None, root: Path | None
) -> Data | Any:
    """The labels of somebody's own ensemble, or the samples that have them."""
    from credro.data.again import some_split

    if labels is not None:
        return npy(labels)
    return some_split(str(data), split, root, {} if label is None else {"label": label})
