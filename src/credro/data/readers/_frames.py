"""A table file, opened: the names of its columns first, then its cells, its label and its marks of splits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from credro._names import Argument, ArgumentError, Message, Open, did_you_mean
from credro.data.errors import DataError, need
from credro.data.readers._labels import Ask, Labels, read_labels
from credro.data.readers._marks import split_of
from credro.data.readers._missing import LABEL_MARKS, Rule
from credro.data.readers._text import Frame, Layout, look, read, readable

LABELS = ("label", "target", "class", "y")
"""Column names that are taken for the label when none is given."""

OFTEN = ("outcome", "diagnosis", "species", "quality", "survived", "result", "response", "income", "type", "category")
"""Column names that are often the label's: suggested, never taken."""

TEXT = (".csv", ".tsv", ".txt", ".data")
"""Files of text; others are parquet."""

SPLIT = "split"
"""A column or array of this name marks the splits."""


@dataclass(frozen=True, eq=False)
class Table:
    """The cells of a file; text has a layout, parquet none. rows: which rows of the file these are; None: all."""

    path: Path
    frame: Frame
    layout: Layout | None = None
    rows: Any = None

    def at(self, row: int) -> str:
        """How a message names a row: by the line of the file, where it has lines."""
        row = row if self.rows is None else int(self.rows[row])
        return f"row {row} (counted from 0)" if self.layout is None else f"line {self.layout.line(row)}"


@dataclass(frozen=True, eq=False)
class Source:
    """A file whose columns are known, and whose cells are not read yet (parquet: they are)."""

    path: Path
    names: tuple[str, ...]
    layout: Layout | None = None
    stored: Frame = None

    @property
    def header(self) -> bool:
        """Whether the columns have names of their own."""
        return self.layout is None or self.layout.header

    def read(self, label: str | None, missing: Rule, as_text: Collection[str] = (), words: str | None = None) -> Table:
        """All cells; see ``text.read``."""
        frame = self.stored
        if self.layout is not None:
            known = set(as_text) & set(self.names)
            frame = read(self.layout, label=label, as_text=known, added=missing.added, words=words)
        if len(frame) == 0:
            raise DataError(self.path, "holds no rows")
        return Table(self.path, frame, self.layout)

    def column(self, option: str, given: str | int) -> str:
        """The column that an option names; "last" or -1 is the last one, where none is called so."""
        name = str(given)
        if name not in self.names and name in ("-1", "last"):
            return self.names[-1]
        if name not in self.names:
            columns = f"a column of {self.path}, one of {', '.join(self.names)}"
            raise ArgumentError(option, f"{option} must be {columns}; got {given!r}{did_you_mean(name, self.names)}")
        return name


def open_table(path: Path, header: bool | None = None) -> Source:
    """A file and the names of its columns. header: see ``text.look``."""
    pandas = need("pandas")
    if path.suffix.lower() in TEXT:
        layout = look(path, header)
        return Source(path, layout.names, layout)
    if header is not None:
        raise ArgumentError("header", f"header is for files of text: {path} names its columns itself; leave it out")
    with readable(path):
        frame = pandas.read_parquet(path)
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()  # a column that was made the index is still a column
    frame.columns = [str(column) for column in frame.columns]
    if len(twice := frame.columns[frame.columns.duplicated()]):
        raise DataError(path, f"has two columns called {twice[0]!r}")
    return Source(path, tuple(frame.columns), stored=frame)


def label_column(source: Source, label: str | int | None) -> str:
    """The column that was named, else the one that is called as labels are called."""
    if label is not None:
        return source.column("label", label)
    found = [name for name in source.names if name.lower() in LABELS]
    if len(found) == 1:
        return found[0]
    if found:
        several = f" must be given: {source.path} has {len(found)} columns that may be it, {', '.join(found)}; "
        one = (
            Argument("label", found[0]),
            " takes one, and ",
            Argument("drop", tuple(found[1:])),
            " leaves out the rest",
        )
        raise ArgumentError("label", Message(Argument("label"), several, *one))
    often = next((name for name in source.names if name.lower() in OFTEN), source.names[-1])
    none = f" must be given: {source.path} has no column called {', '.join(LABELS)}; "
    columns = f"its columns are {', '.join(source.names)}; perhaps "
    raise ArgumentError("label", Message(Argument("label"), none + columns, Argument("label", often)))


def read_label(table: Table, name: str, ask: Ask) -> Labels:
    """The labels in a column."""
    pandas = need("pandas")
    column = table.frame[name]
    if not (pandas.api.types.is_numeric_dtype(column) or pandas.api.types.is_bool_dtype(column)):
        column = column.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        column = column.where(~column.isin(LABEL_MARKS), None)
        present = column.dropna()
        bad = present[pandas.to_numeric(present, errors="coerce").isna().to_numpy()]
        if ask.task is None and ask.classes is None and 0 < len(bad) <= 0.1 * len(present):
            where = f"the first {bad.iloc[0]!r} in {table.at(column.index.get_loc(bad.index[0]))}"
            said = f"{ask.name} is a number but in {len(bad):,} of {len(column):,} rows, {where}"
            mend = f"{said}: mend or remove these rows, or pass "
            raise DataError(table.path, Message(mend, Argument("task", "classify")))
        if ask.task == "regress" and len(bad):
            where = table.at(column.index.get_loc(bad.index[0]))
            raise DataError(table.path, f"{ask.name}: {bad.iloc[0]!r} in {where} is no number ({len(bad):,} in all)")
        return read_labels(column.to_numpy(dtype=object), len(column), ask)
    if not column.hasnans and (whole := {"b": "bool", "i": "int64", "u": "uint64"}.get(column.dtype.kind)):
        return read_labels(column.to_numpy(dtype=whole), len(column), ask)
    return read_labels(column.to_numpy(dtype="float64", na_value=float("nan")), len(column), ask)


def split_marks(table: Table, outside: Collection[str] = ()) -> tuple[str | None, Sequence[Any] | None]:
    """The column that marks the splits, and its marks (N,): the one called so, else words for splits, train among them.

    outside: columns that are something else.
    """
    columns = [name for name in table.frame.columns if name not in outside]
    named = [name for name in columns if name.lower() == SPLIT]
    found = named or [name for name in columns if _marks_splits(table.frame[name])]
    if not found:
        return None, None
    if len(found) > 1:
        several = f"has {len(found)} columns that mark splits, {', '.join(found)}: "
        raise DataError(table.path, Message(several, Argument("drop", Open()), " all but one"))
    column = table.frame[found[0]]
    if (holes := column.isna().to_numpy()).any():
        row, count = int(holes.argmax()), int(holes.sum())
        raise DataError(table.path, f"column {found[0]!r} does not mark {table.at(row)} ({count:,} such rows)")
    return found[0], column.tolist()


def _marks_splits(column: Any) -> bool:
    first = column.iloc[0]
    if not isinstance(first, str) or split_of(first) is None:
        return False
    splits = {split_of(str(word)) for word in column.unique()}
    return None not in splits and "train" in splits and len(splits) > 1
