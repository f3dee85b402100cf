"""Single samples: pictures or rows of a table, with the probability intervals of their classes."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from credro.data.base import Data
from credro.readouts import Prediction
from credro.report.page.charts import interval
from credro.report.page.markup import Html, el, join
from credro.report.page.numbers import Floats, Integers

LARGEST = 112
"""Pictures are made smaller until neither side has more pixels than this."""
BARS = 5
"""Classes shown of a sample, when there are more."""
LEAST = 0.005
"""Classes whose upper probability is below this are left out: they would read 0.00."""
VALUES = 8
"""Values shown of a row, when there are more."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What single samples are shown from. lower, mean, upper: (N, C). labels: (N,). data: None where there is none."""

    prediction: Prediction
    labels: Integers
    classes: tuple[str, ...]
    lower: Floats
    mean: Floats
    upper: Floats
    eu: Floats
    data: Data | None

    def name(self, n: int) -> str:
        """The file of sample n, or its number."""
        return self.data.paths[n].name if self.data is not None and self.data.paths else f"Sample {n:,}"


def eu_text(value: float) -> str:
    """EU in three digits."""
    return "0" if value == 0 else "< 0.0001" if value < 1e-4 else f"{value:.3g}"


def gallery(samples: Samples, groups: Mapping[str, tuple[str, Sequence[int]]]) -> Html:
    """Groups of cards. groups: title -> what it means, and the numbers of its samples."""
    parts: list[Html] = []
    for title, (meaning, chosen) in groups.items():
        parts.append(el("h3", title))
        parts.append(el("p", meaning, class_="quiet"))
        if chosen:
            parts.append(el("ul", *(card(samples, n) for n in chosen), class_="cards"))
        else:
            parts.append(el("p", "There are none."))
    return join(parts)


def card(samples: Samples, n: int) -> Html:
    """One sample: what it is, what was said, and the intervals of the likeliest classes and the true one."""
    truth, said = int(samples.labels[n]), int(samples.mean[n].argmax())
    right = truth == said
    likely = [k for k in np.argsort(-samples.upper[n], kind="stable").tolist() if samples.upper[n, k] >= LEAST]
    order = sorted(list(dict.fromkeys([said, truth, *likely]))[:BARS], key=lambda k: -samples.upper[n, k])
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
    verdict = [el("span", "right" if right else "wrong", class_=f"verdict {'right' if right else 'wrong'}")]
    verdict.append(
        join(
            [" ", el("b", samples.classes[said]), "" if right else join([", truly ", el("b", samples.classes[truth])])]
        )
    )
    facts = el(
        "div",
        el("p", *verdict, class_="said"),
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


def _picture(samples: Samples, n: int) -> Html | None:
    data = samples.data
    if data is None:
        return None
    sample = data.batch(torch.tensor([n]))[0]
    if is_image(data.shape):
        uri, width, height = png(sample)
        alt = f"{samples.name(n)}, an image of class {samples.classes[int(samples.labels[n])]}"
        return el("img", src=uri, alt=alt, width=width, height=height, class_="picture")
    if len(data.shape) != 1:
        return None
    rows = values(data, sample)
    hidden = len(rows) - VALUES
    shown = [el("div", el("dt", name, title=name), el("dd", value)) for name, value in rows[:VALUES]]
    more = el("div", el("dt", f"and {hidden} more")) if hidden > 0 else None
    return el("dl", *shown, more, class_="row")


def is_image(shape: Sequence[int]) -> bool:
    """Whether samples of this shape can be looked at."""
    return len(shape) == 3 and shape[0] in (1, 3)


def values(data: Data, sample: Tensor) -> list[tuple[str, str]]:
    """A row's columns and values; of a column that was spread over several (``colour=red``) the one that is 1."""
    names = data.columns or tuple(f"x{i}" for i in range(len(sample)))
    rows = []
    for name, value in zip(names, sample.tolist(), strict=True):
        column, sign, category = name.partition("=")
        if sign and value in (0, 1):
            if value == 1:
                rows.append((column, category))
        else:
            rows.append((name, f"{value:.4g}"))
    return rows


def png(image: Tensor) -> tuple[str, int, int]:
    """A picture (C, H, W) as a data URI, with its width and height. Floats are stretched from black to white."""
    from PIL import Image

    if image.dtype != torch.uint8:
        low, high = image.min(), image.max()
        image = ((image - low) / (high - low).clamp_min(1e-12) * 255).round().to(torch.uint8)
    pixels = image.permute(1, 2, 0).cpu().numpy()
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels))
    if max(picture.size) > LARGEST:
        picture.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}", *picture.size
