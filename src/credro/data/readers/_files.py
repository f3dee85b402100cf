"""Image files, read many at a time: their pixels, those that cannot be read, and what their bytes are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch import Tensor

from credro._names import Argument, Message, Open
from credro.data.base import BadFile
from credro.data.errors import BadFiles, DataError
from credro.data.readers._decode import open_image, to_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")

SKIP = Message(Argument("on_error", "skip"), " leaves them out")
SIZE = Argument("size", Open(("height", "width")))


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Reads samples (B, C, H, W) uint8 from files. ``resize``: others sizes are brought to (H, W), else refused."""

    paths: tuple[Path, ...]
    shape: tuple[int, int, int]
    resize: bool

    def __call__(self, index: Tensor) -> Tensor:
        """The images at ``index`` (B,)."""
        read, bad = self.try_all(index.tolist())
        if bad:
            raise BadFiles("images", list(bad.values()), len(index), SKIP)
        return read

    def sample_keys(self, index: Tensor) -> list[bytes]:
        """The digest of each file, and the shape it is read in (``resize`` only decides what is refused)."""
        shape = repr(self.shape).encode()
        return [digest + shape for digest in _each(file_digest, [self.paths[i] for i in index.tolist()])]

    def try_all(self, index: Sequence[int]) -> tuple[Tensor, dict[int, BadFile]]:
        """The images at ``index``, and by place in it those that cannot be read: their pixels are undefined."""
        out = np.empty((len(index), *self.shape), dtype=np.uint8)

        def read(place: int) -> BadFile | None:
            image = self._tried(self.paths[index[place]])
            if isinstance(image, BadFile):
                return image
            out[place] = image
            return None

        return torch.from_numpy(out), _found(_each(read, range(len(index))), range(len(index)))

    def broken(self, index: Sequence[int]) -> dict[int, BadFile]:
        """Those at ``index`` that cannot be read, by number: all are decoded, none is kept."""

        def bad(i: int) -> BadFile | None:
            image = self._tried(self.paths[i])
            return image if isinstance(image, BadFile) else None

        return _found(_each(bad, index), index)

    def _tried(self, path: Path) -> NDArray[np.uint8] | BadFile:
        try:
            return self.read(path)
        except DataError as error:
            return BadFile(path, error.problem)

    def read(self, path: Path) -> NDArray[np.uint8]:
        """One image (C, H, W), bytes."""
        image = open_image(path)
        _, height, width = self.shape
        if not self.resize and image.size != (width, height):
            problem = f"is {image.height}x{image.width}, others are {height}x{width}: pass "
            raise DataError(path, Message(problem, SIZE, " to bring all to one size"))
        return to_array(image, self.shape)


def file_digest(path: Path) -> bytes:
    """16 bytes that stand for the content of a file; one that is as it was is hashed once in a process."""
    known = path.stat()
    return _digest(os.path.abspath(path), known.st_size, known.st_mtime_ns)


@cache
def _digest(path: str, size: int, modified: int) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


def _found(files: Sequence[BadFile | None], numbers: Sequence[int]) -> dict[int, BadFile]:
    return {i: file for i, file in zip(numbers, files, strict=True) if file is not None}


def _each(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The function of every item, in threads where there are many: Pillow decodes outside the interpreter's lock."""
    if len(items) < 8:
        return [function(item) for item in items]
    threads = min(8, os.cpu_count() or 1)
    step = max(1, min(32, len(items) // (2 * threads)))  # handing over every item by itself costs as much as an image
    parts = [items[i : i + step] for i in range(0, len(items), step)]
    with ThreadPoolExecutor(threads) as pool:
        return [result for part in pool.map(lambda part: [function(item) for item in part], parts) for result in part]
