"""Many image files as ``Data``: held in memory when they are small, else read when asked. ``decode`` has one image."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from credro._names import ArgumentError, Message, one_of
from credro.data.base import BadFile, Data
from credro.data.errors import BadFiles, DataError
from credro.data.readers._decode import Header, check_mode, read_header, to_array, upright
from credro.data.readers._files import SIZE, SKIP, ImageFiles
from credro.data.readers._words import count

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".heic", ".heif", ".avif",
)  # fmt: skip
"""What is taken for an image. HEIC and AVIF are among them to be refused by name where Pillow cannot read them."""

IN_MEMORY = 512 * 2**20
"""Up to so many bytes of pixels are held in memory unless the caller decides."""

SIDES = (32, 64, 96, 128)
"""Images of several sizes are brought to one of these: the largest that at least half of them have on both sides."""

LARGE = 256
"""Images with a longer side are slow to train on."""

ON_ERROR = ("stop", "skip")


def check_size(size: int | Sequence[int] | None) -> tuple[int, int] | None:
    """``size`` as (height, width); one number is both."""
    if size is None:
        return None
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in pair):
        raise ArgumentError("size", f"size must be (height, width), two positive whole numbers, got {size!r}")
    return pair[0], pair[1]


def image_data(
    name: str,
    paths: Sequence[Path],
    labels: Tensor,
    classes: Sequence[str],
    *,
    size: int | Sequence[int] | None = None,
    channels: int | None = None,
    lazy: bool | None = None,
    on_error: str = "stop",
    check: bool = True,
) -> Data:
    """Image files as ``Data``. Its ``notes`` say what was converted, resized and left out.

    size: (height, width) to resize to, without cropping; None: their own size if they have one, else a square chosen
    from ``SIDES``. channels: 1 grey, 3 colour; None: colour if any is.
    lazy: read files when asked; None: hold the pixels if they take at most 512 MiB.
    on_error: "stop" raises ``BadFiles`` with all files that cannot be read; "skip" leaves them out, ``bad`` lists them.
    check: False takes the files on trust, for published sets of a million files: size from the first, colour from 16
    of them. Otherwise all headers are read. Files that are not held in memory are looked at for being cut off, and
    decoded once where bad ones are to be skipped: a training that stops in its third hour helps nobody.
    """
    if channels not in (None, 1, 3):
        raise ArgumentError("channels", f"channels must be 1, 3 or None, got {channels!r}")
    one_of("on_error", on_error, ON_ERROR)
    wanted = check_size(size)
    chosen = range(len(paths)) if check else range(0, len(paths), math.ceil(len(paths) / 16))
    headers, bad = _headers(paths, chosen)
    shape, resize, notes = _plan(list(headers.values()), wanted, channels)
    if not check:  # what 16 of them say is not said of all
        first = headers.get(0)
        shape = (shape[0], *(wanted or ((first.height, first.width) if first else shape[1:])))
        resize, notes = wanted is not None, ()
    if lazy is None:
        lazy = len(paths) * math.prod(shape) > IN_MEMORY
    keep = [i for i in range(len(paths)) if i not in bad]
    read = ImageFiles(tuple(paths[i] for i in keep), shape, resize)
    samples: Tensor | None = None
    if not lazy:
        samples, broken = read.try_all(range(len(keep)))
    else:
        doubted = [p for p, i in enumerate(keep) if on_error == "skip" or (check and not headers[i].whole)]
        broken = read.broken(doubted)
    if broken:
        bad |= {keep[place]: file for place, file in broken.items()}
        stay = [place for place in range(len(keep)) if place not in broken]
        keep = [keep[place] for place in stay]
        read = replace(read, paths=tuple(paths[i] for i in keep))
        samples = None if samples is None else samples[stay]
    if bad and on_error == "stop":
        raise BadFiles(name, [bad[i] for i in sorted(bad)], len(paths), SKIP)
    return Data(
        name,
        read if samples is None else samples,
        labels[keep] if bad else labels,
        shape,
        tuple(classes),
        paths=read.paths,
        notes=(*notes, *([f"{count(len(bad), 'file')} that cannot be read left out"] if bad else [])),
        bad=tuple(bad[i] for i in sorted(bad)),
    )


def read_images(
    paths: Sequence[str | Path], shape: Sequence[int], on_error: str = "stop", name: str = "images"
) -> tuple[Data, tuple[BadFile, ...]]:
    """Image files to predict, in the shape (C, H, W) that a network takes, and those that cannot be read.

    The samples have the label -1: none. on_error: as in ``image_data``; where all are skipped there are no samples.
    """
    (channels, *size), files = _image_shape(shape), [Path(path) for path in paths]
    data = image_data(name, files, _no_labels(len(files)), (), size=size, channels=channels, on_error=on_error)
    return data, data.bad


def pil_data(images: Sequence[Image], shape: Sequence[int], name: str = "images") -> Data:
    """Pillow's images in memory as ``read_images`` would give them from their files: turned, converted, resized."""
    from PIL.Image import Image

    out = torch.empty((len(images), *_image_shape(shape)), dtype=torch.uint8)
    for i, image in enumerate(images):
        if not isinstance(image, Image):
            raise TypeError(f"images must be images of Pillow, but number {i} is a {type(image).__name__}")
        check_mode(f"image {i}", image)
        try:
            out[i] = torch.tensor(to_array(upright(image), shape))
        except (OSError, SyntaxError, ValueError) as error:  # opened, but never read: its file is broken or closed
            raise DataError(f"image {i}", f"not a complete image ({error})") from error
    return Data(name, out, _no_labels(len(images)), tuple(out.shape[1:]))


