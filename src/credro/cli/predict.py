"""``credro predict``."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from credro.cli.options import Device, Misuse, Root, at_least, check_device, one_of, progress

if TYPE_CHECKING:
    from torch import Tensor

    from credro.data import Data
    from credro.ensemble import Ensemble
    from credro.readouts import Prediction

COLUMNS = ("sample", "label", "probability", "lower", "upper", "eu", "au", "tu", "abstain", "possible")

Abstain = Callable[["Tensor"], "Tensor"]


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", hidden=True)],
    format_: Annotated[
        str, typer.Option("--format", metavar="csv|json", help="JSON has the intervals of all classes.")
    ] = "csv",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: standard output.")] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the members by another method of their training rule.")
    ] = None,
    abstain_above: Annotated[
        float | None, typer.Option(metavar="EU", help="Abstain where epistemic uncertainty is above this.")
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
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Split of a named set.")] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Label column of a table: it is not a feature.")
    ] = None,
    batch_size: Annotated[int, typer.Option(metavar="N", help="Samples at once.")] = 256,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Label new samples, with probability intervals and uncertainty.

    INPUT is one or more images, folders of images (at any depth), .npz (array x),
    .csv or .parquet tables, or the name of a set. Images are resized to what the
    run takes. A row per sample: label, its probability (mean, lower, upper),
    epistemic, aleatoric and total uncertainty (eu, au, tu), whether to abstain, and
    the classes that remain possible (maximality).

    \b
    Examples:
      credro predict RUN photos/ --out labels.csv
      credro predict RUN a.png b.png --format json
      credro predict RUN new.csv --abstain-above 0.5
      credro predict RUN new.npz --max-error 0.05 --held-out val.npz
    """
    one_of("--format", format_, ("csv", "json"))
    if abstain_above is not None and max_error is not None:
        raise Misuse("--abstain-above and --max-error are two ways to choose a threshold: give one")
    if (max_error is None) != (held_out is None):
        raise Misuse("--max-error and --held-out go together: the error is shown on held-out data")
    at_least(1, batch_size=batch_size)
    check_device(device)
    for option, share in (("--max-error", max_error), ("--confidence", confidence)):
        if share is not None and not 0 < share < 1:
            raise Misuse(f"{option} must lie in (0, 1), got {share}")
    from credro.cli.inputs import read_unlabelled
    from credro.ensemble import load
    from credro.methods import METHODS

    if method is not None:
        one_of("--method", method, METHODS)
    ensemble = load(run, method=method, device=device)
    sets = read_unlabelled(ensemble, inputs, split, root, label or "")
    abstain: Abstain | None = None
    if abstain_above is not None:
        abstain = lambda eu: eu > abstain_above  # noqa: E731
    elif max_error is not None:
        abstain = _chosen(ensemble, str(held_out), held_out_split, root, label, max_error, confidence)
    rows = _rows(ensemble, sets, abstain, batch_size, detailed=format_ == "json")
    with _opened(out) as file:
        (_csv if format_ == "csv" else _json)(file, rows)


def _chosen(
    ensemble: Ensemble,
    name: str,
    split: str | None,
    root: Path | None,
    label: str | None,
    max_error: float,
    confidence: float,
) -> Abstain:
    """A threshold that is shown on held-out data to keep the error of what is answered below ``max_error``."""
    from credro.cli.inputs import read_id
    from credro.evaluation import threshold

    data = read_id(ensemble, name, split, root, label=label, unseen=True)
    prediction = ensemble.predict(data)
    found = threshold(prediction.epistemic, prediction.label == data.labels, max_error, confidence)
    print(f"note: {found.note}", file=sys.stderr)
    return lambda eu: ~(eu < found.threshold)


def _rows(
    ensemble: Ensemble, sets: list[Data], abstain: Abstain | None, size: int, *, detailed: bool
) -> Iterator[dict[str, Any]]:
    """One dict per sample, a batch at a time."""
    import torch

    total = sum(len(data) for data in sets)
    several = len(sets) > 1
    parts = (
        (min(start + size, len(data)) - start, (data, torch.arange(start, min(start + size, len(data)))))
        for data in sets
        for start in range(0, len(data), size)
    )
    for data, index in progress(parts, total, "predicting"):
        prediction = ensemble.predict(data.batch(index))
        for name, row in zip(
            _names(data, index, several), _batch(prediction, ensemble, abstain, detailed), strict=True
        ):
            yield {"sample": name, **row}


def _names(data: Data, index: Tensor, several: bool) -> list[Any]:
    """A file's path, or a sample's number; with the set's name where there are several."""
    if data.paths:
        return [str(data.paths[i]) for i in index.tolist()]
    return [f"{data.name}:{i}" if several else i for i in index.tolist()]


def _batch(
    prediction: Prediction, ensemble: Ensemble, abstain: Abstain | None, detailed: bool
) -> Iterator[dict[str, Any]]:
    from credro.credal.decisions import decide

    classes, labels = ensemble.classes, prediction.label
    at = labels[:, None]
    eu = prediction.epistemic
    remain = decide(prediction.set) if prediction.set is not None else _only(prediction)
    mean, lower, upper = prediction.mean, prediction.lower, prediction.upper
    refused = abstain(eu).tolist() if abstain is not None else [None] * len(prediction)
    columns = [t.gather(1, at)[:, 0].tolist() for t in (mean, lower, upper)]
    columns += [t.tolist() for t in (eu, prediction.aleatoric, prediction.total)]
    for i, (p, low, high, e, a, t) in enumerate(zip(*columns, strict=True)):
        row: dict[str, Any] = {"label": classes[int(labels[i])], "probability": p, "lower": low, "upper": high}
        row |= {"eu": e, "au": a, "tu": t, "abstain": refused[i]}
        row["possible"] = [classes[k] for k in remain[i].nonzero()[:, 0].tolist()]
        if detailed:
            bounds = zip(classes, mean[i].tolist(), lower[i].tolist(), upper[i].tolist(), strict=True)
            row["classes"] = {c: {"probability": m, "lower": lo, "upper": up} for c, m, lo, up in bounds}
        yield row


def _only(prediction: Prediction) -> Tensor:
    """Without a credal set there is one distribution, and its most probable class."""
    import torch

    return torch.zeros_like(prediction.mean, dtype=torch.bool).scatter_(1, prediction.label[:, None], True)


def _csv(file: TextIO, rows: Iterator[dict[str, Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(row[column]) for column in COLUMNS])


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "|".join(value) if isinstance(value, list) else value


def _json(file: TextIO, rows: Iterator[dict[str, Any]]) -> None:
    """An array with one object a line, written as it goes."""
    file.write("[")
    for i, row in enumerate(rows):
        file.write((",\n" if i else "\n") + json.dumps(_rounded(row)))
    file.write("\n]\n")


def _rounded(value: Any) -> Any:
    """Seven digits are more than single precision holds."""
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    """The file, written aside and renamed when it is complete; or standard output."""
    if out is None:
        yield sys.stdout
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(out.name + ".part")
    try:
        with open(aside, "w", newline="", encoding="utf-8") as file:
            yield file
        aside.replace(out)
    finally:
        aside.unlink(missing_ok=True)
    print(f"wrote {out}", file=sys.stderr)
