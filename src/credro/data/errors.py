"""What can be wrong with data, in the user's words."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any


class DataNotFound(FileNotFoundError):  # noqa: N818 - read as a sentence
    """A set is not on disk: the message says what was looked for, where, and where the set is published."""


class DataError(ValueError):
    """A file is there, but is broken, mislabelled or empty: the message names the file and what is wrong."""

    def __init__(self, path: str | Path, problem: str) -> None:
        """``path``: the file at fault; ``problem``: what is wrong with it."""
        super().__init__(f"{path}: {problem}")


def need(module: str, extra: str = "data") -> Any:
    """Import a module that only some users need; if it is missing, name the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{module.partition('.')[0]} is needed here: pip install 'credro[{extra}]'"
        ) from error
