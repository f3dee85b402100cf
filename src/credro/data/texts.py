"""Texts as samples: strings, held as they are; a text trunk (``credro.nets.texts``) makes features of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from credro._names import ArgumentError


@dataclass(frozen=True, eq=False)
class Texts:
    """N strings in the place of a reader of samples: ``Data.texts`` has them, and no batch of numbers can be made."""

    strings: tuple[str, ...] = field(repr=False)

    def __call__(self, index: Tensor) -> Tensor:
        """Refused: what would be numbers only a trunk knows."""
        raise ArgumentError(
            "data",
            "data holds texts, and networks take numbers: put the members on a trunk that takes texts, "
            "credro.on('tfidf'), credro.on('wordllama') or a folder of the transformers library",
        )

    def pick(self, index: Tensor) -> Texts:
        """Those at ``index`` (B,)."""
        return Texts(tuple(self.strings[i] for i in index.tolist()))

    def sample_keys(self, index: Tensor) -> list[bytes]:
        """A digest of each string."""
        return [hashlib.blake2b(self.strings[i].encode(), digest_size=16).digest() for i in index.tolist()]


def as_strings(values: Any) -> tuple[str, ...] | None:
    """Strings from a list, an array or a column of a data frame; None: these are no strings.

    ``TypeError``: some are and some are not.
    """
    if isinstance(values, str | bytes) or hasattr(values, "columns"):
        return None
    if isinstance(values, np.ndarray) or hasattr(values, "to_numpy"):
        found = np.asarray(values)
        if found.ndim != 1 or found.dtype.kind not in "OUT":
            return None
        values = found.tolist()
    if not isinstance(values, list | tuple) or not values or not any(isinstance(value, str) for value in values):
        return None
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(f"texts must all be strings; that of sample {row} is {value!r}")
    return tuple(map(str, values))


def check_no_files(strings: Sequence[str]) -> None:
    """Refuse a text that is also the name of a file: which of the two is meant cannot be told."""
    for string in strings:
        if _is_file(string):
            raise ArgumentError(
                "x",
                f"x has {string!r}, which is a text and also the name of a file: give pathlib.Path({string!r}) for "
                f"the file, or credro.data.text_data([{string!r}]) for the text",
            )


def _is_file(string: str) -> bool:
    if not string or len(string) > 255 or "\n" in string or "\0" in string:
        return False
    return Path(string).is_file()
