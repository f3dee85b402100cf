"""Camelyon17: patches from five hospitals (centres), in WILDS' layout or as images with a table of centres."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.base import Data
from credro.data.errors import DataError
from credro.data.readers._labels import number
from credro.data.readers._published import Published, check_labels
from credro.data.readers.images import image_data

CENTERS = {"train": (0, 1, 3), "test": (2, 4), "all": (0, 1, 2, 3, 4)}
"""The paper's split: trained on three hospitals, tested on two others."""

CAMELYON17 = Published(
    "camelyon17", dict.fromkeys(CENTERS, (("camelyon17_v1.0/metadata.csv", "camelyon17/metadata.csv"),))
)
WILDS = ("patient", "node", "x_coord", "y_coord", "tumor", "center")
PLAIN = ("path", "label", "center")


def camelyon17(
    root: Path,
    split: str | None,
    *,
    group: str = "center",
    centers: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    lazy: bool | None = True,
) -> Data:
    """WILDS' ``camelyon17_v1.0/``, or ``camelyon17/metadata.csv`` with the columns path, label, center[, patient].

    split: "train" is centres 0, 1, 3; "test" is 2, 4; "all" is every one; ``centers`` overrules it.
    group: "center", or any other column that says which samples belong together ("patient", "slide").
    Groups keep their numbers in every split.
    """
    split = CAMELYON17.split(split)
    (table,) = CAMELYON17.find(root, split)
    rows = _rows(table)
    if not rows:
        raise DataError(table, "holds no samples")
    if all(column in rows[0] for column in WILDS):
        label_column, files = "tumor", [_wilds_path(row) for row in rows]
    elif all(column in rows[0] for column in PLAIN):
        label_column, files = "label", [row["path"] for row in rows]
    else:
        raise DataError(
            table,
            f"must have the columns {', '.join(WILDS)} (WILDS) or {', '.join(PLAIN)}; it has {', '.join(rows[0])}",
        )
    if group not in rows[0]:
        raise ArgumentError("group", f"group must be a column of {table}, one of {', '.join(rows[0])}; got {group!r}")

    labels = check_labels(table, _integers(table, rows, label_column), len(rows), 2)
    center = _integers(table, rows, "center")
    known = CENTERS["all"]
    if odd := set(center.tolist()) - set(known):
        raise DataError(table, f"center {min(odd)} is not one of 0, 1, 2, 3, 4")
    if group == "center":
        groups, group_names = center, tuple(f"center {c}" for c in known)
    else:
        groups, group_names = number([row[group] for row in rows])

    chosen = tuple(CENTERS[split] if centers is None else centers)
    keep = torch.isin(center, torch.tensor(chosen)).nonzero().flatten()
    if not len(keep):
        raise DataError(table, f"holds no samples of the centres {', '.join(map(str, chosen))}")
    paths = [table.parent / files[i] for i in keep.tolist()]
    _check_present(table, paths)
    data = image_data(
        "camelyon17", paths, labels[keep], ("normal", "tumor"), size=size, channels=3, lazy=lazy, check=False
    )
    return replace(data, groups=groups[keep], group_names=group_names)


def _rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, restval="", restkey="")
            return [{("center" if k == "centre" else k): v for k, v in row.items() if k} for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(table, f"not a readable table ({error})") from error


def _wilds_path(row: dict[str, str]) -> str:
    place = f"patient_{row['patient']:0>3}_node_{row['node']}"  # some tables have lost the leading zeros
    return f"patches/{place}/patch_{place}_x_{row['x_coord']}_y_{row['y_coord']}.png"


def _integers(table: Path, rows: list[dict[str, str]], column: str) -> Tensor:
    values = []
    for i, row in enumerate(rows):
        if not row[column].strip().isdecimal():
            raise DataError(table, f"column {column!r} of row {i + 1} must be a whole number, got {row[column]!r}")
        values.append(int(row[column]))
    return torch.tensor(values)


def _check_present(table: Path, paths: Sequence[Path]) -> None:
    """Every file is there; each folder is listed once, since there may be half a million files."""
    listed = {folder: set(os.listdir(folder)) if folder.is_dir() else set() for folder in {p.parent for p in paths}}
    missing = [path for path in paths if path.name not in listed[path.parent]]
    if missing:
        raise DataError(table, f"{len(missing)} of {len(paths)} images are missing, the first is {missing[0]}")
