"""Other samples, read as a run's data was read: the same columns, categories and classes, whatever else is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from credro.data.base import Array, Data
from credro.data.errors import DataError
from credro.data.readers._columns import Texts, as_numbers, as_texts
from credro.data.readers._frames import SPLIT, TEXT, Source, Table, label_column, open_table, read_label, split_marks
from credro.data.readers._labels import Ask, Labels, read_labels
from credro.data.readers._marks import take
from credro.data.readers._missing import MARKS, Holes, Rule, missing_note, rule
from credro.data.readers._stored import array_names, find
from credro.data.readers._text import are_numbers, first_row
from credro.data.readers._words import listed
from credro.data.readers.arrays import array_data, load_arrays
from credro.data.readers.tables import Feature, group_column, matrix
from credro.data.spec import Column, DataSpec

HELD_OUT = ("test", "val")
"""Where no split is named, labelled samples are taken from these: never from train."""

ALL = ("all",)
"""Samples to predict are all that there are."""


def table_like(
    path: Path,
    spec: DataSpec,
    *,
    classes: Sequence[str],
    split: str | None = None,
    label: str | None = None,
    labelled: bool = True,
) -> Data:
    """The features of ``spec.columns``, by the names of the columns in any order; other columns are ignored.

    Columns without names go by their place. A value of a category that training has not seen goes to ``(other)``, and
    a note counts such values. ``DataError``: a column is missing, or a cell is no number where numbers are needed.

    Args:
        path: the file.
        spec: how the run's data was read.
        classes: of the run; none: the labels are values to predict.
        split: None takes test, else val, of a file that marks splits, and all samples if they are not labelled.
        label: the column, where it is not called as in training.
        labelled: whether labels are read; those of no known class are -1, and a note counts them.
    """
    source = _open(path, spec)
    if spec.width:
        _check_width(source, spec, labelled)
    target = _label(source, spec, label) if labelled else None
    if not spec.columns:  # nobody noted them: all that may be features
        outside = {target, label or spec.label}
        spec = replace(spec, columns=tuple(Column(n) for n in source.names if n not in outside and n.lower() != SPLIT))
    places = _places(source, spec)
    missing = rule(spec.options.get("missing"))
    cells = source.read(target, missing, [places[c.name] for c in spec.columns if c.values is not None])
    _, marks = split_marks(cells, {*places.values(), *([target] if target else [])})
    taken = take(path, marks, len(cells.frame), split, HELD_OUT if labelled else ALL)
    if taken.rows is not None:
        rows = taken.rows.numpy()
        cells = Table(path, cells.frame.iloc[rows], cells.layout, rows)

    used, notes = _features(cells, spec.columns, places, missing)
    labels = _no_labels(len(cells.frame))
    if target is not None:
        labels = read_label(cells, target, _ask(path, classes, f"label {target!r}", cells))
    features = tuple(name for f in used for name in f.column.features)
    group = spec.options.get("group")
    groups, group_names = group_column(cells, group) if group in source.names else (None, ())
    data = Data(path.stem, matrix(used), labels.values, (len(features),), tuple(classes), groups, group_names)
    spec = replace(spec, source=str(path), split=taken.split, label=target)
    return replace(data, columns=features, spec=spec, notes=(*taken.notes, *labels.notes, *notes))


def npz_like(
    path: Path,
    spec: DataSpec,
    *,
    classes: Sequence[str],
    split: str | None = None,
    label: str | None = None,
    labelled: bool = True,
) -> Data:
    """The arrays that a run was trained on, by the same names, else by those that are usual; see ``table_like``.

    Features go by their names where both the run and the file have any, else by their place. label: the array.
    """
    names, options = array_names(path), spec.options
    x, y, group = (options.get(key) if options.get(key) in names else None for key in ("x", "y", "group"))
    y = label or y
    stored = find(path, names, x, y, group, labelled=labelled)
    missing = replace(rule(options.get("missing")), refused=False)  # as in tables: prediction has a mean for them
    unsaid = HELD_OUT if labelled else ALL
    found = load_arrays(path, names, stored, split, options.get("layout"), missing, unsaid)
    wanted = tuple(name for c in spec.columns for name in c.features)
    if wanted and found.columns:
        by_name = "columns" in names and wanted != tuple(map(str, range(len(wanted))))
        order = _order(path, found.columns, wanted, by_name)
        found = replace(found, samples=found.samples[:, order], columns=wanted)
    labels = _no_labels(len(found.samples))
    if found.y is not None:
        values = found.y if found.taken.rows is None else found.y[found.taken.rows.numpy()]
        labels = read_labels(values, len(found.samples), _ask(path, classes, "labels"))
    spec = replace(spec, source=str(path), split=found.taken.split, label=stored.y.get(""))
    return array_data(path, names, stored, found, replace(labels, classes=tuple(classes)), spec)


def _ask(path: Path, classes: Sequence[str], name: str, table: Table | None = None) -> Ask:
    task = "classify" if classes else "regress"
    ask = Ask(path, tuple(classes) or None, task, name, unknown=True)
    return ask if table is None else replace(ask, at=table.at)


def _no_labels(count: int) -> Labels:
    return Labels(torch.zeros(count, dtype=torch.long))


def _open(path: Path, spec: DataSpec) -> Source:
    """The file; it has a header if the run's file had one, or if its first row can be nothing else."""
    if path.suffix.lower() not in TEXT:
        return open_table(path)
    if not spec.columns:
        return open_table(path)
    return open_table(path, header=not spec.width or _is_header(first_row(path), spec))


