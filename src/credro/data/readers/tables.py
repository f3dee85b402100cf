"""A user's own table: CSV, TSV or parquet, one row a sample, one column the label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credro._names import Argument, ArgumentError, Message, Open, joined
from credro.data.base import Array, Data
from credro.data.classes import Classes
from credro.data.errors import DataError
from credro.data.readers._columns import MOST_VALUES, Numbers, Texts, doubtful, parse, tells, useless
from credro.data.readers._frames import Table, label_column, open_table, read_label, split_marks
from credro.data.readers._labels import Ask, read_groups
from credro.data.readers._marks import take
from credro.data.readers._missing import Holes, Missing, Rule, missing_note, rule
from credro.data.readers._words import listed
from credro.data.readers.texts import text_table
from credro.data.spec import Column, DataSpec, given

WORDS = 3
"""A column whose values have so many words on average is one of sentences."""

Categories = Mapping[str, Sequence[str]] | Sequence[str]
"""The option ``categories`` as users give it: the values of columns, or only which columns are categories."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A column that is used, and its cells."""

    column: Column
    cells: Numbers | Texts


def table(
    path: Path,
    split: str | None,
    *,
    label: str | int | None = None,
    group: str | None = None,
    drop: Sequence[str] | str = (),
    keep: Sequence[str] | str = (),
    categories: Categories | str = (),
    classes: Classes | None = None,
    missing: Missing = None,
    task: str | None = None,
    header: bool | None = None,
    text: str | int | None = None,
) -> Data:
    """Features (F,) float32: every column but the label, the group, marks of splits, and those that are left out.

    A column of text becomes one feature of 0 and 1 for each of its values, in sorted order, where it stood, called
    ``column=value``, and one more, ``column=(other)``, for values that come later. What was taken for what is said in
    ``Data.notes``.

    Args:
        path: a file of text (cells between commas, semicolons, tabs or white space) or parquet.
        split: a column called "split", or one of words such as train and test, marks splits; None takes train, "all"
            everything.
        label: the column; "last" is the last one. None: the one called label, target, class or y.
        group: a column that says which rows belong together.
        drop: columns to leave out. keep: columns to use although they are constant or look like IDs.
        categories: names of columns that are categories although they hold numbers; or the values of columns, so that
            two files come out alike.
        classes, task: see ``readers.labels``.
        missing: see ``readers.missing``; a missing number stays NaN, a missing text is 0 in all its features.
        header: whether the first row names the columns; None: the file tells. Without, they are called 0, 1, ...
        text: the column whose texts are the samples (``texts.text_table``); other columns are then not used.
    """
    if text is not None:
        for option, columns in (("keep", keep), ("categories", categories)):
            if columns:
                raise ArgumentError(option, f"{option} is for features, and with text there is one column of texts")
        of_label = {"label": label, "group": group, "classes": classes, "task": task}
        return text_table(path, split, text=text, missing=missing, header=header, **of_label)  # type: ignore[arg-type]
    source = open_table(path, header)
    label = label_column(source, label)
    drop, keep, named = _names(drop), _names(keep), _names(categories)
    for option, columns in (("group", _names(group)), ("drop", drop), ("keep", keep), ("categories", named)):
        for column in columns:
            source.column(option, column)
    if label in drop:
        raise ArgumentError("drop", f"drop must not name the label, {label!r}")
    values = categories if isinstance(categories, Mapping) else {}
    holes = rule(missing)
    cells = source.read(label, holes, named)

    outside = {label, *_names(group), *drop}
    marked, marks = split_marks(cells, {*outside, *keep})
    taken = take(path, marks, len(cells.frame), split)
    labels = read_label(cells, label, Ask(path, classes, task, f"label {label!r}", cells.at))
    used, left_out = _features(cells, outside | set(_names(marked)), keep, named, values, holes)
    if not used:
        without = ", ".join(sorted(outside | set(_names(marked))))
        raise DataError(path, joined("; ", [f"has no features beside {without}", *left_out]))
    groups, group_names = (None, ()) if group is None else group_column(cells, group)
    rows = slice(None) if taken.rows is None else taken.rows
    suspects = [f"column {f.column.name!r} tells the label exactly" for f in used if tells(f.cells, labels.values)]
    lacking = [Holes(f.column.name, int(f.cells.missing[rows].sum()), isinstance(f.cells, Texts)) for f in used]
    notes = [*taken.notes, *(source.layout.notes if source.layout else ()), *labels.notes]
    notes += ["decimal commas: 1,234 is taken for 1.234"] if cells.frame.attrs.get("decimal comma") else []
    notes += [f"group {group!r}: {len(group_names):,} groups"] if group is not None else []
    notes += [_said(used)]
    notes += [f.cells.note for f in used if isinstance(f.cells, Texts) and f.cells.note]
    notes += [*suspects, *left_out, *(s for f in used if (s := doubtful(cells, f.column.name, f.cells)))]
    header = header if source.header else False
    options = given(group=group, drop=drop, keep=keep, categories=categories, classes=classes, missing=missing)
    options |= given(task=task, header=header)
    width = 0 if source.header else len(source.names)
    spec = DataSpec(str(path), taken.split, label, tuple(f.column for f in used), options, width)
    features = tuple(name for f in used for name in f.column.features)
    whole = Data(path.stem, matrix(used), labels.values, (len(features),), labels.classes, groups, group_names)
    return taken.of(replace(whole, columns=features, spec=spec, notes=(*notes, *missing_note(lacking))))


