"""Texts of a user's own: one column of a table, or a file with one text a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from credro._names import Argument, ArgumentError, Message
from credro.data.base import Data
from credro.data.classes import Classes
from credro.data.errors import DataError
from credro.data.readers._frames import Source, Table, label_column, open_table, read_label, split_marks
from credro.data.readers._labels import Ask, read_groups
from credro.data.readers._marks import take
from credro.data.readers._missing import Missing, Rule, rule
from credro.data.readers._words import count, listed
from credro.data.spec import DataSpec, given
from credro.data.texts import Texts

USUAL = ("text", "message", "sentence")
"""What a column of texts is called where neither the user nor the run says: taken where one alone is there."""


def text_table(
    path: Path,
    split: str | None,
    *,
    text: str | int,
    label: str | int | None = None,
    group: str | None = None,
    classes: Classes | None = None,
    missing: Missing = None,
    task: str | None = None,
    header: bool | None = None,
) -> Data:
    """The texts of column ``text``; the other arguments are those of ``tables.table``.

    In a column of text "none" and "NA" are words: only empty cells, and what ``missing`` names, have no text. Rows
    without text are left out, and a note says so; missing="error" refuses them.
    """
    source = open_table(path, header)
    column, target = source.column("text", text), label_column(source, label)
    if column == target:
        raise ArgumentError("text", f"text must not be the label's column, got {column!r} for both")
    if group is not None:
        source.column("group", group)
    holes = rule(missing)
    cells = source.read(target, holes, words=column)
    marked, marks = split_marks(cells, {column, target, *([group] if group else [])})
    taken = take(path, marks, len(cells.frame), split)
    notes = [*taken.notes, *(source.layout.notes if source.layout else ()), f"texts: column {column!r}"]
    cells = _rows(cells, taken.rows)
    strings, empty = _strings(cells, column, holes)
    if len(empty):
        notes.append(f"{count(len(empty), 'row')} without text {_are(empty)} left out, the first {cells.at(empty[0])}")
        keep = np.setdiff1d(np.arange(len(strings)), empty)
        cells, strings = _rows(cells, torch.from_numpy(keep)), [strings[i] for i in keep]
    if not strings:
        raise DataError(path, f"has no text in column {column!r}")
    labels = read_label(cells, target, Ask(path, classes, task, f"label {target!r}", cells.at))
    groups, names = (None, ()) if group is None else _groups(cells, group)
    unused = [n for n in source.names if n not in (column, target, group, marked)]
    notes += [*labels.notes, *([f"not used: {listed(unused)}"] if unused else [])]
    notes += [f"group {group!r}: {len(names):,} groups"] if group is not None else []
    options = given(text=column, group=group, classes=classes, missing=missing, task=task)
    options |= given(header=header if source.header else False)
    spec = DataSpec(str(path), taken.split, target, (), options, 0 if source.header else len(source.names))
    data = Data(path.stem, Texts(tuple(strings)), labels.values, (), labels.classes, groups, names)
    return replace(data, spec=spec, notes=tuple(notes))


def texts_like(
    path: Path,
    spec: DataSpec,
    *,
    classes: Sequence[str],
    split: str | None = None,
    label: str | None = None,
    labelled: bool = True,
) -> Data:
    """Texts for a run that was trained on texts: the same column of another table, or the lines of a ``.txt`` file.

    Samples to predict (``labelled`` False) are as many as the file has rows: one without text is an empty text, and a
    note says so. Samples to measure on are left out if they have no text.
    """
    if path.suffix.lower() == ".txt":
        return _lines(path, spec, labelled)
    options = spec.options
    source = open_table(path, header=options.get("header"))
    column = _column(source, options.get("text"), bool(spec.width))
    target = label_column(source, label or spec.label) if labelled else None
    holes = replace(rule(options.get("missing")), refused=False)
    cells = source.read(target, holes, words=column)
    _, marks = split_marks(cells, {column, *([target] if target else [])})
    taken = take(path, marks, len(cells.frame), split, ("test", "val") if labelled else ("all",))
    cells = _rows(cells, taken.rows)
    strings, empty = _strings(cells, column, holes)
    notes = list(taken.notes)
    if len(empty) and labelled:
        notes.append(f"{count(len(empty), 'row')} without text {_are(empty)} left out, the first {cells.at(empty[0])}")
        keep = np.setdiff1d(np.arange(len(strings)), empty)
        cells, strings = _rows(cells, torch.from_numpy(keep)), [strings[i] for i in keep]
    elif len(empty):
        notes.append(_nothing(len(empty), cells.at(empty[0])))
    if not strings:
        raise DataError(path, f"has no text in column {column!r}")
    labels = torch.zeros(len(strings), dtype=torch.long)
    if target is not None:
        task = "classify" if classes else "regress"
        ask = Ask(path, tuple(classes) or None, task, f"label {target!r}", cells.at, unknown=True)
        found = read_label(cells, target, ask)
        labels, notes = found.values, [*notes, *found.notes]
    spec = replace(spec, source=str(path), split=taken.split, label=target)
    data = Data(path.stem, Texts(tuple(strings)), labels, (), tuple(classes))
    return replace(data, spec=spec, notes=tuple(notes))


def _column(source: Source, known: str | None, by_place: bool) -> str:
    """The run's column; where the run does not know one, the only column or one that is called as such are called."""
    if known is not None:
        if known not in source.names:
            place = ", where columns go by their place" if by_place else ""
            raise DataError(
                source.path, f"has no column {known!r}, whose texts the run was trained on{place}; "
                f"it has {listed(source.names)}",
            )  # fmt: skip
        return known
    found = [name for name in source.names if name.lower() in USUAL]
    if len(source.names) == 1 or len(found) == 1:
        return (found or list(source.names))[0]
    raise DataError(
        source.path,
        f"does not say which of its columns, {listed(source.names)}, has the texts, and the run was trained on texts "
        f"without a column: call it 'text', or read the file with credro.data.load(path, text=...)",
    )


