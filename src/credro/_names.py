"""Messages and errors that know which arguments they name, and the one "did you mean" for names one can mistype."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True)
class Open:
    """A value that the user must think of: ``...``; or, where it has parts, ``(height, width)``."""

    parts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """As it stands in a message."""
        return f"({', '.join(self.parts)})" if self.parts else "..."


@dataclass(frozen=True)
class Argument:
    """An argument that a message names: alone (``label``), or with a value that it may be given (``drop=('id',)``)."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        """As Python writes it."""
        return self.name if self.value is None else f"{self.name}={self.value!r}"


class Message(str):
    """A text that names arguments. It reads as in Python; ``worded`` writes the arguments as another interface does."""

    __slots__ = ("parts",)
    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Message:
        """``parts``: plain text, arguments and other messages, in order."""
        flat = [p for part in parts for p in (part.parts if isinstance(part, Message) else (part,))]
        self = super().__new__(cls, "".join(map(str, flat)))
        self.parts = tuple(flat)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        """To travel from a worker process."""
        return self.parts

    def worded(self, write: Callable[[Argument], str]) -> str:
        """The text with every argument as ``write`` gives it."""
        return "".join(write(part) if isinstance(part, Argument) else part for part in self.parts)


def joined(between: str, texts: Iterable[str]) -> Message:
    """``between.join(texts)`` that keeps the arguments."""
    return Message(*(part for i, text in enumerate(texts) for part in ((between, text) if i else (text,))))


def message_of(error: BaseException) -> Message:
    """What an error says, with the arguments that it names."""
    said = error.args[0] if error.args else None
    return said if isinstance(said, Message) else Message(str(error))


class ArgumentError(ValueError):
    """An argument cannot be what was given. ``argument`` is its name: nobody has to read the message to know it."""

    def __init__(self, argument: str, message: str) -> None:
        """``message``: the whole sentence; the argument's name at its beginning is the argument."""
        if not isinstance(message, Message) and message.startswith(f"{argument} "):
            message = Message(Argument(argument), message.removeprefix(argument))
        super().__init__(message)
        self.argument = argument

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.argument, self.args[0])


class UnknownName(ArgumentError):  # noqa: N818 - read as a sentence
    """A name that is none of those allowed; ``allowed`` has them."""

    def __init__(self, argument: str, given: object, allowed: Iterable[str]) -> None:
        """``argument``: what the name was given as."""
        self.given, self.allowed = given, tuple(allowed)
        super().__init__(
            argument,
            f"{argument} must be one of {', '.join(self.allowed)}, got {given!r}{did_you_mean(given, self.allowed)}",
        )

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.argument, self.given, self.allowed)


def one_of(argument: str, given: str, allowed: Iterable[str]) -> str:
    """``given``, if it is among ``allowed``; else an error that names the nearest."""
    names = list(allowed)
    if given not in names:
        raise UnknownName(argument, given, names)
    return given


def did_you_mean(given: object, allowed: Iterable[str]) -> str:
    """`` (did you mean 'credro'?)``, or nothing where no name is near."""
    near = get_close_matches(str(given), list(allowed), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
