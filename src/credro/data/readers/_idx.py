"""MNIST and the sets that came in its format (idx files, gzipped or not)."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.errors import DataError
from credro.data.readers._published import Published, check_labels

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
DIGITS = tuple("0123456789")
LETTERS = tuple("ABCDEFGHIJ")


def _published(name: str, folder: str) -> Published:
    def named(file: str) -> tuple[str, ...]:
        return tuple(f"{folder}/{sub}{file}{end}" for sub in ("raw/", "") for end in (".gz", ""))

    stems = {"train": "train", "test": "t10k"}
    files = ("images-idx3-ubyte", "labels-idx1-ubyte")
    return Published(name, {split: tuple(named(f"{stem}-{f}") for f in files) for split, stem in stems.items()})


MNIST = _published("mnist", "MNIST")
FMNIST = _published("fmnist", "FashionMNIST")
NOTMNIST = _published("notmnist", "notMNIST")


def mnist(root: Path, split: str | None) -> Data:
    """``MNIST/raw/``: handwritten digits (1, 28, 28)."""
    return _read(MNIST, root, split, DIGITS)


def fmnist(root: Path, split: str | None) -> Data:
    """``FashionMNIST/raw/``: clothes (1, 28, 28)."""
    return _read(FMNIST, root, split, FASHION)


def notmnist(root: Path, split: str | None) -> Data:
    """``notMNIST/raw/``: letters A to J (1, 28, 28)."""
    return _read(NOTMNIST, root, split, LETTERS)


def _read(published: Published, root: Path, split: str | None, classes: tuple[str, ...]) -> Data:
    images, labels = published.find(root, published.split(split))
    samples = read_idx(images, 3)[:, None]
    y = check_labels(labels, read_idx(labels, 1), len(samples), len(classes))
    return Data(published.name, samples, y, tuple(samples.shape[1:]), classes)


def read_idx(path: Path, dims: int) -> Tensor:
    """An idx file of unsigned bytes with ``dims`` dimensions.

    The header is 0, 0, the type (8: unsigned byte), the number of dimensions, and each size as a big-endian uint32.
    """
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(path, f"broken gzip file ({error})") from error
    if raw[:4] != bytes([0, 0, 8, dims]):
        raise DataError(path, f"not an idx file of bytes with {dims} dimensions: it begins with {raw[:4].hex(' ')}")
    start = 4 + 4 * dims
    if len(raw) < start:
        raise DataError(path, "ends within its header")
    shape = struct.unpack(f">{dims}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise DataError(path, f"its header says {shape}, {math.prod(shape)} bytes, but {len(raw) - start} follow")
    if not math.prod(shape):
        raise DataError(path, f"holds no samples: its header says {shape}")
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8, offset=start).view(shape)
