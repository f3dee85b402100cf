"""Tables, numbers and embedded data of the page; its elements are those of ``credro.readouts.markup``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from credro.readouts.markup import Html, el, join

__all__ = ["Cell", "Html", "behind", "el", "embedded", "join", "number", "table"]


def embedded(content: Any) -> Html:
    """JSON that may stand inside a ``script`` element: it cannot end it, nor open a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@dataclass(frozen=True)
class Cell:
    """What a table shows, and the number it is sorted by; text is sorted as text."""

    shown: object
    value: float | None = None
    best: bool = False


def number(value: float, digits: int = 2, *, percent: bool = False, best: bool = False) -> Cell:
    """A number to so many places, a fraction in per cent; NaN is a dash."""
    if value != value:
        return Cell("–", -1e300)
    return Cell(f"{100 * value if percent else value:,.{digits}f}", value, best)


def table(
    caption: str,
    columns: Sequence[object],
    rows: Sequence[Sequence[Cell | str]],
    *,
    marked: Sequence[int] = (),
    sortable: bool = True,
    hidden_caption: bool = True,
) -> Html:
    """A table whose columns sort at a click; the first cell of a row is its heading.

    marked: rows that the page is about. Wide ones scroll in a region of their own, which the keyboard reaches.
    """
    numeric = [i > 0 and all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    head = [_heading(column, right, sortable) for column, right in zip(columns, numeric, strict=True)]
    body = [
        el(
            "tr",
            *(
                _data(_cell(cell), right, first=i == 0)
                for i, (cell, right) in enumerate(zip(row, numeric, strict=True))
            ),
            class_="marked" if n in marked else None,
        )
        for n, row in enumerate(rows)
    ]
    whole = el(
        "table",
        el("caption", caption, class_="unseen" if hidden_caption else None),
        el("thead", el("tr", *head)),
        el("tbody", *body),
        class_="sortable" if sortable else None,
    )
    return el("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def behind(summary: str, content: Html) -> Html:
    """What is shown when asked for."""
    return el("details", el("summary", summary), content)


def _heading(column: object, right: bool, sortable: bool) -> Html:
    inside: object = el("button", column, type="button") if sortable else column
    return el("th", inside, scope="col", class_="number" if right else None, aria_sort="none" if sortable else None)


def _data(cell: Cell, right: bool, *, first: bool) -> Html:
    shown = el("strong", cell.shown) if cell.best else cell.shown
    value = None if cell.value is None else f"{cell.value:.10g}"
    if first:
        return el("th", shown, scope="row", class_="number" if right else None, data_value=value)
    return el("td", shown, class_="number" if right else None, data_value=value)


def _is_number(given: Cell | str) -> bool:
    return isinstance(given, Cell) and given.value is not None and not isinstance(given.shown, Html)


def _cell(given: Cell | str) -> Cell:
    return given if isinstance(given, Cell) else Cell(given)
