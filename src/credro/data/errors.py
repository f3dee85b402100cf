"""What can be wrong with data: errors that carry what they are about, and say it in the user's words."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credro._names import Argument, ArgumentError, Message, joined

if TYPE_CHECKING:
    from credro.data.base import BadFile

MOST = 20
"""So many bad files are named in a message."""


class DataNotFound(FileNotFoundError):  # noqa: N818 - read as a sentence
    """A set, a file or a folder is not there. name: what was asked for; places: where it was looked for."""

    def __init__(self, name: str | Path, places: Sequence[Path], message: str) -> None:
        """``message``: the whole text."""
        super().__init__(message)
        self.name, self.places = str(name), tuple(places)

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.name, self.places, self.args[0])


class DataError(ValueError):
    """A file is there, but is broken, mislabelled or empty. path: the file at fault; problem: what is wrong with it."""

    def __init__(self, path: str | Path, problem: str) -> None:
        """``problem`` follows the path in the message."""
        super().__init__(Message(f"{path}: ", problem))
        self.path, self.problem = path, problem

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.path, self.problem)


class BadFiles(DataError):  # noqa: N818 - read as a sentence
    """Some of many files cannot be read: the message lists them, ``bad`` has them all."""

    def __init__(self, path: str | Path, bad: Sequence[BadFile], total: int, remedy: str = "") -> None:
        """``path``: where they are; ``bad``: which, and why, of ``total`` files; ``remedy``: what to do about it."""
        shown = [Message(f"  {file.path}: ", file.problem) for file in bad[:MOST]]
        more = [f"  and {len(bad) - MOST:,} more"] if len(bad) > MOST else []
        lines = [f"{len(bad):,} of {total:,} files cannot be read:", *shown, *more, remedy]
        super().__init__(path, joined("\n", filter(None, lines)))
        self.bad, self.total, self.remedy = tuple(bad), total, remedy

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.path, self.bad, self.total, self.remedy)


class UnknownSplit(ArgumentError):  # noqa: N818 - read as a sentence
    """A split that a source does not have, or none where it does not say which samples are for training.

    source: the name or path. split: what was asked for; None: nothing was. allowed: what may be; none: no splits.
    """

    def __init__(self, source: str | Path, split: str | None, allowed: Sequence[str], why: str = "") -> None:
        """``why``: the end of the message, where more is to be said than what is allowed."""
        self.source, self.split, self.allowed, self._why = str(source), split, tuple(allowed), why
        end = Message(": ", why) if why else ""
        names = ", ".join(map(repr, allowed))
        if not allowed:
            said = f" {split!r} of {source}"
            end = end or ": it has no splits; leave split out to take all of it"
        elif split is None:
            said = f" of {str(source)!r} must be given, one of {names}"
        else:
            said = f" of {str(source)!r} must be one of {names}, got {split!r}"
        super().__init__("split", Message(Argument("split"), said, end))

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
