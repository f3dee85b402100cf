"""CIFAR's pickles, read without trusting them.

A pickle is a program: it may call anything it can name. This reader lets it name five things, which is what the
CIFAR files need, and none of them is the real one: stand-ins take their place, so that not even numpy's own
unpickling code runs on input that nobody vouches for. A stand-in accepts unsigned bytes and nothing else.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from credro.data.errors import DataError


class UnsafePickleError(DataError):
    """The pickle asks for something that a CIFAR file has no need of. Nothing of it was run."""


class _RefusedError(Exception):
    pass


class _StandIn:
    """A class, not a function, with ``__setstate__``: then a pickle has no way to set attributes on it."""

    def __setstate__(self, state: object) -> None:
        raise _RefusedError("state for an object that has none")


class _Dtype(_StandIn):
    """Stands for numpy.dtype; knows unsigned bytes only."""

    def __init__(self, code: object, *_flags: object) -> None:
        if code not in ("u1", b"u1"):
            raise _RefusedError(f"an array of {code!r}")

    def __setstate__(self, state: object) -> None:
        """Byte order and alignment: without meaning for single bytes."""


class _Array(_StandIn):
    """Stands for numpy.ndarray; ``value`` is the real array once its bytes have come."""

    value: Any = None

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), tuple(shape), _Dtype(), fortran, bytes(raw)) if all(isinstance(n, int) for n in shape):
                self.value = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")
            case _:
                raise _RefusedError("an array in an unknown form")


class _Reconstruct(_StandIn):
    """Stands for numpy's ``_reconstruct``: an empty array, to be filled by its state."""

    def __new__(cls, kind: object, *_shape_and_code: object) -> Any:
        if kind is not _Array:
            raise _RefusedError(f"an instance of {kind!r}")
        return _Array()


class _Encode(_StandIn):
    """Stands for ``_codecs.encode``, with which Python 3 writes bytes in protocol 2."""

    def __new__(cls, text: object, encoding: object) -> Any:
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise _RefusedError(f"encoding with {encoding!r}")
        return text.encode("latin1")


ADMITTED: dict[tuple[str, str], type] = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _Reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Encode,
}
"""All that a pickle may name."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def read_pickle(path: str | Path) -> dict[str, Any]:
    """The dictionary in a CIFAR file: text, numbers, lists, and arrays of bytes; keys as text."""
    path = Path(path)
    with path.open("rb") as file:
        try:
            content = _Unpickler(file, encoding="bytes").load()  # Python 2 wrote the official files: text is bytes
        except _RefusedError as refused:
            raise UnsafePickleError(path, f"refused: a CIFAR file has no need of {refused}") from None
        except Exception as error:  # a broken pickle may raise anything
            raise DataError(path, f"not a complete pickle ({type(error).__name__}: {error})") from error
    if not isinstance(content, dict):
        raise DataError(path, f"holds a {type(content).__name__}, expected a dictionary")
    return {
        key.decode("latin1") if isinstance(key, bytes) else str(key): value.value
        if isinstance(value, _Array)
        else value
        for key, value in content.items()
    }