def _lines(path: Path, spec: DataSpec, labelled: bool) -> Data:
    if labelled:
        raise DataError(path, "has texts without labels: to measure on them give a table with a column of labels")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(path, f"not a readable text ({error}): save it as UTF-8") from error
    if not lines:
        raise DataError(path, "holds no lines")
    strings = tuple(line.strip() for line in lines)
    empty = [i for i, line in enumerate(strings) if not line]
    notes = [f"{path.name}: a text each line, {count(len(strings), 'text')}"]
    notes += [_nothing(len(empty), f"line {empty[0] + 1}")] if empty else []
    data = Data(path.stem, Texts(strings), torch.zeros(len(strings), dtype=torch.long), ())
    return replace(data, spec=replace(spec, source=str(path), split=None, label=None), notes=tuple(notes))


def _strings(table: Table, column: str, holes: Rule) -> tuple[list[str], np.ndarray]:
    """The cells of a column without the space around them, and which of them (K,) are empty."""
    cells = table.frame[column]
    strings = ["" if missing else str(cell).strip() for cell, missing in zip(cells, cells.isna(), strict=True)]
    strings = ["" if string in holes.added else string for string in strings]
    empty = np.array([i for i, string in enumerate(strings) if not string], dtype=int)
    if len(empty) and holes.refused:
        where = f"{table.at(int(empty[0]))}, column {column!r}: the text is missing ({len(empty):,} in all); "
        keep = "fill in such texts, remove these rows, or pass ", Argument("missing", "keep"), ": they are left out"
        raise DataError(table.path, Message(where, *keep))
    return strings, empty


def _rows(table: Table, rows: Tensor | None) -> Table:
    if rows is None:
        return table
    chosen = rows.numpy()
    before = np.arange(len(table.frame)) if table.rows is None else np.asarray(table.rows)
    return Table(table.path, table.frame.iloc[chosen], table.layout, before[chosen])


def _groups(table: Table, name: str) -> tuple[Tensor, tuple[str, ...]]:
    column = table.frame[name]
    if (holes := column.isna().to_numpy()).any():
        raise DataError(table.path, f"{table.at(int(holes.argmax()))}, column {name!r}: the group is missing")
    return read_groups(table.path, column.to_numpy(), len(column))


def _are(empty: np.ndarray) -> str:
    return "is" if len(empty) == 1 else "are"


def _nothing(number: int, where: str) -> str:
    return f"{count(number, 'row')} without text, the first {where}: what is said of them rests on nothing"
