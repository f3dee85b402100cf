"""Credal sets of three classes on the probability triangle, a sample at a time: the reader chooses which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from credro.credal.sets import Box, CredalSet, Hull
from credro.report.page.markup import Html, el
from credro.report.page.numbers import Floats
from credro.report.page.samples import Samples, eu_text
from credro.report.simplex import CORNERS, polygon, to_plane

CHOICES = 120
"""Samples that can be chosen besides those of the gallery."""
WIDTH, HEIGHT, SIDE, LEFT, BOTTOM = 400, 370, 340, 30, 330
"""Size of the drawing, and the triangle in it."""


def simplex(samples: Samples, groups: Mapping[str, Sequence[int]]) -> tuple[Html, list[dict[str, Any]]]:
    """The drawing with a list to choose a sample from, and what the page's script draws of each.

    groups: title -> numbers of samples; more are added, spread evenly over the order of EU.
    """
    rising = np.argsort(samples.eu, kind="stable")
    even = rising[np.unique(np.linspace(0, len(rising) - 1, min(CHOICES, len(rising))).astype(int))]
    content: list[dict[str, Any]] = []
    options: list[Html] = []
    for title, chosen in {**groups, "From the least to the most uncertain": even.tolist()}.items():
        entries = []
        for n in chosen:
            first = title == "Least certain" and n == chosen[0]  # the largest set says most
            entries.append(el("option", _describe(samples, n), value=len(content), selected=first))
            content.append(_drawn(samples, n))
        if entries:
            options.append(el("optgroup", *entries, label=title))
    chooser = el(
        "div",
        el("label", "Sample", for_="choice"),
        el("select", *options, id="choice"),
        el("button", "Previous", type="button", id="previous"),
        el("button", "Next", type="button", id="next"),
        class_="chooser",
    )
    side = el("div", chooser, el("p", id="chosen", aria_live="polite"), _bounds(samples.classes), class_="beside")
    return el("div", _drawing(samples, samples.mean[even]), side, class_="pair"), content


def _drawing(samples: Samples, means: Floats) -> Html:
    """The triangle with the means of many samples; the script adds the chosen sample's set, members and mean."""
    (a, b), (c, d), (e, f) = _places(CORNERS)
    names = [
        el("text", samples.classes[0], x=a, y=b + 24, class_="corner start"),
        el("text", samples.classes[1], x=c, y=d + 24, class_="corner end"),
        el("text", samples.classes[2], x=e, y=f - 13, class_="corner"),
    ]
    return el(
        "svg",
        el("title", "Credal set of the chosen sample", id="simplex-title"),
        el("desc", id="simplex-desc"),
        el("polygon", points=f"{a},{b} {c},{d} {e},{f}", class_="triangle"),
        *(el("circle", cx=x, cy=y, r=1.8, class_="other") for x, y in _places(to_plane(means))),
        el("polygon", points="", class_="credal", id="credal"),
        *(el("circle", r=4, class_="member") for _ in range(len(samples.prediction.probs))),
        el("path", d="M0 0h0.01", class_="centre", id="centre"),
        *names,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby="simplex-title",
        aria_describedby="simplex-desc",
        class_="simplex",
    )


def _bounds(classes: Sequence[str]) -> Html:
    """A table for the script to fill."""
    titles = ("Class", "Lower", "Mean", "Upper")
    head = el("tr", *(el("th", t, scope="col", class_="number" if t != "Class" else None) for t in titles))
    rows = [el("tr", el("th", name, scope="row"), *(el("td", class_="number") for _ in range(3))) for name in classes]
    caption = el("caption", "Probability interval of each class for the chosen sample", class_="unseen")
    return el("table", caption, el("thead", head), el("tbody", *rows), id="chosen-bounds")


def _describe(samples: Samples, n: int) -> str:
    truth, said = samples.classes[int(samples.labels[n])], samples.classes[int(samples.mean[n].argmax())]
    verdict = f"{said}, right" if truth == said else f"{said}, truly {truth}"
    return f"{samples.name(n)}: {verdict}, EU {eu_text(float(samples.eu[n]))}"


def _drawn(samples: Samples, n: int) -> dict[str, Any]:
    """Places of the set's corners, the members and the mean, and the bounds as text."""
    found = _one(samples.prediction.set, n)
    columns = (samples.lower[n], samples.mean[n], samples.upper[n])
    return {
        "set": [] if found is None else _places(polygon(found)),
        "members": _places(to_plane(samples.prediction.probs[:, n])),
        "mean": _places(to_plane(samples.mean[n : n + 1]))[0],
        "bounds": [[f"{value:.3f}" for value in row] for row in zip(*columns, strict=True)],
    }


def _one(found: CredalSet | None, n: int) -> CredalSet | None:
    """The set of sample n alone."""
    if isinstance(found, Box):
        lower, upper = found.bounds
        return Box(lower[n : n + 1], upper[n : n + 1])
    return None if found is None else Hull(found.part(slice(n, n + 1)))


def _places(points: Floats) -> list[list[float]]:
    """Points (K, 2) of the triangle in the drawing, whose y points down."""
    return [[round(LEFT + SIDE * float(x), 2), round(BOTTOM - SIDE * float(y), 2)] for x, y in points]
