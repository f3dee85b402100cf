"""``credro predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli import _readers
from credro.cli._inputs import Measured
from credro.cli._rows import Abstain, header, opened, rows, write_csv, write_json
from credro.cli._wording import tell
from credro.cli.options import Device, Misuse, Root, at_least, check_device, one_of

if TYPE_CHECKING:
    from credro.metrics import Threshold

NO_THRESHOLD = 3
"""Exit code where no threshold can be shown to hold the error."""


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", hidden=True)],
    format_: Annotated[
        str, typer.Option("--format", metavar="csv|json", help="JSON has the intervals of all classes.")
    ] = "csv",
    columns: Annotated[
        str, typer.Option(metavar="short|all", help="all: a CSV with p, lower and upper of every class.")
    ] = "short",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: standard output.")] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the members by another method, trained the same way.")
    ] = None,
    abstain_above: Annotated[
        float | None, typer.Option(metavar="X", help="Abstain where (epistemic) uncertainty is above this.")
    ] = None,
    max_error: Annotated[
        float | None, typer.Option(metavar="P", help="Abstain so that at most P of the answers are wrong ...")
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(metavar="DATA", help="... as shown on this labelled set, not trained on,")
    ] = None,
    held_out_split: Annotated[
        str | None, typer.Option(metavar="NAME", help="... its split (default: test, or val),")
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="P", help="... with this confidence.")] = 0.95,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to abstain by: epistemic, total or confidence (1 - max p). "
            "Default: total for --max-error, epistemic for --abstain-above.",
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Split of a named set.")] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Label column of a table: it is not a feature.")
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(metavar="stop|skip", help="Images that cannot be read: stop, or note each in a column 'error'."),
    ] = "stop",
    batch_size: Annotated[int, typer.Option(metavar="N", help="Samples at once.")] = 256,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Label new samples, with probability intervals and uncertainty.

    INPUT is one or more images, folders of images (at any depth), .npz (array x),
    .csv or .parquet tables, or the name of a set. Images are resized to what the
    run takes. A row per sample: label, its probability (mean, lower, upper),
    epistemic, aleatoric and total uncertainty (eu, au, tu), whether to abstain, and
    the classes that remain possible (maximality). Exit code 3: no threshold can be
    shown to hold --max-error, and every row abstains.

    \b
    Examples:
      credro predict RUN photos/ --out labels.csv
      credro predict RUN a.png b.png --format json
      credro predict RUN photos/ --columns all --out intervals.csv
      credro predict RUN new.csv --abstain-above 0.5
      credro predict RUN new.npz --max-error 0.05 --held-out val.npz
    """
    one_of("--format", format_, ("csv", "json"))
    one_of("--columns", columns, ("short", "all"))
    one_of("--on-error", on_error, _readers.ON_ERROR)
    if abstain_above is not None and max_error is not None:
        raise Misuse("--abstain-above and --max-error are two ways to choose a threshold: give one")
    if (max_error is None) != (held_out is None):
        raise Misuse("--max-error and --held-out go together: the error is shown on held-out data")
    if score is not None and abstain_above is None and max_error is None:
        raise Misuse("--score goes with --abstain-above or --max-error: it says what these look at")
    at_least(1, batch_size=batch_size)
    check_device(device)
    for option, fraction in (("--max-error", max_error), ("--confidence", confidence)):
        if fraction is not None and not 0 < fraction < 1:
            raise Misuse(f"{option} must lie in (0, 1), got {fraction}")
    from credro.data.again import read_samples
    from credro.ensemble import load
    from credro.methods import METHODS
    from credro.metrics import SCORES
    from credro.prediction.columns import distinct

    if method is not None:
        one_of("--method", method, METHODS)
    if score is not None:
        one_of("--score", score, SCORES)
    ensemble = load(run, method=method, device=device)
    sets = read_samples(ensemble.wanted, inputs, split, root, label=label, on_error=on_error)
    for data in sets:
        tell(data.notes)
    abstain: Abstain | None = None
    choice: Threshold | None = None
    if abstain_above is not None:
        abstain = _above(abstain_above, score or "epistemic")
    elif max_error is not None:
        if ensemble.regression:
            raise ValueError("--max-error counts wrong classes, and the run is a regression: take --abstain-above")
        held = Measured(held_out, held_out_split, label=label, root=root).known(ensemble)
        choice = ensemble.threshold(held, max_error=max_error, confidence=confidence, score=score or "total")
        tell([choice.note])
        abstain = _unless(choice)
    detailed = columns == "all" or format_ == "json"
    made = rows(ensemble, sets, abstain, batch_size, detailed=detailed)
    with opened(out) as file:
        if format_ == "csv":
            write_csv(file, made, header(ensemble, detailed=detailed, errors=on_error == "skip"))
        else:
            write_json(file, made, distinct(ensemble.classes, len(ensemble.classes)))
    if choice is not None and not choice.found:
        shown = "" if choice.reachable is None else f"; --max-error {choice.reachable:g} can be shown"
        tell([f"every row abstains{shown}"])
        raise typer.Exit(NO_THRESHOLD)


def _above(limit: float, score: str) -> Abstain:
    """Leave unanswered what is more uncertain than ``limit``."""
    from credro.metrics import score_of
    from credro.prediction import GaussianPrediction

    def abstain(prediction: Any) -> Any:
        if isinstance(prediction, GaussianPrediction) and score == "confidence":
            raise ValueError("--score confidence is for classes, and the run is a regression")
        return score_of(prediction, score) > limit

    return abstain


def _unless(choice: Threshold) -> Abstain:
    """Leave unanswered what the threshold does not accept."""
    import torch

    return lambda prediction: ~torch.as_tensor(choice.accepts(prediction))
