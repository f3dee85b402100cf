"""Draw docs/images/corruptions.png: every corruption at every severity, of a drawn scene and of a Fashion-MNIST image.

python scripts/contact_sheet_corruptions.py [OUT]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from credro.data.corruptions import CORRUPTIONS, corrupt

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs/images/corruptions.png"
TILE, GAP, NAMES, HEAD = 96, 4, 132, 22


def scene(size: int = 96) -> torch.Tensor:
    """(3, size, size) uint8: hills, a house and a tree under a sky, with some texture; free of anybody's rights."""
    k = 4 * size / 96  # drawn four times as large, then shrunk: smooth edges
    big = Image.new("RGB", (4 * size, 4 * size))
    draw = ImageDraw.Draw(big)

    def polygon(colour: tuple[int, int, int], *points: tuple[float, float]) -> None:
        draw.polygon([(px * k, py * k) for px, py in points], fill=colour)

    def ellipse(colour: tuple[int, int, int], left: float, top: float, right: float, bottom: float) -> None:
        draw.ellipse([left * k, top * k, right * k, bottom * k], fill=colour)

    for row in range(big.height):
        t = row / big.height
        draw.line([(0, row), (big.width, row)], fill=(int(90 + 120 * t), int(150 + 70 * t), int(225 - 15 * t)))
    ellipse((250, 225, 130), 68, 8, 84, 24)
    polygon((110, 125, 150), (0, 62), (22, 34), (42, 58), (58, 40), (96, 66), (96, 96), (0, 96))
    polygon((75, 130, 65), (0, 66), (30, 58), (62, 63), (96, 56), (96, 96), (0, 96))
    polygon((200, 180, 140), (44, 96), (50, 78), (56, 78), (66, 96))
    polygon((190, 95, 75), (36, 50), (64, 50), (64, 78), (36, 78))
    polygon((105, 45, 40), (31, 52), (50, 34), (69, 52))
    polygon((70, 50, 40), (47, 62), (55, 62), (55, 78), (47, 78))
    for left in (39, 57):
        polygon((245, 235, 170), (left, 56), (left + 5, 56), (left + 5, 63), (left, 63))
    polygon((90, 65, 45), (14, 60), (18, 60), (18, 82), (14, 82))
    ellipse((45, 95, 50), 4, 38, 28, 68)
    ellipse((60, 115, 60), 8, 40, 20, 56)
    for x in range(72, 96, 6):
        polygon((225, 220, 210), (x, 72), (x + 3, 72), (x + 3, 84), (x, 84))
    image = big.filter(ImageFilter.GaussianBlur(k / 4)).resize((size, size), Image.Resampling.LANCZOS)
    grain = np.random.default_rng(0).normal(0, 5, (size, size, 1))
    pixels = np.clip(np.asarray(image) + grain, 0, 255).round().astype(np.uint8)
    return torch.from_numpy(pixels).permute(2, 0, 1)


def shirt() -> torch.Tensor:
    """(1, 28, 28) uint8: an image of the embedded set."""
    with np.load(ROOT / "src/credro/data/embedded/fashion_mini.npz") as arrays:
        return torch.from_numpy(arrays["test_x"][0])[None]


def tile(image: torch.Tensor) -> Image.Image:
    pixels = image.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(pixels).resize((TILE, TILE), Image.Resampling.NEAREST)


def sheet(images: list[torch.Tensor]) -> Image.Image:
    """One row per corruption; per image a column for the original and one per severity."""
    pitch = TILE + GAP
    width = NAMES + len(images) * (6 * pitch + 3 * GAP)
    canvas = Image.new("RGB", (width, HEAD + len(CORRUPTIONS) * pitch), "white")
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    for row, name in enumerate(CORRUPTIONS):
        top = HEAD + row * pitch
        draw.text((6, top + TILE / 2), name.replace("_", " "), "black", font, "lm")
        for i, image in enumerate(images):
            left = NAMES + i * (6 * pitch + 3 * GAP)
            versions = [image, *(corrupt(image[None], name, s)[0] for s in range(1, 6))]
            for column, version in enumerate(versions):
                canvas.paste(tile(version), (left + column * pitch, top))
                if row == 0:
                    title = str(column) if column else "original"
                    draw.text((left + column * pitch + TILE / 2, HEAD / 2), title, "black", font, "mm")
    return canvas


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    out.parent.mkdir(parents=True, exist_ok=True)
    sheet([scene(), shirt()]).quantize(256).save(out, optimize=True)
    print(f"{out.name}: {out.stat().st_size / 2**10:.0f} KiB")


if __name__ == "__main__":
    main()
