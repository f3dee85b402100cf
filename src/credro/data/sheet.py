"""A contact sheet: a few images of every class, to see at a glance whether a set was read as it should."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from credro.data.base import Data, to_float

if TYPE_CHECKING:
    from PIL.Image import Image

GAP = 2
MARGIN = 110  # room for the class name


def contact_sheet(data: Data, *, each: int = 10, classes: int = 20, scale: int | None = None) -> Image:
    """One row for each of the first ``classes`` classes: its name and its first ``each`` images.

    scale: pixels are enlarged so many times; None: small images until they are about 48 pixels high.
    """
    from PIL import Image, ImageDraw

    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        raise ValueError(f"a contact sheet needs images of 1 or 3 channels, but {data.name!r} has {data.shape}")
    if data.labels.ndim != 1:
        raise ValueError(f"a contact sheet needs one label for each image; those of {data.name!r} are soft")
    _, height, width = data.shape
    scale = scale or max(1, math.ceil(40 / height))
    step_x, step_y = width * scale + GAP, height * scale + GAP
    shown = sorted(set(data.labels.long().tolist()))[:classes]
    sheet = Image.new("RGB", (MARGIN + each * step_x, len(shown) * step_y + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for row, label in enumerate(shown):
        top = row * step_y + GAP
        name = data.classes[label] if label < len(data.classes) else str(label)
        draw.text((4, top + height * scale // 2 - 5), name[:17], fill="black")
        index = (data.labels.long() == label).nonzero().flatten()[:each]
        pixels = (to_float(data.batch(index)).clamp(0, 1) * 255).round().to(torch.uint8)
        for column, image in enumerate(pixels.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).cpu().numpy()):
            tile = Image.fromarray(image).resize((width * scale, height * scale), Image.Resampling.NEAREST)
            sheet.paste(tile, (MARGIN + column * step_x, top))
    return sheet
