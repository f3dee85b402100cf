"""Predictions as rows: a dict per sample, written as CSV or JSON while they are made."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from credro.cli.options import progress

if TYPE_CHECKING:
    from torch import Tensor

    from credro.data import Data
    from credro.ensemble import Ensemble
    from credro.prediction import GaussianPrediction, Prediction

CLASSES = ("sample", "label", "probability", "lower", "upper", "eu", "au", "tu", "abstain", "possible")
"""Columns of a run that tells classes apart; all of them also has p:, lower: and upper: of each."""
REGRESSION = ("sample", "mean", "std", "lower", "upper", "eu", "au", "tu", "abstain")
"""Columns of a regression; lower and upper are an interval with at least 90 % of the probability."""

Abstain = Callable[[Any], "Tensor"]
"""Which samples of a prediction (N,) are left unanswered."""


def header(ensemble: Ensemble, *, detailed: bool, errors: bool) -> list[str]:
    """The columns of a CSV. detailed: also of every class. errors: rows of files that cannot be read are among them."""
    from credro.prediction.columns import distinct

    names = distinct(ensemble.classes, len(ensemble.classes)) if detailed else []
    each = [f"{kind}:{name}" for name in names for kind in ("p", "lower", "upper")]
    return [*(CLASSES if ensemble.classes else REGRESSION), *each, *(["error"] if errors else [])]


def rows(
    ensemble: Ensemble, sets: Sequence[Data], abstain: Abstain | None, size: int, *, detailed: bool
) -> Iterator[dict[str, Any]]:
    """One dict per sample, a batch at a time; then one per file that could not be read, with its ``error``."""
    import torch

    total = sum(len(data) for data in sets)
    several = len(sets) > 1
    parts = (
        (min(start + size, len(data)) - start, (data, torch.arange(start, min(start + size, len(data)))))
        for data in sets
        for start in range(0, len(data), size)
    )
    predict = ensemble.predict_regression if ensemble.regression else ensemble.predict
    for data, index in progress(parts, total, "predicting"):
        part = data.batch(index) if data.texts is None else data.subset(index)
        prediction = predict(part, cache=False)
        made = _batch(prediction, abstain, detailed)
        for name, row in zip(_names(data, index, several), made, strict=True):
            yield {**row, "sample": name}
    for data in sets:
        for bad in data.bad:
            yield {"sample": str(bad.path), "error": bad.problem}


def _names(data: Data, index: Tensor, several: bool) -> list[Any]:
    """A file's path, or a sample's number; with the set's name where there are several."""
    if data.paths:
        return [str(data.paths[i]) for i in index.tolist()]
    return [f"{data.name}:{i}" if several else i for i in index.tolist()]


def _batch(
    prediction: Prediction | GaussianPrediction, abstain: Abstain | None, detailed: bool
) -> Iterator[dict[str, Any]]:
    from credro.prediction.columns import prediction_columns

    columns = prediction_columns(prediction, detailed)
    columns["abstain"] = abstain(prediction).tolist() if abstain is not None else [None] * len(prediction)
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def write_csv(file: TextIO, made: Iterator[dict[str, Any]], columns: Sequence[str]) -> None:
    """A line per sample, as it goes; what a row does not have is empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_text(column) for column in columns])
    for row in made:
        writer.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.9g}"  # a number in single precision comes back as it was
    if isinstance(value, list):
        return _text("|".join(name.replace("\\", "\\\\").replace("|", "\\|") for name in value))
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """Names as they are, but with a quote before one that a spreadsheet would take for a formula."""
    if not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_json(file: TextIO, made: Iterator[dict[str, Any]], classes: Sequence[str]) -> None:
    """An array with one object a line, written as it goes; the intervals of the classes are an object within."""
    file.write("[")
    for i, row in enumerate(made):
        file.write((",\n" if i else "\n") + json.dumps(_rounded(_nested(row, classes))))
    file.write("\n]\n")


def _nested(row: dict[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """``sample`` first, and ``p:NAME``, ``lower:NAME``, ``upper:NAME`` under ``classes``."""
    each = {
        name: {"probability": row[f"p:{name}"], "lower": row[f"lower:{name}"], "upper": row[f"upper:{name}"]}
        for name in classes
        if f"p:{name}" in row
    }
    drop = {f"{kind}:{name}" for name in each for kind in ("p", "lower", "upper")}
    plain = {"sample": row["sample"], **{k: v for k, v in row.items() if k not in drop}}
    return {**plain, "classes": each} if each else plain


def _rounded(value: Any) -> Any:
    """Nine digits are all that single precision holds; what is not a number is null."""
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    return value


@contextmanager
def opened(out: Path | None) -> Iterator[TextIO]:
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
