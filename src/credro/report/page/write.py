"""One self-contained HTML page about a run: no network, no other file, readable on a phone and by a screen reader.

write_report("report.html", ensemble, test_set, ood={"svhn": svhn})
write_report("report.html", probs, labels, ood={"svhn": probs_of_svhn})
write_report("report.html", [net1, net2, net3], (x, y), ood={"svhn": x_of_svhn})
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import torch
from torch import Tensor

import credro
from credro.assess import Assessment, Say, are_modules, assess, assess_probs, conform_to, line_of, unlabelled
from credro.data.base import Data, as_data
from credro.ensemble import Ensemble
from credro.methods import make
from credro.readouts import Prediction
from credro.report.page.findings import Findings, Section
from credro.report.page.markup import Html, el, embedded, join
from credro.report.page.numbers import Floats, as_numpy
from credro.report.page.samples import Samples
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
) -> Path:
    """Write the report on an ensemble, or on anybody's modules or probabilities, as one HTML file.

    source: an ``Ensemble``, a list of modules that give logits (``Ensemble.of``), or members' probabilities (M, N, C).
    data: labelled samples, a ``Data``, a ``Dataset`` or a pair (x, y); for probabilities the labels (N,) are enough,
    but only a ``Data`` shows its samples.
    ood: strangers by name, samples (with or without labels) or probabilities (M, K, C) likewise.
    method: read by this method of the same training rule. plain: without the temperatures of a calibrated ensemble.
    name: what the page calls it. each: samples in a group of the gallery. say: told what is being worked on.
    """
    if each < 1:
        raise ValueError(f"each must be at least 1, got {each}")
    if are_modules(source):
        data = as_data(data)
        source = Ensemble.of(source, data)
    if isinstance(source, Ensemble):
        found = _of_ensemble(source, data, ood or {}, method, plain, name, each, say)
    else:
        found = _of_probs(source, data, ood or {}, method, name, each, say)
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
    strangers = f", against {', '.join(a.ood)}" if a.ood else ""
    lead = f"{method_name(line.method)}, {a.members} members, {a.samples:,} samples of {a.data}{strangers}"
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
    return el("ul", *(el("li", el("a", part.short, href=f"#{part.key}")) for part in parts))


def _of_ensemble(
    ensemble: Ensemble,
    data: Any,
    ood: Mapping[str, Any],
    method: str | None,
    plain: bool,
    name: str | None,
    each: int,
    say: Say | None,
) -> Findings:
    reader = ensemble.read_as(ensemble.method if method in (None, ensemble.method.name) else str(method))
    if plain:
        reader.temperatures = [1.0] * len(reader)
    shape = ensemble.inputs.shape
    known, strangers = conform_to(as_data(data), shape), {k: conform_to(unlabelled(v), shape) for k, v in ood.items()}
    assessment = assess(ensemble, known, strangers, name=name, say=say)
    if say is not None:
        say("writing the report")
    return _findings(
        assessment,
        reader.method.name,
        reader.calibrated,
        reader.predict(known),
        known.labels,
        {k: reader.predict(v) for k, v in strangers.items()},
        classes=ensemble.classes,
        data=known,
        config=None if ensemble.run is None else ensemble.run.config(),
        records=ensemble.records,
        temperatures=ensemble.temperatures,
        each=each,
    )


def _of_probs(
    probs: Any,
    data: Data | Any,
    ood: Mapping[str, Any],
    method: str | None,
    name: str | None,
    each: int,
    say: Say | None,
) -> Findings:
    labels = data.labels if isinstance(data, Data) else torch.as_tensor(data)
    assessment = assess_probs(probs, labels, ood, name=name or "probabilities", say=say)
    if method is not None and method not in (known := [line.method for line in assessment.lines]):
        raise ValueError(f"method must be one of {', '.join(known)} for probabilities, got {method!r}")
    chosen = make(method or "crewra")
    return _findings(
        assessment,
        chosen.name,
        False,
        chosen.readout(torch.as_tensor(probs)),
        labels,
        {k: chosen.readout(torch.as_tensor(v)) for k, v in ood.items()},
        classes=data.classes if isinstance(data, Data) else (),
        data=data if isinstance(data, Data) else None,
        config=None,
        records=(),
        temperatures=(),
        each=each,
    )


def _findings(
    assessment: Assessment,
    method: str,
    calibrated: bool,
    prediction: Prediction,
    labels: Tensor,
    ood: Mapping[str, Prediction],
    *,
    classes: Sequence[str],
    data: Data | None,
    config: dict[str, Any] | None,
    records: Sequence[dict[str, Any]],
    temperatures: Sequence[float],
    each: int,
) -> Findings:
    try:
        line = assessment.line(method, calibrated)
    except KeyError:  # a method of the user's own
        line = line_of(method, calibrated, prediction, labels, ood)
        assessment = replace(assessment, lines=(*assessment.lines, line))
    mean, lower, upper = (_floats(part) for part in (prediction.mean, prediction.lower, prediction.upper))
    names = tuple(classes) if len(classes) == mean.shape[1] else tuple(map(str, range(mean.shape[1])))
    truth = as_numpy(labels).astype(np.int64)
    shown = Samples(prediction, truth, names, lower, mean, upper, _floats(prediction.epistemic), data)
    eu = {k: _floats(p.epistemic) for k, p in ood.items()}
    return Findings(assessment, line, prediction, shown, eu, config, records, temperatures, each)


def _floats(values: Any) -> Floats:
    return as_numpy(values).astype(np.float64)
