"""One image through Pillow: made upright, of 8 bits a channel, of one size; and what is wrong with a file, in words.

A photograph is turned as its EXIF tag says, wherever an image is opened. Transparent parts are put on white, as a
browser shows them. CMYK becomes RGB without its colour profile. Of an animation or a document of many pages the first
is taken. Pixels of 16 or 32 bits in grey are refused: which part of their range matters is not written in the file;
of 16 bits a colour, the upper 8 are kept, as every viewer does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from credro.data.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr", "HSV", "LAB")
ALPHA_MODES = ("LA", "PA", "RGBA")
ENDS = {"JPEG": b"\xff\xd9", "MPO": b"\xff\xd9", "PNG": b"IEND"}
"""What a file that is not cut off has among its last bytes."""

_TAIL = 256
_ORIENTATION = 0x0112
_WHERE = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")  # an orientation is in one of these
_STARTS = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"II*\0", b"MM\0*")  # JPEG, PNG, GIF, WebP, TIFF
_OTHERS = (  # what goes by the name of an image in practice
    (b"ftyphei", "it is HEIC, which is not read: save it as JPEG or PNG"),
    (b"ftyphev", "it is HEIC, which is not read: save it as JPEG or PNG"),
    (b"ftypmif1", "it is HEIC, which is not read: save it as JPEG or PNG"),
    (b"ftypavif", "it is AVIF, which this Pillow does not read: save it as JPEG or PNG"),
    (b"version https://git-lfs", "it is a pointer of Git LFS: fetch the file with git lfs pull"),
    (b"<html", "it is a web page"),
    (b"<!doctype html", "it is a web page"),
    (b"<svg", "it is SVG, which is not read: save it as PNG"),
    (b"%pdf", "it is PDF, which is not read: save it as PNG"),
)


@dataclass(frozen=True)
class Header:
    """What a file says of its image without decoding it; height and width are those of the upright image.

    colour: not grey. alpha: it may have transparent parts. cmyk: four inks. first: there are more images in it.
    deep: 16 bits a colour. whole: the file ends as its format does; False also where the format is not known to.
    """

    height: int
    width: int
    colour: bool
    alpha: bool = False
    cmyk: bool = False
    first: bool = False
    deep: bool = False
    whole: bool = False


def open_image(path: Path, *, least: int | None = None) -> Image:
    """The upright image in a mode of 8 bits a channel; a broken or deeper one raises in the user's words.

    least: for a picture to look at, so many pixels a side are enough: a large JPEG takes a fraction of the time.
    """
    from PIL import Image

    try:
        image = Image.open(path)
        if least is not None:
            image.draft(None, (least, least))
        image.load()
    except _raised() as error:
        raise DataError(path, _problem(path, error)) from error
    check_mode(path, image)
    return upright(image) if any(key in image.info for key in _WHERE) else image


def read_header(path: Path) -> Header:
    """What the file says of its image; nothing is decoded."""
    from PIL import Image

    try:
        with open(path, "rb") as file, Image.open(file) as image:
            return _header(path, image, file)
    except DataError:
        raise
    except _raised() as error:
        raise DataError(path, _problem(path, error)) from error


def upright(image: Image) -> Image:
    """The image turned as its EXIF tag says, and without the tag. A tag that cannot be read counts as none."""
    from PIL import ImageOps

    image.load()
    try:
        turned = image.getexif().get(_ORIENTATION, 1) in range(2, 9)
    except Exception:  # Pillow raises what its parsers raise; viewers show such a photograph as it lies
        return image
    return ImageOps.exif_transpose(image) if turned else image


def to_array(image: Image, shape: Sequence[int]) -> NDArray[np.uint8]:
    """An upright image as bytes (C, H, W): converted, then resized (bilinear, without cropping) where it must be."""
    from PIL.Image import Resampling

    channels, height, width = shape
    image = eight_bits(image, channels)
    if image.size != (width, height):
        image = image.resize((width, height), Resampling.BILINEAR)
    pixels: NDArray[np.uint8] = np.asarray(image).reshape(height, width, channels).transpose(2, 0, 1)
    return pixels


def eight_bits(image: Image, channels: int) -> Image:
    """In mode L (1 channel) or RGB (3): transparent parts on white, grey as .299 red, .587 green, .114 blue."""
    from PIL import Image

    if image.mode in ALPHA_MODES or "transparency" in image.info or _see_through(image):
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema() != (255, 255):
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        image = image.convert("RGB")
    elif image.mode not in ("1", "L", "RGB"):
        image = image.convert("RGB")
    wanted = "L" if channels == 1 else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _header(path: Path, image: Image, file: BinaryIO) -> Header:
    check_mode(path, image)
    width, height = image.size
    if tags := getattr(image, "tag_v2", None):  # TIFF: versions of Pillow differ on when it is turned
        width, height = tags.get(256, width), tags.get(257, height)
        swapped = tags.get(_ORIENTATION, 1) in range(5, 9)
    else:
        swapped = any(key in image.info for key in _WHERE) and _lies(image)
    if swapped:
        height, width = width, height
    return Header(
        height,
        width,
        colour=image.mode in COLOUR_MODES,
        alpha=image.mode in ALPHA_MODES or "transparency" in image.info,
        cmyk=image.mode == "CMYK",
        first=image.format in ("GIF", "TIFF", "WEBP", "PNG") and _frames(image) > 1,
        deep=image.mode == "RGB" and any(";16" in str(tile[3]) for tile in getattr(image, "tile", ())),
        whole=_ends(file, image.format),
    )


def _lies(image: Image) -> bool:
    """Whether the tag swaps height and width."""
    try:
        return image.getexif().get(_ORIENTATION, 1) in range(5, 9)
    except Exception:  # as in upright
        return False


def _frames(image: Image) -> int:
    try:
        return int(getattr(image, "n_frames", 1))
    except Exception:  # the later ones are broken: they are not read
        return 2


def _see_through(image: Image) -> bool:
    return image.mode == "P" and image.palette is not None and image.palette.mode.endswith("A")


def _ends(file: BinaryIO, format_: str | None) -> bool:
    if format_ not in ENDS:
        return False
    file.seek(0, 2)
    file.seek(max(0, file.tell() - _TAIL))
    return ENDS[format_] in file.read()


def check_mode(path: str | Path, image: Image) -> None:
    """Refuse pixels of more than 8 bits a channel. path: what to call the image."""
    if image.mode in (*GREY_MODES, *COLOUR_MODES):
        return
    bits = "32" if image.mode in ("I", "F") else "16"
    raise DataError(
        path,
        f"has {bits} bits a pixel (mode {image.mode!r}), and which part of their range matters is not known: "
        f"convert it to 8 bits a channel first",
    )


def _raised() -> tuple[type[Exception], ...]:
    """What Pillow raises on files that are no images, or broken ones."""
    import struct
    import zlib

    from PIL.Image import DecompressionBombError

    known = (OSError, SyntaxError, ValueError, TypeError, IndexError, KeyError, EOFError, OverflowError)
    return (*known, struct.error, zlib.error, DecompressionBombError)


def _problem(path: Path, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, PermissionError | IsADirectoryError):
        return f"cannot be opened ({error.strerror})"
    if not isinstance(error, UnidentifiedImageError):
        return f"not a complete image ({error})"
    return f"not a complete image ({_instead(path)})"


def _instead(path: Path) -> str:
    """What a file is that Pillow takes for no image."""
    with open(path, "rb") as file:
        start = file.read(512)
    if not start:
        return "it is empty"
    if start.startswith(_STARTS):
        return "it is cut off, or its header is broken"
    low = start.lower()
    for mark, what in _OTHERS:
        if mark in low:
            return what
    if not any(byte < 9 or byte == 127 for byte in start):
        return "it is text"
    return "its format is not one that is read" if any(start) else "it holds only zeros"
