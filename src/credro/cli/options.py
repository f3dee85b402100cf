"""What several commands share: wrong use, ``--set``, checks of what was typed, and a word on what is going on."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from credro import _names
from credro._names import Argument, Message, message_of

if TYPE_CHECKING:
    from credro.training.cluster import Ray

T = TypeVar("T")

Root = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where the named sets are. Default: CREDRO_DATA, then a cache.")
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1 or mps.")]

Executor = Annotated[str, typer.Option(metavar="NAME", help="auto, sequential, processes, stacked or ray.")]
Address = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Ray: a running cluster, or auto. Default: this machine alone.")
]
Cpus = Annotated[float | None, typer.Option(metavar="X", help="Ray: CPUs that a member has. Default: 1.")]
Gpus = Annotated[float | None, typer.Option(metavar="X", help="Ray: GPUs that a member has, or 0.5. Default: 0.")]
Retries = Annotated[int | None, typer.Option(metavar="N", help="Ray: for a lost process or node. Default: 3.")]
PerDevice = Annotated[int, typer.Option(metavar="N", help="Members that share a GPU.")]

QUIET_SECONDS = 10.0
"""Where there is no terminal, progress is a line this often."""


class Misuse(ValueError):  # noqa: N818 - read as a sentence
    """The command line is wrong: exit code 2."""


@contextmanager
def checking_options(given: Iterable[str] = ()) -> Iterator[None]:
    """What is found wrong in here is the command line's fault. given: names after ``--set``, which errors name so."""
    try:
        yield
    except (ValueError, TypeError) as error:
        keys = {name: key for key in given for name in (key, key.rpartition(".")[2])}
        parts = [
            replace(part, name=f"--set {keys[part.name]}") if isinstance(part, Argument) and part.name in keys else part
            for part in message_of(error).parts
        ]
        raise Misuse(Message(*parts)) from error


def settings(pairs: list[str] | None) -> dict[str, Any]:
    """What ``--set`` says, ``["delta_g=0.7", "head.norm=batch"]``, as a dict: values are JSON, or else text."""
    out: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise Misuse(f"--set takes NAME=VALUE, got {pair!r}")
        try:
            found = json.loads(value.lower() if value in ("True", "False") else value)
        except json.JSONDecodeError:
            found = value
        out[key.replace("-", "_")] = tuple(found) if isinstance(found, list) else found
    return out


def one_of(option: str, value: str, allowed: Iterable[str]) -> str:
    """``value``, if it is allowed."""
    with checking_options():
        return _names.one_of(option, value, allowed)


def at_least(least: int, **numbers: int | None) -> None:
    """Refuse smaller numbers: ``at_least(1, members=0)`` is about --members. None is an option that was not given."""
    for name, number in numbers.items():
        if number is not None and number < least:
            raise Misuse(f"--{name.replace('_', '-')} must be at least {least}, got {number}")


def executor_of(name: str, **of_ray: Any) -> str | Ray:
    """The executor with its options. of_ray: fields of ``credro.Ray``; None is one that was not given."""
    from credro.training.cluster import Ray
    from credro.training.executors import EXECUTORS

    one_of("--executor", name, EXECUTORS)
    given = {key: value for key, value in of_ray.items() if value is not None}
    if name == "ray":
        with checking_options():
            return Ray(**given)
    for key in given:
        raise Misuse(f"--{key.replace('_', '-')} is for --executor ray, got --executor {name}")
    return name


def check_device(name: str) -> None:
    """Refuse a device that torch does not know or this machine does not have."""
    if name in ("auto", "cpu"):
        return
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise Misuse(f"--device {name} cannot be used here ({str(error).splitlines()[0]}): take cpu or auto") from error


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """A function to say what is being done; shown on a terminal's standard error only."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as shown:
        yield shown.update


def progress(parts: Iterable[tuple[int, T]], total: int, what: str) -> Iterator[T]:
    """The parts, each given with its size, and how far it is on standard error: a bar, or a line now and then."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            for size, part in parts:
                yield part
                bar.advance(task, size)
        return
    done, said = 0, time.monotonic()
    for size, part in parts:
        yield part
        done += size
        if time.monotonic() - said > QUIET_SECONDS:
            said = time.monotonic()
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)
