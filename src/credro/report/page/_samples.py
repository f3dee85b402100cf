"""Single samples: pictures or rows of a table, with the probability intervals of their classes."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.sheet import thumbnail
from credro.prediction import Prediction
from credro.report.page._numbers import Floats, Integers, as_floats

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
LETTERS = 400
"""Letters shown of a text, when it is longer."""
VALUES = 8
"""Values shown of a row, when there are more."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What single samples are shown from: N predictions. labels: (N,), -1 where a sample is of none of the classes.

    data: None where there is none. origin: the name of an OOD set, empty for ID samples. lower, mean, upper: (N, C)
    probabilities. eu, said: (N,) epistemic uncertainty and predicted class.
    """

    prediction: Prediction
    classes: tuple[str, ...]
    data: Data | None
    labels: Integers
    origin: str = ""
    lower: Floats = field(init=False)
    mean: Floats = field(init=False)
    upper: Floats = field(init=False)
    eu: Floats = field(init=False)
    said: Integers = field(init=False)

    @classmethod
    def ood(cls, prediction: Prediction, classes: tuple[str, ...], data: Data | None, name: str) -> Samples:
        """Samples of an OOD set, whose labels, if any, do not matter."""
        return cls(prediction, classes, data, np.full(len(prediction), -1), name)

    def __post_init__(self) -> None:
        """The prediction in numpy."""
        p = self.prediction
        for name, values in (("lower", p.lower), ("mean", p.mean), ("upper", p.upper), ("eu", p.epistemic)):
            object.__setattr__(self, name, as_floats(values))
        object.__setattr__(self, "said", self.mean.argmax(1))

    def name(self, n: int) -> str:
        """The file of sample n, or its number."""
        return self.data.paths[n].name if self.data is not None and self.data.paths else f"Sample {n:,}"

    def eu_text(self, n: int) -> str:
        """EU of sample n in three digits."""
        value = float(self.eu[n])
        return "0" if value == 0 else "< 0.0001" if value < 1e-4 else f"{value:.3g}"


@dataclass(frozen=True)
class Picture:
    """An image as a data URI, and what it shows, in words."""

    uri: str
    width: int
    height: int
    alt: str


@dataclass(frozen=True)
class Card:
    """Sample n. order: the likeliest classes and the true one. values: of a row, by column; ``hidden`` more of them."""

    samples: Samples
    n: int
    order: Sequence[int]
    picture: Picture | None = None
    values: Sequence[tuple[str, str]] = ()
    hidden: int = 0
    text: str = ""


@dataclass(frozen=True)
class Group:
    """A part of the gallery. title: none if it goes on with the one before."""

    title: str
    meaning: str
    cards: Sequence[Card]


def group(title: str, meaning: str, samples: Samples, chosen: Sequence[int]) -> Group:
    """The samples with these numbers."""
    return Group(title, meaning, [card(samples, n) for n in chosen])


def card(samples: Samples, n: int) -> Card:
    """What is shown of sample n."""
    truth, said, data = int(samples.labels[n]), int(samples.said[n]), samples.data
    likely = [k for k in np.argsort(-samples.upper[n], kind="stable").tolist() if samples.upper[n, k] >= LEAST]
    known = [said, truth] if truth >= 0 else [said]
    order = sorted(list(dict.fromkeys([*known, *likely]))[:BARS], key=lambda k: -samples.upper[n, k])
    if data is not None and is_image(data.shape):
        of = f"class {samples.classes[truth]}" if truth >= 0 else f"the OOD set {samples.origin}"
        return Card(samples, n, order, Picture(*picture(data, n), f"{samples.name(n)}, an image of {of}"))
    if data is not None and (texts := data.texts) is not None:
        return Card(samples, n, order, text=texts[n] if len(texts[n]) <= LETTERS else texts[n][:LETTERS] + " …")
    row = values(data, data.batch(torch.tensor([n]))[0]) if data is not None and len(data.shape) == 1 else []
    return Card(samples, n, order, None, row[:VALUES], max(0, len(row) - VALUES))


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
