"""Messages in the words of the command line: one line, and every argument as the option that takes it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import typer

from credro._names import Argument, Message, Open, message_of

_options: ContextVar[Mapping[str, Any]] = ContextVar("options", default=MappingProxyType({}))
"""What the parser knows of the options of the command that runs, by their names in Python."""


@contextmanager
def speaking_of(command: Any) -> Iterator[None]:
    """Arguments that a message names are options of ``command`` in here, where it has them."""
    token = _options.set({p.name: p for p in command.params if p.param_type_name == "option"})
    try:
        yield
    finally:
        _options.reset(token)


def one_line(said: str | BaseException) -> str:
    """A message, or what an error says, as one line; of a traceback only what it ends with."""
    message = _said(said) if isinstance(said, BaseException) else said
    text = message.worded(_typed) if isinstance(message, Message) else str(message)
    head, trace, rest = text.partition("Traceback (most recent call last)")
    parts = [part.strip() for part in (head + rest.strip().splitlines()[-1] if trace else text).splitlines()]
    joined = ""
    for part in filter(None, parts):
        joined += (" " if joined.endswith((":", ",", ";")) else "; " if joined else "") + part
    return joined


def tell(notes: Iterable[str], of: str = "") -> None:
    """Notes, a line each, to standard error. of: what they are about."""
    for note in notes:
        typer.echo(f"note: {of}{': ' if of else ''}{one_line(note)}", err=True)


def _said(error: BaseException) -> str:
    """What an error says, and the remedy that the command line has for its kind."""
    from credro.training.run import NotARun
    from credro.training.seen import SeenSamples

    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, NotARun):
        return Message(message_of(error), "; name the folder that credro train --out has made")
    if isinstance(error, SeenSamples):
        return Message(message_of(error), ": --data names them, and credro train --test 0.2 keeps some aside")
    return message_of(error)


def _typed(argument: Argument) -> str:
    """``drop=('id', 'date')`` as ``--drop id,date``, ``header=False`` as ``--no-header``; as in Python if no option."""
    option = _options.get().get(argument.name)
    if option is None:
        return str(argument)
    name, value = option.opts[0], argument.value
    if value is None:
        return str(name)
    if option.secondary_opts:
        return str(name if value else option.secondary_opts[0])
    if isinstance(value, Open):
        return f"{name} {'x'.join(map(str.upper, value.parts)) or option.metavar}"
    parts = value if isinstance(value, tuple | list) else [value]
    between = "x" if all(isinstance(part, int) for part in parts) else ","
    return f"{name} {shlex.quote(between.join(map(str, parts)))}"
