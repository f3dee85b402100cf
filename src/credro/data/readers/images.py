"""Image files through Pillow: read when asked, or all at once when they are small."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
IN_MEMORY = 512 * 2**20
"""Up to so many bytes of pixels are held in memory unless the caller decides."""

GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr", "HSV", "LAB")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Reads samples (B, C, H, W) uint8 from files. ``resize``: others sizes are brought to (H, W), else refused."""

    paths: tuple[Path, ...]
    shape: tuple[int, int, int]
    resize: bool

    def __call__(self, index: Tensor) -> Tensor:
        """The images at ``index`` (B,)."""
        paths = [self.paths[i] for i in index.tolist()]
        if len(paths) < 8:
            return torch.stack([self.read(path) for path in paths]) if paths else self._empty()
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # Pillow decodes outside the interpreter's lock
            return torch.stack(list(pool.map(self.read, paths)))

    def read(self, path: Path) -> Tensor:
        """One image (C, H, W)."""
        import numpy as np
        from PIL.Image import Resampling

        channels, height, width = self.shape
        image = open_image(path).convert("L" if channels == 1 else "RGB")
        if image.size != (width, height):
            if not self.resize:
                raise DataError(
                    path,
                    f"is {image.height}x{image.width}, the first image {height}x{width}: "
                    f"pass size=(height, width) to bring all to one size",
                )
            image = image.resize((width, height), Resampling.BILINEAR)
        pixels = np.asarray(image).reshape(height, width, channels)
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy())

    def _empty(self) -> Tensor:
        return torch.empty((0, *self.shape), dtype=torch.uint8)


def open_image(path: Path, *, header_only: bool = False) -> Image:
    """An image of 8 bits a channel; a broken or deeper one raises in the user's words."""
    from PIL import Image

    try:
        image = Image.open(path)
        if not header_only:
            image.load()
    except FileNotFoundError as error:
        raise DataError(path, "is missing") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:  # what Pillow raises on junk
        raise DataError(path, f"not a complete image ({error})") from error
    if image.mode not in (*GREY_MODES, *COLOUR_MODES):
        raise DataError(path, f"has pixels of mode {image.mode!r}: convert it to 8 bits a channel first")
    return image


def check_size(size: Sequence[int] | None) -> tuple[int, int] | None:
    """``size`` as (height, width)."""
    if size is None:
        return None
    if len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size):
        raise ValueError(f"size must be (height, width), two positive whole numbers, got {size!r}")
    return size[0], size[1]


def image_data(
    name: str,
    paths: Sequence[Path],
    labels: Tensor,
    classes: Sequence[str],
    *,
    size: Sequence[int] | None = None,
    channels: int | None = None,
    lazy: bool | None = None,
    groups: Tensor | None = None,
    group_names: Sequence[str] = (),
) -> Data:
    """Image files as ``Data``.

    size: (height, width) to resize to, without cropping; None: all images have one size already.
    channels: 1 grey, 3 colour; None: colour if any of 16 images spread over the set is.
    lazy: read files when asked; None: hold the pixels if they take at most 512 MiB.
    """
    if channels not in (None, 1, 3):
        raise ValueError(f"channels must be 1, 3 or None, got {channels!r}")
    wanted = check_size(size)
    if channels is None:
        step = math.ceil(len(paths) / 16)
        probes = (open_image(path, header_only=True) for path in paths[::step])
        channels = 3 if any(image.mode in COLOUR_MODES for image in probes) else 1
    if wanted is None:
        first = open_image(paths[0], header_only=True)
        wanted = first.height, first.width
    read = ImageFiles(tuple(paths), (channels, *wanted), resize=size is not None)
    if lazy is None:
        lazy = len(paths) * math.prod(read.shape) > IN_MEMORY
    samples = read if lazy else read(torch.arange(len(paths)))
    return Data(
        name,
        samples,
        labels,
        read.shape,
        tuple(classes),
        groups=groups,
        group_names=tuple(group_names),
        paths=read.paths,
    )