def _is_header(first: Sequence[str], spec: DataSpec) -> bool:
    """Whether the first row of a file names its columns, although that of the run's did not: nothing in it fits."""
    fits = []
    for column in spec.columns:
        cell = first[int(column.name)] if int(column.name) < len(first) else ""
        if column.values is None:
            fits.append(cell in MARKS or cell.lower() in ("true", "false") or bool(are_numbers([cell], ";")[0]))
        else:
            fits.append(cell in MARKS or cell in column.values)
    return len(fits) > 1 and not any(fits)


def _check_width(source: Source, spec: DataSpec, labelled: bool) -> None:
    """Columns that go by their place must all be there, but for the label where it is not needed."""
    if len(source.names) == spec.width or (len(source.names) == spec.width - 1 and not labelled):
        return
    raise DataError(
        source.path,
        f"has {len(source.names)} columns, and the run's data had {spec.width} without a header: they go by their "
        f"place, so there must be as many" + ("" if labelled else ", or one less, the label"),
    )


def _places(source: Source, spec: DataSpec) -> Mapping[str, str]:
    """What the columns of the run are called in this file: as in training, or what stands in their place."""
    if not spec.width:
        lacking = [c.name for c in spec.columns if c.name not in source.names]
        if lacking:
            columns = "column" if len(lacking) == 1 else "columns"
            raise DataError(
                source.path,
                f"has no {columns} {listed([repr(name) for name in lacking])}, which the run was trained on; "
                f"it has {listed(source.names)}",
            )
        return {c.name: c.name for c in spec.columns}
    here = list(source.names)
    if len(here) < spec.width and spec.label is not None:
        here.insert(int(spec.label), "")  # everything but the label, in the same order
    return {c.name: here[int(c.name)] for c in spec.columns}


def _label(source: Source, spec: DataSpec, label: str | None) -> str:
    if label is None and spec.width and spec.label is not None:
        return source.names[int(spec.label)]
    return label_column(source, label or spec.label)


def _features(
    table: Table, columns: Sequence[Column], places: Mapping[str, str], missing: Rule
) -> tuple[list[Feature], list[str]]:
    """The columns as in training, and sentences on values that are new and on those that are missing."""
    used: list[Feature] = []
    new: list[str] = []
    holes: list[Holes] = []
    for column in columns:
        name = places[column.name]
        if column.values is None:
            numbers = as_numbers(table, name, missing)
            used.append(Feature(column, numbers))
            holes.append(Holes(column.name, int(numbers.missing.sum())))
            continue
        texts = as_texts(table, name, missing)
        codes, unknown = _codes(texts, column)
        used.append(Feature(column, Texts(codes, column.values)))
        holes.append(Holes(column.name, int(texts.missing.sum()), category=True))
        if unknown:
            count = sum(int((texts.codes == texts.values.index(value)).sum()) for value in unknown)
            new.append(f"{column.name} ({count:,}: {listed(unknown)})")
    said = [f"values that were not seen in training: {', '.join(new)}"] if new else []
    return used, [*said, *missing_note(holes)]


def _codes(texts: Texts, column: Column) -> tuple[Array, list[str]]:
    """The numbers (N,) of a run's values, and the values that it does not know."""
    known = column.values or ()
    index = {value: i for i, value in enumerate(known)}
    other = len(known) if column.other else -1
    lookup = np.array([*(index.get(value, other) for value in texts.values), -1])
    return lookup[texts.codes], [value for value in texts.values if value not in index]


def _order(path: Path, columns: Sequence[str], wanted: Sequence[str], by_name: bool) -> list[int]:
    """Where the run's features stand in this file."""
    if by_name:
        if lacking := [name for name in wanted if name not in columns]:
            raise DataError(
                path,
                f"has no feature {listed([repr(name) for name in lacking])}, which the run was trained on; "
                f"it has {listed(columns)}",
            )
        return [columns.index(name) for name in wanted]
    if len(columns) != len(wanted):
        raise DataError(path, f"has {len(columns)} features, and the run was trained on {len(wanted)}")
    return list(range(len(wanted)))
