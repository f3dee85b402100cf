"""Single samples: pictures or rows of a table, with the probability intervals of their classes."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.sheet import thumbnail
from credro.readouts import Prediction
from credro.report.page.charts import interval
from credro.report.page.markup import Html, el, join
from credro.report.page.numbers import Floats, Integers, as_floats

if TYPE_CHECKING:
    from PIL import Image

LARGEST = 192
"""Pictures are made smaller until neither side has more pixels than this: twice what they take on the page."""
COARSE = 64
"""Pictures up to this size are shown by their very pixels, enlarged."""
QUALITY = 82
BARS = 5
"""Classes shown of a sample, when there are more."""
LEAST = 0.005
"""Classes whose upper probability is below this are left out: they would read 0.00."""
VALUES = 8
"""Values shown of a row, when there are more."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What single samples are shown from: N predictions. labels: (N,), -1 where a sample is of none of the classes.

    data: None where there is none. origin: the name of an OOD set, empty for ID samples.
    """

    prediction: Prediction
    classes: tuple[str, ...]
    data: Data | None
    labels: Integers
    origin: str = ""

    @classmethod
    def ood(cls, prediction: Prediction, classes: tuple[str, ...], data: Data | None, name: str) -> Samples:
        """Samples of an OOD set, whose labels, if any, do not matter."""
        return cls(prediction, classes, data, np.full(len(prediction.mean), -1), name)

    @cached_property
    def lower(self) -> Floats:
        """Lower probabilities (N, C)."""
        return as_floats(self.prediction.lower)

    @cached_property
    def mean(self) -> Floats:
        """Point predictions (N, C)."""
        return as_floats(self.prediction.mean)

    @cached_property
    def upper(self) -> Floats:
        """Upper probabilities (N, C)."""
        return as_floats(self.prediction.upper)

    @cached_property
    def eu(self) -> Floats:
        """Epistemic uncertainty (N,)."""
        return as_floats(self.prediction.epistemic)

    @cached_property
    def said(self) -> Integers:
        """Predicted classes (N,)."""
        found: Integers = self.mean.argmax(1)
        return found

    def name(self, n: int) -> str:
        """The file of sample n, or its number."""
        return self.data.paths[n].name if self.data is not None and self.data.paths else f"Sample {n:,}"


def eu_text(value: float) -> str:
    """EU in three digits."""
    return "0" if value == 0 else "< 0.0001" if value < 1e-4 else f"{value:.3g}"


@dataclass(frozen=True)
class Group:
    """A part of the gallery: a title (none: it goes on with the one before), what it shows, which samples."""

    title: str
    meaning: str
    samples: Samples
    chosen: Sequence[int]


def gallery(groups: Sequence[Group]) -> Html:
    """Groups of cards."""
    parts: list[Html] = []
    for group in groups:
        if group.title:
            parts.append(el("h3", group.title))
        parts.append(el("p", group.meaning, class_="quiet"))
        if group.chosen:
            parts.append(el("ul", *(card(group.samples, n) for n in group.chosen), class_="cards"))
        else:
            parts.append(el("p", "There are none."))
    return join(parts)


def card(samples: Samples, n: int) -> Html:
    """One sample: what it is, what was said, and the intervals of the likeliest classes and the true one."""
    truth, said = int(samples.labels[n]), int(samples.said[n])
    likely = [k for k in np.argsort(-samples.upper[n], kind="stable").tolist() if samples.upper[n, k] >= LEAST]
    known = [said, truth] if truth >= 0 else [said]
    order = sorted(list(dict.fromkeys([*known, *likely]))[:BARS], key=lambda k: -samples.upper[n, k])
    rows = [
        el(
            "li",
            el("span", name := samples.classes[k], class_="class truth" if k == truth else "class", title=name),
            interval(
                float(samples.lower[n, k]),
                float(samples.mean[n, k]),
                float(samples.upper[n, k]),
                "truth" if k == truth else "",
            ),
            el("span", _range(samples.lower[n, k], samples.upper[n, k]), class_="range"),
        )
        for k in order
    ]
    facts = el(
        "div",
        el("p", *_verdict(samples, truth, said), class_="said"),
        el("p", samples.name(n), " · EU ", eu_text(float(samples.eu[n])), class_="quiet"),
        el("ul", *rows, class_="bars", aria_label="probability intervals"),
        class_="facts",
    )
    picture = _picture(samples, n)
    if samples.data is not None and is_image(samples.data.shape):
        return el("li", picture, facts, class_="card")
    return el("li", facts, picture, class_="card tall")


def _range(low: float, high: float) -> str:
    return f"{low:.2f}–{high:.2f}" if high >= LEAST else f"< {2 * LEAST:g}"


def _verdict(samples: Samples, truth: int, said: int) -> list[Html]:
    """What was answered, and whether it is right; of an OOD sample no answer is."""
    answer = el("b", samples.classes[said])
    if truth < 0:
        return [el("span", "OOD", class_="verdict ood"), join([" taken for ", answer])]
    if truth == said:
        return [el("span", "right", class_="verdict right"), join([" ", answer])]
    return [
        el("span", "wrong", class_="verdict wrong"),
        join([" ", answer, ", truly ", el("b", samples.classes[truth])]),
    ]


def _picture(samples: Samples, n: int) -> Html | None:
    data = samples.data
    if data is None:
        return None
    if is_image(data.shape):
        truth = int(samples.labels[n])
        of = (
            f"an image of class {samples.classes[truth]}" if truth >= 0 else f"an image of the OOD set {samples.origin}"
        )
        uri, width, height = picture(data, n)
        kind = "picture pixels" if max(width, height) <= COARSE else "picture"
        return el("img", src=uri, alt=f"{samples.name(n)}, {of}", width=width, height=height, class_=kind)
    if len(data.shape) != 1:
        return None
    rows = values(data, data.batch(torch.tensor([n]))[0])
    hidden = len(rows) - VALUES
    shown = [el("div", el("dt", name, title=name), el("dd", value)) for name, value in rows[:VALUES]]
    more = el("div", el("dt", f"and {hidden} more")) if hidden > 0 else None
    return el("dl", *shown, more, class_="row")


def is_image(shape: Sequence[int]) -> bool:
    """Whether samples of this shape can be looked at."""
    return len(shape) == 3 and shape[0] in (1, 3)


def values(data: Data, sample: Tensor) -> list[tuple[str, str]]:
    """A row's columns and values; of a category, which is spread over several features, the value that is meant."""
    numbers = sample.tolist()
    if data.spec is not None and sum(len(c.features) for c in data.spec.columns) == len(numbers):
        rows, at = [], 0
        for column in data.spec.columns:
            part, at = numbers[at : at + len(column.features)], at + len(column.features)
            if column.values is None:
                rows.append((column.name, f"{part[0]:.4g}"))
            else:
                meant = column.features[part.index(1)].removeprefix(f"{column.name}=") if 1 in part else "–"
                rows.append((column.name, meant))
        return rows
    names = data.columns or tuple(f"x{i}" for i in range(len(numbers)))
    rows = []
    for name, value in zip(names, numbers, strict=True):  # a run of version 0.1: what is left is ``colour=red``
        column_name, sign, category = name.partition("=")
        if sign and value in (0, 1):
            if value == 1:
                rows.append((column_name, category))
        else:
            rows.append((name, f"{value:.4g}"))
    return rows


