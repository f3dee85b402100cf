"""Pictures of samples: a thumbnail of one, and a contact sheet of some of every class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from credro._names import ArgumentError
from credro.data.base import Data, to_float
from credro.data.errors import DataError
from credro.data.readers._decode import eight_bits, open_image

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

GAP = 2
MARGIN = 110
"""Room for the class names, at least, ..."""
WIDEST = 320
"""... and at most."""
LOW, HIGH = 40, 128
"""On a sheet images lower than LOW are enlarged, those higher than HIGH made smaller."""


def thumbnail(data: Data, i: int, height: int, *, stored: bool = False) -> Image:
    """Sample i in colour, ``height`` pixels high, its sides as they are: sharp from its file where it has one.

    Else, where the file is gone, or with ``stored`` from the pixels that a network sees, already resized. What is
    made twice as high or more is enlarged pixel by pixel, so that it looks as coarse as it is.
    """
    if height < 1:
        raise ArgumentError("height", f"height must be at least 1, got {height}")
    i = range(len(data))[i]
    if data.paths and not stored:
        try:
            image = open_image(data.paths[i], least=2 * height)
            return _scaled(eight_bits(image, 3), height)
        except DataError:
            if not data.in_memory:
                raise
    return _scaled(_stored(data, i), height)


def contact_sheet(data: Data, *, each: int = 10, classes: int = 20, scale: int | None = None) -> Image:
    """One row for each of the first ``classes`` classes: its name, how many images it has, and the first ``each``.

    The images are those that a network sees, to tell at a glance whether a set was read as it should: upright, whole,
    with the right names. Samples of no known class (label -1) come last. scale: pixels are enlarged so many times;
    None: small images until they are about 48 pixels high, large ones are made smaller.
    """
    from PIL import Image, ImageDraw

    _check_images(data)
    if data.labels.ndim != 1:
        raise ArgumentError("data", f"a contact sheet needs one label for each image; those of {data.name!r} are soft")
    _, height, width = data.shape
    high = height * (scale or math.ceil(LOW / height))
    high = high if scale else min(high, HIGH)
    wide = max(1, round(width * high / height))
    labels = data.labels.long()
    shown = sorted(set(labels.tolist()), key=lambda label: (label < 0, label))[:classes]
    font = _font()
    names = [_fitting(_class_name(data, label), font) for label in shown]
    margin = max([MARGIN, *(math.ceil(font.getlength(name)) + 12 for name in names)])
    sheet = Image.new("RGB", (margin + each * (wide + GAP), len(shown) * (high + GAP) + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for row, (label, name) in enumerate(zip(shown, names, strict=True)):
        top, middle = row * (high + GAP) + GAP, row * (high + GAP) + GAP + high // 2
        index = (labels == label).nonzero().flatten()
        two = high >= 28  # room for a second line
        draw.text((4, middle - 2 * two), name, fill="black", font=font, anchor="ls" if two else "lm")
        if two:
            draw.text((4, middle + 4), f"{len(index):,}", fill="grey", font=font, anchor="lt")
        for column, i in enumerate(index[:each].tolist()):
            sheet.paste(thumbnail(data, i, high, stored=True), (margin + column * (wide + GAP), top))
    return sheet


def _stored(data: Data, i: int) -> Image:
    from PIL import Image

    _check_images(data)
    pixels = (to_float(data.batch(torch.tensor([i]))[0]).clamp(0, 1) * 255).round().to(torch.uint8)
    return Image.fromarray(pixels.expand(3, -1, -1).permute(1, 2, 0).cpu().contiguous().numpy())


def _scaled(image: Image, height: int) -> Image:
    from PIL.Image import Resampling

    width = max(1, round(image.width * height / image.height))
    coarse = height >= 2 * image.height
    return image.resize((width, height), Resampling.NEAREST if coarse else Resampling.LANCZOS)


def _check_images(data: Data) -> None:
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        raise ArgumentError("data", f"a picture needs images of 1 or 3 channels, but {data.name!r} has {data.shape}")


def _class_name(data: Data, label: int) -> str:
    if label < 0:
        return "(of no class)"
    return data.classes[label] if label < len(data.classes) else str(label)


def _font() -> FreeTypeFont | ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(13)


def _fitting(name: str, font: FreeTypeFont | ImageFont) -> str:
    """A name as far as there is room, its end marked where it is cut."""
    most = WIDEST - 12
    if font.getlength(name) <= most:
        return name
    kept = next(n for n in range(len(name), 0, -1) if font.getlength(name[:n] + "...") <= most)
    return name[:kept] + "..."
