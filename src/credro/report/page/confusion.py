"""Which classes are taken for which: a matrix of counts, or of many classes the pairs that are confused most."""

from __future__ import annotations

import numpy as np

from credro.report.page.findings import Findings, Section
from credro.report.page.markup import Cell, Html, el, join, number, table
from credro.report.page.numbers import Floats, Integers, confusion
from credro.report.page.words import listed, percent

MOST = 20
"""A matrix of more classes cannot be read; so many pairs are listed instead."""
UPRIGHT = 6
"""Of more classes than this the headings stand upright."""
LEVELS = 10
"""Steps of colour: the page's security policy forbids a colour of each cell's own."""
NAMED = 3


def confused(found: Findings) -> Section:
    """The matrix up to twenty classes, a list beyond."""
    s = found.samples
    counts = confusion(s.labels, s.said, len(s.classes))
    rows = [s.labels == k for k in range(len(s.classes))]
    eu = np.array([float(s.eu[mine].mean()) if mine.any() else np.nan for mine in rows])
    order = pairs(counts)
    if len(s.classes) <= MOST:
        intro = (
            "Samples of each class (rows) by the class they were taken for (columns), with the fraction of the row. "
            "The diagonal is right; the colour is the fraction."
        )
        content = join([matrix(s.classes, counts, eu), el("p", sentence(s.classes, counts, order), class_="note")])
    else:
        intro = f"The pairs of the {len(s.classes)} classes that are confused most often."
        content = pair_table(s.classes, counts, order[:MOST]) if order else el("p", "Nothing is confused.")
    return Section("confusion", "Confusion", "Confusion", intro, content)


def pairs(counts: Integers) -> list[tuple[int, int]]:
    """(true, said) of all confusions, the most frequent first; of equal counts the larger fraction of its class."""
    wrong = [(int(i), int(j)) for i, j in np.argwhere(counts) if i != j]
    return sorted(wrong, key=lambda p: (-counts[p], -counts[p] / counts[p[0]].sum(), p))


def sentence(names: tuple[str, ...], counts: Integers, order: list[tuple[int, int]]) -> str:
    """The most frequent confusions in words."""
    if not order:
        return "Nothing is confused."
    said = [f"{names[i]} taken for {names[j]} ({counts[i, j]:,} of {counts[i].sum():,})" for i, j in order[:NAMED]]
    return f"Most often: {listed(said)}."


def pair_table(names: tuple[str, ...], counts: Integers, order: list[tuple[int, int]]) -> Html:
    """One row for each pair."""
    rows: list[list[Cell | str]] = [
        [
            names[i],
            names[j],
            number(int(counts[i, j]), 0),
            number(float(counts[i, j] / counts[i].sum()), 1, percent=True),
            number(float(counts[i, i] / counts[i].sum()), 1, percent=True),
        ]
        for i, j in order
    ]
    columns = ["True class", "Taken for", "Samples", "Of the class\u00a0%", "Right of the class\u00a0%"]
    return table("Classes that are confused most often", columns, rows)


def matrix(names: tuple[str, ...], counts: Integers, eu: Floats) -> Html:
    """Counts (C, C) with accuracy and mean EU (C,) of each class beside them."""
    upright = "said upright" if len(names) > UPRIGHT else "said"
    head = [el("th", "True class", scope="col")]
    head += [el("th", el("span", name), scope="col", class_=upright, title=f"taken for {name}") for name in names]
    head += [el("th", text, scope="col", class_="number") for text in ("Accuracy\u00a0%", "Mean\u00a0EU", "Samples")]
    caption = "Confusion matrix: true classes in rows, the classes they were taken for in columns"
    body = [_row(k, names, counts[k], float(eu[k])) for k in range(len(names))]
    whole = el(
        "table",
        el("caption", caption, class_="unseen"),
        el("thead", el("tr", *head)),
        el("tbody", *body),
        class_="matrix",
    )
    return el("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _row(k: int, names: tuple[str, ...], counts: Integers, eu: float) -> Html:
    total = int(counts.sum())
    cells = [el("th", el("span", names[k]), scope="row", title=names[k])]
    for j, count in enumerate(counts.tolist()):
        if not count:
            cells.append(el("td", 0, class_="none"))
            continue
        part = count / total
        level = max(1, round(LEVELS * part))
        said = f"{names[k]} taken for {names[j]}: {count:,} of {total:,}, {percent(part)}"
        small = el("small", percent(part, 0) if part >= 0.005 else "<\u00a01\u00a0%")
        cells.append(el("td", f"{count:,}", small, class_=f"heat{level} {'right' if j == k else 'wrong'}", title=said))
    last = [number(counts[k] / total if total else np.nan, 1, percent=True), number(eu, 3), number(total, 0)]
    cells += [el("td", cell.shown, class_="number") for cell in last]
    return el("tr", *cells)
