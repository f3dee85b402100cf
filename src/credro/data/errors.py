"""What can be wrong with data, in the user's words."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credro.data.base import BadFile

MOST = 20
"""So many bad files are named in a message."""


class DataNotFound(FileNotFoundError):  # noqa: N818 - read as a sentence
    """A set is not on disk: the message says what was looked for, where, and where the set is published."""


class DataError(ValueError):
    """A file is there, but is broken, mislabelled or empty: the message names the file and what is wrong."""

    def __init__(self, path: str | Path, problem: str) -> None:
        """``path``: the file at fault; ``problem``: what is wrong with it."""
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.path, self.problem)


class BadFiles(DataError):  # noqa: N818 - read as a sentence
    """Some of many files cannot be read: the message lists them, ``bad`` has them all."""

    def __init__(self, path: str | Path, bad: Sequence[BadFile], total: int, remedy: str = "") -> None:
        """``path``: where they are; ``bad``: which, and why, of ``total`` files; ``remedy``: what to do about it."""
        shown = [f"  {file.path}: {file.problem}" for file in bad[:MOST]]
        more = [f"  and {len(bad) - MOST:,} more"] if len(bad) > MOST else []
        lines = [f"{len(bad):,} of {total:,} files cannot be read:", *shown, *more, remedy]
        super().__init__(path, "\n".join(line for line in lines if line))
        self.bad, self.total, self.remedy = tuple(bad), total, remedy

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.path, self.bad, self.total, self.remedy)


class UnknownSplit(ValueError):  # noqa: N818 - read as a sentence
    """A split that a source does not have, or none where it does not say which samples are for training.

    source: the name or path. split: what was asked for; None: nothing was. allowed: what may be; none: no splits.
    """

    def __init__(self, source: str | Path, split: str | None, allowed: Sequence[str], why: str = "") -> None:
        """``why``: the end of the message, where more is to be said than what is allowed."""
        self.source, self.split, self.allowed, self._why = str(source), split, tuple(allowed), why
        names = ", ".join(map(repr, allowed))
        if not allowed:
            said = f"split {split!r} of {source}: {why or 'it has no splits; leave split out to take all of it'}"
        elif split is None:
            said = f"split of {str(source)!r} must be given, one of {names}{why and f': {why}'}"
        else:
            said = f"split of {str(source)!r} must be one of {names}, got {split!r}{why and f': {why}'}"
        super().__init__(said)

    def __reduce__(self) -> tuple[type[UnknownSplit], tuple[str, str | None, tuple[str, ...], str]]:
        """As a pickle: an exception must survive the way between processes."""
        return type(self), (self.source, self.split, self.allowed, self._why)


def need(module: str, extra: str = "data") -> Any:
    """Import a module that only some users need; if it is missing, name the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{module.partition('.')[0]} is needed here: pip install 'credro[{extra}]'"
        ) from error