def _headers(paths: Sequence[Path], chosen: Iterable[int]) -> tuple[dict[int, Header], dict[int, BadFile]]:
    """Those of the chosen files that have one, and those that have none, by number."""

    def read(i: int) -> Header | BadFile:
        try:
            return read_header(paths[i])
        except DataError as error:
            return BadFile(paths[i], error.problem)

    found = {i: read(i) for i in chosen}
    good = {i: header for i, header in found.items() if isinstance(header, Header)}
    return good, {i: file for i, file in found.items() if isinstance(file, BadFile)}


def _plan(
    headers: Sequence[Header], size: tuple[int, int] | None, channels: int | None
) -> tuple[tuple[int, int, int], bool, tuple[str, ...]]:
    """The shape to read images in, whether they must be resized to it, and notes on what happens to them."""
    notes: list[str] = []
    sizes = Counter((header.height, header.width) for header in headers)
    taken = size
    if taken is None and len(sizes) > 1:
        short = median_low([min(header.height, header.width) for header in headers])
        side = max((s for s in SIDES if s <= short), default=SIDES[0])
        taken = (side, side)
        common = ", ".join(f"{h}x{w} ({n:,})" for (h, w), n in sizes.most_common(3))
        more = ", ..." if len(sizes) > 3 else ""
        resized = f"are resized to {side}x{side}, without cropping; choose with "
        notes.append(Message(f"images of {len(sizes):,} sizes, height x width {common}{more}, {resized}", SIZE))
    elif taken is None:
        taken = next(iter(sizes), (1, 1))
        if max(taken) > LARGE:
            stay = f"all images are {taken[0]}x{taken[1]} and stay so: a smaller "
            notes.append(Message(stay, SIZE, " trains faster"))
    coloured = sum(header.colour for header in headers)
    if channels is None:
        channels = 3 if coloured else 1
        if 0 < coloured < len(headers):
            notes.append(f"{len(headers) - coloured:,} of {len(headers):,} images are grey and read as colour")
    elif channels == 1 and coloured:
        notes.append(f"{count(coloured, 'image')} in colour, read as grey")
    for amount, what in (
        (sum(header.alpha for header in headers), "with an alpha channel: transparent parts are put on white"),
        (sum(header.cmyk for header in headers), "in CMYK, converted to RGB without colour profile"),
        (sum(header.deep for header in headers), "of 16 bits a channel: the upper 8 are kept"),
        (sum(header.first for header in headers), "with several frames or pages: the first is taken"),
    ):
        if amount:
            notes.append(f"{count(amount, 'image')} {what}")
    return (channels, *taken), size is not None or len(sizes) > 1, tuple(notes)


def _image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise ArgumentError(
            "shape", f"images have the shape (1 or 3, height, width), but samples of {tuple(shape)} are wanted"
        )
    return shape[0], shape[1], shape[2]


def _no_labels(n: int) -> Tensor:
    return torch.full((n,), -1, dtype=torch.long)
