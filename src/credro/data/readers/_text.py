"""Tables as text: what is between the cells, whether there is a header, and the lines that rows stand on."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from credro._names import Argument, ArgumentError, Message
from credro.data.errors import DataError, need
from credro.data.readers._missing import LABEL_MARKS, MARKS

Frame = Any
"""A pandas ``DataFrame``; pandas is imported where it is used."""

SPACE = r"\s+"
LOOKED_AT = 1000
"""So many rows are looked at to tell whether there is a header, before all of them are."""

MOSTLY = 0.9
"""A column is one of numbers if so many of its cells are."""

DECIMAL_COMMA = r"[+-]?\d+,\d+"


@dataclass(frozen=True)
class Layout:
    """How a file of text is laid out. between: what separates cells, as pandas takes it. names: of the columns."""

    path: Path
    between: str
    header: bool
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def line(self, row: int) -> int:
        """The line of the file, counted from 1, on which row ``row`` of the data, counted from 0, begins."""
        wanted = row + self.header
        with open(self.path, encoding="utf-8-sig", newline="") as file:
            if self.between == SPACE:
                lines = (i for i, line in enumerate(file, 1) if line.strip())
                return next(i for n, i in enumerate(lines) if n == wanted)
            reader = csv.reader(file, delimiter=self.between)
            begins, seen = 1, -1
            for cells in reader:
                seen += len(cells) > 1 or any(map(str.strip, cells))  # pandas passes over blank lines
                if seen == wanted:
                    return begins
                begins = reader.line_num + 1
        raise IndexError(row)


def first_row(path: Path) -> list[str]:
    """The cells of the first row, as text."""
    return _first(_opened(path)[1])


def look(path: Path, header: bool | None = None) -> Layout:
    """The layout of a file; ``header`` says whether its first row names the columns, None: the file tells."""
    between, rows = _opened(path)
    first = _first(rows)
    if header is None:
        header = _has_header(first, rows.iloc[1:], between)
        if header is None and len(rows) == LOOKED_AT:
            header = _has_header(first, _peek(path, between, None).iloc[1:], between)
        if header is None:
            row = f"its first row ({', '.join(first[:8])}, ...)"
            unclear = f" must be given: {path} does not tell whether {row} names the columns; "
            does = Argument("header", True), ": it does, ", Argument("header", False), ": it is a sample"
            raise ArgumentError("header", Message(Argument("header"), unclear, *does))
    if not header:
        names = tuple(str(i) for i in range(len(first)))
        return Layout(path, between, False, names, (f"no header: columns are called 0 to {len(first) - 1}",))
    names = tuple(cell or f"Unnamed: {i}" for i, cell in enumerate(first))
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        same = f"has two columns called {twice[0]!r}; if its first row is a sample, pass "
        raise DataError(path, Message(same, Argument("header", False)))
    counts = [f"header: the first row, {', '.join(first[:3])}, ..., is taken for names of columns"]
    return Layout(path, between, True, names, tuple(counts if _counts(first) else ()))


def read(layout: Layout, *, label: str | None, as_text: Collection[str] = (), added: Sequence[str] = (),
         words: str | None = None) -> Frame:  # fmt: skip
    """The table, with missing values where cells are marked so; columns ``as_text`` keep their cells as they stand.

    added: marks of missing values beside the known ones; they do not count for the label. words: a column of free text,
    in which "none" and "NA" are words, and only an empty cell or a mark that was added is missing.
    """
    pandas = need("pandas")
    marks = {name: [*MARKS, *added] for name in layout.names}
    if label is not None:
        marks[label] = list(LABEL_MARKS)
    if words is not None:
        marks[words] = ["", *added]
        as_text = {*as_text, words}

    def parse(decimal: str, low_memory: bool = True) -> Frame:
        cells = {"dtype": dict.fromkeys(as_text, str), "na_values": marks, "keep_default_na": False}
        names = {"header": 0 if layout.header else None, "names": list(layout.names), "index_col": False}
        return _csv(layout.path, layout.between, decimal=decimal, low_memory=low_memory, **cells, **names)

    def whole(decimal: str) -> Frame:
        """In pieces, since that is faster; at once if a column came out as numbers in one piece and text in another."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.DtypeWarning)
            try:
                return parse(decimal)
            except pandas.errors.DtypeWarning:
                return parse(decimal, low_memory=False)

    with readable(layout.path):
        frame = whole(".")
        if layout.between != "," and _has(frame, DECIMAL_COMMA) and not _has_fractions(frame):
            frame = whole(",")
            frame.attrs["decimal comma"] = True
    return frame


