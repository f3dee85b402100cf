"""The options of readers, as they are typed: which column is the label, what is missing, what size images get."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from credro.cli.options import Misuse, one_of

ON_ERROR = ("stop", "skip")
_SKIPS = typer.Option(metavar="stop|skip", help="Image files that cannot be read: stop, or leave them out.")
Skips = Annotated[str, _SKIPS]

OPTIONS: dict[str, Any] = {
    "label": Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Label column of a table; its number where there is no header.")
    ],
    "text": Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of a table whose texts are the samples.")
    ],
    "group": Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column (or array) of patients, hospitals: never divided.")
    ],
    "drop": Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Columns of a table to leave out; may be repeated.")
    ],
    "keep": Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns to use although they look like an ID, or are constant."),
    ],
    "missing": Annotated[
        list[str] | None,
        typer.Option(
            metavar="MARK", help="A further mark of missing values, as '?'; 'error' refuses all missing values."
        ),
    ],
    "categories": Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns of numbers that are categories; or COLUMN=VALUE|VALUE."),
    ],
    "task": Annotated[
        str | None, typer.Option(metavar="classify|regress", help="What to make of labels that are numbers.")
    ],
    "classes": Annotated[
        str | None,
        typer.Option(metavar="A,B|N", help="All classes in order, or how many (0 to N-1). Default: those there."),
    ],
    "x": Annotated[str | None, typer.Option("--x", metavar="NAME", help="Array of samples in an .npz.")],
    "y": Annotated[str | None, typer.Option("--y", metavar="NAME", help="Array of labels in an .npz.")],
    "layout": Annotated[
        str | None, typer.Option(metavar="hwc|chw", help="Where the channels of images in an .npz are.")
    ],
    "header": Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether a table's first line has names; default: look.")
    ],
    "size": Annotated[str | None, typer.Option(metavar="HxW", help="Resize image files, as 64 or 48x64, to one size.")],
    "on_error": Annotated[str | None, _SKIPS],
    "deep": Annotated[
        bool | None,
        typer.Option(
            "--deep/--no-deep", help="Whether images in folders below CLASS/ belong to it, as CLASS/PATIENT/."
        ),
    ],
}
"""All of them, as ``train`` and ``data show`` have them."""
CHOICES = {"task": ("classify", "regress"), "on_error": ON_ERROR, "layout": ("hwc", "chw")}


def with_reader_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with all of these options in the place of its parameter ``reader``, which gets what was given."""
    own = inspect.signature(command, eval_str=True).parameters
    place = list(own).index("reader")
    every = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]
    rest = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.values()]
    parameters = [*rest[:place], *every, *rest[place + 1 :]]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        reader = reader_options(**{name: given.pop(name) for name in OPTIONS})
        command(**given, reader=reader)

    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def reader_options(**typed: Any) -> dict[str, Any]:
    """What was typed, as ``credro.data.load`` takes it; options that were not given are left out."""
    given = {name: value for name, value in typed.items() if value is not None and value != []}
    for name, allowed in CHOICES.items():
        if name in given:
            one_of(f"--{name.replace('_', '-')}", given[name], allowed)
    return {name: UNDERSTOOD[name](value) if name in UNDERSTOOD else value for name, value in given.items()}


def names(given: Sequence[str]) -> tuple[str, ...]:
    """``["id,date", "zip"]`` as ("id", "date", "zip")."""
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


def image_size(text: str) -> tuple[int, int]:
    """``64`` or ``48x64`` as (height, width)."""
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise Misuse(f"--size takes one number or HEIGHTxWIDTH, got {text!r}")
    return int(parts[0]), int(parts[-1])


def _missing(marks: Sequence[str]) -> str | tuple[str, ...]:
    if len(marks) == 1 and marks[0] in ("error", "keep"):
        return marks[0]
    return tuple(marks)


def _categories(given: Sequence[str]) -> dict[str, tuple[str, ...]] | tuple[str, ...]:
    listed = [text for text in given if "=" in text]
    if listed and len(listed) < len(given):
        raise Misuse("--categories takes either names of columns, or COLUMN=VALUE|VALUE for each of them; got both")
    if listed:
        return {column: tuple(values.split("|")) for column, _, values in (text.partition("=") for text in listed)}
    return names(given)


def _classes(text: str) -> int | tuple[str, ...]:
    if "," not in text and text.strip().isdigit():
        return int(text)
    return names([text])


UNDERSTOOD: dict[str, Callable[[Any], Any]] = {
    "drop": names,
    "keep": names,
    "missing": _missing,
    "categories": _categories,
    "classes": _classes,
    "size": image_size,
}
"""What becomes of options that are not taken as they are typed."""