def picture(data: Data, n: int) -> tuple[str, int, int]:
    """Sample n as a data URI with its width and height: sharp from its file where it has one, else as it is stored."""
    from PIL.Image import Resampling

    if not data.paths:
        return encoded(as_image(data.batch(torch.tensor([n]))[0]))
    image = thumbnail(data, n, LARGEST)
    if image.width > LARGEST:
        image = image.resize((LARGEST, max(1, round(image.height * LARGEST / image.width))), Resampling.LANCZOS)
    return encoded(image)


def as_image(sample: Tensor) -> Image.Image:
    """Stored pixels (C, H, W), made smaller if they are large. Floats are stretched from black to white."""
    from PIL import Image

    if sample.dtype != torch.uint8:
        low, high = sample.min(), sample.max()
        sample = ((sample - low) / (high - low).clamp_min(1e-12) * 255).round().to(torch.uint8)
    pixels = sample.permute(1, 2, 0).cpu().numpy()
    image = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels))
    if max(image.size) > LARGEST:
        image.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
    return image


def encoded(image: Image.Image) -> tuple[str, int, int]:
    """A data URI, width and height: the very pixels of a small image, of a larger one JPEG where that is shorter."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    kind, content = "png", file.getvalue()
    if max(image.size) > COARSE:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=QUALITY, optimize=True)
        if len(file.getvalue()) < len(content):
            kind, content = "jpeg", file.getvalue()
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}", *image.size