def matrix(used: Sequence[Feature]) -> Tensor:
    """Features (N, F) float32: a number as it is; a category as 0 and 1 for each of its values, and for others."""
    rows = len(used[0].cells.missing)
    x = np.zeros((rows, sum(len(f.column.features) for f in used)), dtype=np.float32)
    at = 0
    for f in used:
        if isinstance(f.cells, Texts):
            present = np.flatnonzero(f.cells.codes >= 0)
            x[present, at + f.cells.codes[present]] = 1
        else:
            x[:, at] = f.cells.values
        at += len(f.column.features)
    return torch.from_numpy(x)


def group_column(table: Table, name: str) -> tuple[Tensor, tuple[str, ...]]:
    """Groups (N,) of a column, and their names."""
    column = table.frame[name]
    if (holes := column.isna().to_numpy()).any():
        raise DataError(table.path, f"{table.at(int(holes.argmax()))}, column {name!r}: the group is missing")
    return read_groups(table.path, column.to_numpy(), len(column))


def _features(
    table: Table,
    outside: set[str],
    keep: Sequence[str],
    named: Sequence[str],
    values: Mapping[str, Sequence[str]],
    missing: Rule,
) -> tuple[list[Feature], list[str]]:
    """The columns that are used, in order, and a sentence on each that is not."""
    used: list[Feature] = []
    left_out: list[str] = []
    for name in table.frame.columns:
        if name in outside:
            continue
        cells = parse(table, name, missing, category=name in named)
        why = None if name in keep or name in named else useless(table, name, cells)
        if why is not None:
            usable = isinstance(cells, Numbers) or len(cells.values) <= MOST_VALUES
            but = ("; ", Argument("keep", (name,)), " takes it") if usable else _or_text(name, cells)
            left_out.append(Message(f"column {name!r} is left out: {why}", *but))
            continue
        if missing.refused and (holes := cells.missing).any():
            row, count = int(holes.argmax()), int(holes.sum())
            where = f"{table.at(row)}, column {name!r}: value is missing ({count:,} in all)"
            mend = "; fill in such values, remove these rows, or pass "
            keep_them = Argument("missing", "keep"), ": the training mean stands in for them"
            raise DataError(table.path, Message(where + mend, *keep_them))
        used.append(_feature(table, name, cells, values.get(name)))
    return used, left_out


def _feature(table: Table, name: str, cells: Numbers | Texts, values: Sequence[str] | None) -> Feature:
    if isinstance(cells, Numbers):
        return Feature(Column(name), cells)
    if values is None:
        if len(cells.values) > MOST_VALUES:
            many = (
                f"column {name!r} is text with {len(cells.values):,} different values: too many for categories; pass "
            )
            drop = Argument("drop", (name,)), ", or name the values with ", Argument("categories", Open())
            raise DataError(table.path, Message(many, *drop, *_or_text(name, cells)))
        return Feature(Column(name, cells.values), cells)
    known = tuple(map(str, values))
    if unknown := sorted(set(cells.values) - set(known)):
        raise DataError(table.path, f"column {name!r} has values that are not in categories: {unknown[:5]}")
    codes: Array = np.array([*(known.index(value) for value in cells.values), -1])[cells.codes]
    return Feature(Column(name, known), Texts(codes, known))


def _or_text(name: str, cells: Numbers | Texts) -> tuple[str | Argument, ...]:
    """What more to say of a column that is not used, where its cells are sentences."""
    if not isinstance(cells, Texts) or sum(len(v.split()) for v in cells.values) < WORDS * len(cells.values):
        return ()
    return ("; it looks like free text: ", Argument("text", name), " makes it the samples")


def _said(used: Sequence[Feature]) -> str:
    """A sentence on the features."""
    categories = [f.column.name for f in used if f.column.values is not None]
    parts = ((len(used) - len(categories), "number", "numbers"), (len(categories), "category", "categories"))
    said = [f"{n} {one if n == 1 else many}" for n, one, many in parts if n]
    return "features: " + ", ".join(said) + (f" ({listed(categories)})" if categories else "")


def _names(named: Any) -> tuple[str, ...]:
    """One name or several as names."""
    return () if named is None else (named,) if isinstance(named, str) else tuple(map(str, named))
