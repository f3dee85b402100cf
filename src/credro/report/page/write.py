"""One self-contained HTML page about a run: no network, no other file, readable on a phone and by a screen reader.

write_report("report.html", ensemble, test_set, ood={"svhn": svhn})
write_report("report.html", probs, labels, ood={"svhn": probs_of_svhn})
write_report("report.html", [net1, net2, net3], (x, y), ood={"svhn": x_of_svhn})
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import credro
from credro._templates import render
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.evaluation import Evaluation, Say
from credro.methods import label
from credro.report.page._findings import Findings
from credro.report.page._sections import TEMPLATES, sections
from credro.report.page._tables import LEVELS
from credro.report.page.gather import gather
from credro.report.style import INSIDE, SETS
from credro.training.files import write_bytes

DIM = {"#0072B2": "#3b9bd8"}
"""What replaces a colour that is too dim on a dark page."""
PALETTE: dict[str, tuple[str, str]] = {
    "page": ("#ffffff", "#131417"),
    "raised": ("#f6f6f4", "#1c1e22"),
    "shade": ("#0000001c", "#ffffff1c"),
    "rule": ("#e3e2de", "#32353b"),
    "ink": ("#1b1c1f", "#e9e8e4"),
    "quiet": ("#5c5f66", "#a3a6ad"),
    "accent": ("#0072B2", "#56B4E9"),
    "truth": ("#D55E00", "#ee7d29"),
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
    source: Ensemble | Evaluation | Any,
    data: Data | Evaluation | Any = None,
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

    Labels go by the names of the classes where both sides have them; samples of classes that the ensemble does not
    know are left out with a count, and five or more of them are an OOD set.

    Args:
        path: the file.
        source: an ``Ensemble``, a list of modules that give logits (``Ensemble.of``), members' probabilities (M, N, C),
            or an ``Evaluation`` of any of them, of which nothing is predicted again. An evaluation does not know how
            the members were trained: give the ensemble, and the evaluation as ``data``, for a page that does.
        data: labelled samples, a ``Data``, a ``Dataset`` or a pair (x, y); for probabilities the labels (N,) are
            enough, but only a ``Data`` shows its samples. For an ensemble it may be its ``Evaluation``; with an
            ``Evaluation`` as source it is needed for probabilities only.
        ood: OOD sets by name, samples (with or without labels) or probabilities (M, K, C) likewise.
        method: read by this method, which must be able to read the members. If not given, that of the ensemble; of
            others the first with a credal set.
        plain: without the temperatures of a calibrated ensemble.
        name: what the page calls it.
        each: samples in a group of the gallery.
        say: told what is being worked on.
        seen: samples that the run was trained on, has watched or was calibrated on are left out ("drop") or counted
            ("keep"); the page says so in red, as it does where no others are left.
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
    from markupsafe import Markup

    parts = sections(found)
    theme = render(f"{TEMPLATES}/theme.css.j2", palette=PALETTE, sets=len(SETS), levels=LEVELS)
    css, js = f"{theme}\n{_asset('page.css')}", _asset("page.js")
    evaluation = found.evaluation
    against = f", against {', '.join(evaluation.ood)}" if evaluation.ood else ""
    return render(
        f"{TEMPLATES}/page.html.j2",
        policy=f"default-src 'none'; img-src data:; style-src {_hash(css)}; script-src {_hash(js)}; "
        f"base-uri 'none'; form-action 'none'",
        name=evaluation.name,
        lead=f"{label(found.result.method)}, {evaluation.members} members, {evaluation.samples:,} samples of "
        f"{evaluation.data}{against}",
        css=Markup(css),
        js=Markup(js),
        sections=parts,
        data={key: value for part in parts for key, value in part.data.items()},
        version=credro.__version__,
    )


def _asset(name: str) -> str:
    """A text file that lies beside the templates."""
    return (files("credro") / TEMPLATES / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
