"""One self-contained HTML page about a run: no network, no other file, readable on a phone and by a screen reader.

write_report("report.html", ensemble, test_set, ood={"svhn": svhn})
write_report("report.html", probs, labels, ood={"svhn": probs_of_svhn})
write_report("report.html", [net1, net2, net3], (x, y), ood={"svhn": x_of_svhn})
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import credro
from credro.assess import Say
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.report.page.confusion import LEVELS
from credro.report.page.findings import Findings, Section
from credro.report.page.gather import gather
from credro.report.page.markup import Html, el, embedded, join
from credro.report.page.sections import sections
from credro.report.page.words import method_name
from credro.report.style import COLOURS, INSIDE, SETS
from credro.training.checkpoint import write_bytes

DIM = {"#0072B2": "#3b9bd8"}
"""What replaces a colour that is too dim on a dark page."""
PALETTE: dict[str, tuple[str, str]] = {
    "page": ("#ffffff", "#131417"),
    "raised": ("#f6f6f4", "#1c1e22"),
    "shade": ("#0000001c", "#ffffff1c"),
    "rule": ("#e3e2de", "#32353b"),
    "ink": ("#1b1c1f", "#e9e8e4"),
    "quiet": ("#5c5f66", "#a3a6ad"),
    "accent": (COLOURS["crerl"], COLOURS["crewra"]),
    "truth": (COLOURS["credro"], "#ee7d29"),
    "bad": ("#a84a00", "#ff9a52"),
    "alarm": ("#b3140c", "#ff8a80"),
    "alarm-ground": ("#fdeceb", "#3b1614"),
    "caution": ("#7a5200", "#f2c14e"),
    "caution-ground": ("#fff6e0", "#332813"),
    "inside": (INSIDE, "#c4c6cb"),
    **{f"ood{i}": (colour, DIM.get(colour, colour)) for i, colour in enumerate(SETS)},
}
"""Colours of the page, light and dark; those of the figures wherever they can be."""


def write_report(
    path: str | Path,
    source: Ensemble | Any,
    data: Data | Any,
    *,
    ood: Mapping[str, Any] | None = None,
    method: str | None = None,
    plain: bool = False,
    name: str | None = None,
    each: int = 6,
    say: Say | None = None,
    seen: str = "drop",
) -> Path:
    """Write the report on an ensemble, or on anybody's modules or probabilities, as one HTML file.

    source: an ``Ensemble``, a list of modules that give logits (``Ensemble.of``), or members' probabilities (M, N, C).
    data: labelled samples, a ``Data``, a ``Dataset`` or a pair (x, y); for probabilities the labels (N,) are enough,
    but only a ``Data`` shows its samples.
    ood: OOD sets by name, samples (with or without labels) or probabilities (M, K, C) likewise.
    method: read by this method of the same training rule. plain: without the temperatures of a calibrated ensemble.
    name: what the page calls it. each: samples in a group of the gallery. say: told what is being worked on.
    seen: samples that the run was trained on, has watched or was calibrated on are left out ("drop") or counted
    ("keep"); the page says so in red, as it does where no others are left.

    Labels go by the names of the classes where both sides have them; samples of classes that the ensemble does not
    know are left out with a count, and five or more of them are an OOD set.
    """
    return write_page(
        path, gather(source, data, ood=ood, method=method, plain=plain, name=name, each=each, say=say, seen=seen)
    )


def write_page(path: str | Path, found: Findings) -> Path:
    """The page about what ``gather`` has found, as a file."""
    path = Path(path)
    write_bytes(path, page(found).encode())
    return path


def page(found: Findings) -> str:
    """The whole page as text."""
    parts = sections(found)
    css, js = theme() + asset("page.css"), asset("page.js")
    data: dict[str, Any] = {}
    for part in parts:
        data |= part.data or {}
    a, line = found.assessment, found.line
    against = f", against {', '.join(a.ood)}" if a.ood else ""
    lead = f"{method_name(line.method)}, {a.members} members, {a.samples:,} samples of {a.data}{against}"
    return Template(asset("page.html")).substitute(
        policy=f"default-src 'none'; img-src data:; style-src {_hash(css)}; script-src {_hash(js)}; "
        f"base-uri 'none'; form-action 'none'",
        title=join([a.name, " – credro report"]),
        css=css,
        js=js,
        nav=_navigation(parts),
        name=join([a.name]),
        lead=join([lead]),
        sections=join([part.html for part in parts]),
        data=embedded(data),
        version=credro.__version__,
    )


def theme() -> str:
    """The palette as CSS variables: light, dark when the system or the reader says so, light again on paper."""
    light, dark = (
        "".join(f"--{key}:{pair[i]};" for key, pair in PALETTE.items()) + f"color-scheme:{scheme}"
        for i, scheme in enumerate(("light", "dark"))
    )
    sets = "".join(f".ood{i}{{--own:var(--ood{i})}}" for i in range(len(SETS)))
    sets += "".join(f".heat{i}{{--heat:{i / LEVELS:g}}}" for i in range(1, LEVELS + 1))
    return (
        f":root{{{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{{dark}}}\n"
        f"@media print{{:root,:root:not([data-theme=light]),:root[data-theme=dark]{{{light}}}}}\n"
        f"{sets}\n"
    )


def asset(name: str) -> str:
    """A text file that lies beside this one."""
    return files("credro.report.page").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _navigation(parts: Sequence[Section]) -> Html:
    """Links in a row, and for narrow screens folded into a menu: the style sheet shows one of the two."""
    links = el("ul", *(el("li", el("a", part.short, href=f"#{part.key}")) for part in parts))
    menu = el("details", el("summary", "Contents"), links, id="contents")
    return join(
        [
            el("nav", links, class_="wide", aria_label="Sections"),
            el("nav", menu, class_="narrow", aria_label="Sections"),
        ]
    )
