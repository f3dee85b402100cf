"""A user's own table: CSV, TSV or parquet, one row a sample, one column the label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.errors import DataError, need
from credro.data.readers.arrays import take_split
from credro.data.readers.labels import check_missing, read_groups, read_labels

LABELS = ("label", "target", "class", "y")
"""Column names that are taken for the label, in this order, when none is given."""

TEXT = (".csv", ".tsv")
"""Files of text; others are parquet."""

MOST_VALUES = 100
"""A column of text with more different values is a name or a number of something, not a category."""


def table(
    path: Path,
    split: str | None,
    *,
    label: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    categories: Mapping[str, Sequence[str]] | None = None,
    classes: Sequence[str] | None = None,
    missing: str = "error",
    task: str | None = None,
) -> Data:
    """Features (F,) float32: every column but ``label``, ``group``, ``drop`` and one called "split".

    A column of text becomes one column of 0 and 1 for each of its values, in sorted order, where it stood, called
    ``column=value``; ``categories`` gives the values of a column, so that two files come out alike. A missing text
    is 0 in all of them. A column "split" of words marks the splits. A first column of a CSV that has no name and only
    counts the rows, as pandas writes it, is no feature. missing, task, classes: see ``readers.labels``.
    """
    frame = read_frame(path)
    label = _label(path, list(frame.columns), label)
    for option, column in [("group", group), *(("drop", column) for column in drop)]:
        if column is not None and column not in frame:
            raise ValueError(f"{option} must be a column of {path}, one of {', '.join(frame.columns)}; got {column!r}")
    if len(frame) == 0:
        raise DataError(path, "holds no rows")
    for column in (label, group):
        if column is not None and (holes := frame[column].isna()).any():
            raise DataError(path, f"value in row {int(holes.to_numpy().argmax())}, column {column!r} is missing")

    outside = {label, group, "split", *drop}
    parts: list[Any] = []
    columns: list[str] = []
    for column in frame.columns:
        if column not in outside:
            names, values = encode(path, frame[column], (categories or {}).get(column), missing)
            columns += names
            parts += values
    if not parts:
        raise DataError(path, f"has no features beside {', '.join(sorted(filter(None, outside)))}")
    samples = torch.stack([torch.from_numpy(part) for part in parts], dim=1)
    check_missing(path, samples, columns, missing)
    labels, class_names = read_labels(path, frame[label].to_numpy(), len(frame), classes, task)
    groups: Tensor | None = None
    group_names: tuple[str, ...] = ()
    if group is not None:
        groups, group_names = read_groups(path, frame[group].to_numpy(), len(frame))
    data = Data(
        path.stem,
        samples,
        labels,
        (len(columns),),
        class_names,
        groups,
        group_names,
        columns=tuple(columns),
    )
    return take_split(path, data, split, frame["split"].to_numpy() if "split" in frame else None)


def read_frame(path: Path) -> Any:
    """A table as a pandas ``DataFrame``."""
    pandas = need("pandas")
    text = path.suffix.lower() in TEXT
    try:
        frame = _read_text(pandas, path) if text else pandas.read_parquet(path)
    except ImportError as error:
        raise ModuleNotFoundError("pyarrow is needed to read parquet: pip install 'credro[data]'") from error
    except FileNotFoundError:
        raise
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise DataError(path, f"not a readable table ({type(error).__name__}: {error})") from error
    frame.columns = [str(column) for column in frame.columns]
    if text and frame.columns[0] == "Unnamed: 0" and _counts_rows(frame.iloc[:, 0]):
        frame = frame.iloc[:, 1:]
    if len(twice := frame.columns[frame.columns.duplicated()]):
        raise DataError(path, f"has two columns called {twice[0]!r}")
    return frame


def _read_text(pandas: Any, path: Path) -> Any:
    """Values between commas, semicolons or tabs, whichever the first line has most of; then perhaps 3,5 for 3.5."""
    with open(path, encoding="utf-8-sig") as file:
        first = file.readline()
    between = max(",;\t", key=first.count)
    frame = pandas.read_csv(path, sep=between)
    words = frame.select_dtypes(exclude="number")
    if between != "," and any(words[c].dropna().astype(str).str.fullmatch(r"[+-]?\d+,\d+").any() for c in words):
        return pandas.read_csv(path, sep=between, decimal=",")
    return frame


def _counts_rows(column: Any) -> bool:
    values = column.tolist()
    return any(values == list(range(first, first + len(values))) for first in (0, 1))


def _label(path: Path, columns: list[str], label: str | None) -> str:
    if label is None:
        label = next((c for name in LABELS for c in columns if c.lower() == name), None)
        if label is None:
            raise ValueError(
                f"label must be given: {path} has no column called {', '.join(LABELS)}; "
                f"its columns are {', '.join(columns)}"
            )
    elif label not in columns:
        raise ValueError(f"label must be a column of {path}, one of {', '.join(columns)}; got {label!r}")
    return label


def encode(path: Path, column: Any, values: Sequence[str] | None, missing: str) -> tuple[list[str], list[Any]]:
    """A column as features: their names, and each as (N,) float32."""
    types = need("pandas").api.types
    if values is None and (types.is_numeric_dtype(column) or types.is_bool_dtype(column)):
        return [str(column.name)], [column.to_numpy(dtype="float32", na_value=float("nan"))]
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        raise DataError(
            path, f"column {column.name!r} holds times: make numbers of them, or pass drop=({column.name!r},)"
        )
    holes = column.isna().to_numpy()
    if missing == "error" and holes.any():
        raise DataError(
            path,
            f"value in row {int(holes.argmax())}, column {column.name!r} is missing ({int(holes.sum())} in all); "
            f"missing='keep' writes 0 for each of its values",
        )
    text = column.astype(str).to_numpy()
    present = sorted(set(text[~holes].tolist()))
    if values is None:
        if len(present) > MOST_VALUES:
            raise DataError(
                path,
                f"column {column.name!r} is text with {len(present)} different values: too many for categories; "
                f"pass drop=({column.name!r},), or name them with categories=",
            )
        values = present
    known = [str(value) for value in values]
    if unknown := set(present) - set(known):
        raise DataError(path, f"column {column.name!r} has values that are not in categories: {sorted(unknown)[:5]}")
    return [f"{column.name}={value}" for value in known], [((text == v) & ~holes).astype("float32") for v in known]