def _opened(path: Path) -> tuple[str, Frame]:
    """What separates the cells of a file, and its first rows."""
    with readable(path):
        with open(path, encoding="utf-8-sig") as file:
            between = _between(list(islice(file, 20)))
        return between, _peek(path, between, LOOKED_AT)


def _first(rows: Frame) -> list[str]:
    return [str(cell).strip() for cell in rows.iloc[0]]


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever goes wrong in reading a table is an error that names the file."""
    try:
        yield
    except ImportError as error:
        raise ModuleNotFoundError("pyarrow is needed to read parquet: pip install 'credro[data]'") from error
    except (FileNotFoundError, DataError):
        raise
    except UnicodeDecodeError as error:
        raise DataError(path, f"not a readable table ({error}): save it as UTF-8") from error
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise DataError(path, f"not a readable table ({type(error).__name__}: {error})") from error


def _has(frame: Frame, pattern: str) -> bool:
    """Whether any cell that is not a number looks like this."""
    words = frame.select_dtypes(exclude="number")
    return any(words[c].dropna().astype(str).str.strip().str.fullmatch(pattern).any() for c in words)


def _has_fractions(frame: Frame) -> bool:
    """Whether there are numbers with a decimal point."""
    floats = frame.select_dtypes("floating")
    return any(((column := floats[c].dropna()) != column.round()).any() for c in floats)


def _between(lines: Sequence[str]) -> str:
    """Semicolons, tabs or commas, whichever divides all lines alike (else most of the first one), or white space."""
    bare = [re.sub(r'"[^"]*"', '""', line.rstrip("\r\n")) for line in lines if line.strip()]
    if not bare:
        return ","
    alike = [mark for mark in ";\t," if mark in bare[0] and len({line.count(mark) for line in bare}) == 1]
    if alike:
        return alike[0]
    most = max(",;\t", key=bare[0].count)
    if most in bare[0]:
        return most
    widths = {len(line.split()) for line in bare}
    return SPACE if len(widths) == 1 and widths != {1} else ","


def _peek(path: Path, between: str, rows: int | None) -> Frame:
    """The first rows as text, the header among them."""
    return _csv(path, between, header=None, dtype=str, na_filter=False, nrows=rows)


def _csv(path: Path, between: str, **options: Any) -> Frame:
    return need("pandas").read_csv(path, sep=between, skipinitialspace=True, encoding="utf-8-sig", **options)


def _has_header(first: Sequence[str], below: Frame, between: str) -> bool | None:
    """Whether the first row names the columns; None: it cannot be told.

    A word above a column of numbers is a name. A number there is a sample's, and so is a word that occurs again below
    it; but 0, 1, 2, ... are names, as pandas writes them, and 2019 beside a word above numbers may be one.
    """
    words = numbers = again = never = 0
    is_number = are_numbers(first, between)
    for i, cell in enumerate(first):
        cells = below[i].fillna("").str.strip()
        cells = cells[~cells.isin(MARKS)]
        if len(cells) == 0:
            continue
        if are_numbers(cells, between).mean() >= MOSTLY:
            words += cell not in MARKS and not is_number[i]
            numbers += bool(is_number[i])
            if words and not is_number.any():
                return True  # as nearly always: no need to look at all columns
        elif (cells == cell).any():
            again += 1
        elif cells.nunique() <= len(cells) / 2:  # values that recur, but never this one
            never += 1
    measured = any(_is_a_value(cell, number) for cell, number in zip(first, is_number, strict=True))
    if words:
        return True if not numbers or (_counts(first) and not again) else False if measured else None
    if again:
        return None if never and not numbers else False
    if numbers and _counts(first):
        return True
    if numbers:
        return None if (never and not measured) or list(first) == ["0", "1"] else False
    return not measured


def _is_a_value(cell: str, number: bool) -> bool:
    """Whether a cell cannot be a name: -1.5, True, ?"""
    return (number and not cell.isdigit()) or cell.lower() in ("true", "false") or (cell != "" and cell in MARKS)


def _counts(first: Sequence[str]) -> bool:
    """Whether the numbers of a row are 0, 1, 2, ..., as pandas names columns that have no names."""
    counted = [cell for cell in first if cell.isdigit()]
    return len(counted) > 2 and counted == [str(i) for i in range(len(counted))]


def are_numbers(cells: Any, between: str = ",") -> Any:
    """Which cells (N,) are numbers; with a decimal comma, too, where cells are not separated by commas."""
    pandas = need("pandas")
    texts = pandas.Series(cells, dtype=object)
    if between != ",":
        texts = texts.where(~texts.str.fullmatch(DECIMAL_COMMA), texts.str.replace(",", "."))
    return pandas.to_numeric(texts, errors="coerce").notna().to_numpy()
