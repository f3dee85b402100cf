"""The options of readers, as they are typed: which column is the label, what is missing, what size images get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from credro.cli.options import Misuse, one_of

Label = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Label column of a table; its number where there is no header.")
]
Group = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column (or array) of patients, hospitals: never divided.")
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns of a table to leave out; may be repeated.")
]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns to use although they look like an ID, or are constant.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(metavar="MARK", help="A further mark of missing values, as '?'; 'error' refuses all missing values."),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Columns of numbers that are categories; or COLUMN=VALUE|VALUE."),
]
Task = Annotated[str | None, typer.Option(metavar="classify|regress", help="What to make of labels that are numbers.")]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B|N", help="All classes in order, or how many (0 to N-1). Default: those there."),
]
XArray = Annotated[str | None, typer.Option("--x", metavar="NAME", help="Array of samples in an .npz.")]
YArray = Annotated[str | None, typer.Option("--y", metavar="NAME", help="Array of labels in an .npz.")]
Layout = Annotated[str | None, typer.Option(metavar="hwc|chw", help="Where the channels of images in an .npz are.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether a table's first line has names; default: look.")
]
Size = Annotated[str | None, typer.Option(metavar="HxW", help="Resize image files, as 64 or 48x64, to one size.")]
Deep = Annotated[
    bool | None,
    typer.Option("--deep/--no-deep", help="Whether images in folders below CLASS/ belong to it, as CLASS/PATIENT/."),
]
OnError = Annotated[
    str | None, typer.Option(metavar="stop|skip", help="Image files that cannot be read: stop, or leave them out.")
]


def reader_options(
    *,
    label: str | None = None,
    group: str | None = None,
    drop: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    task: str | None = None,
    classes: str | None = None,
    x: str | None = None,
    y: str | None = None,
    layout: str | None = None,
    header: bool | None = None,
    size: str | None = None,
    on_error: str | None = None,
    deep: bool | None = None,
) -> dict[str, Any]:
    """What was given, as ``credro.data.load`` takes it."""
    if task is not None:
        one_of("--task", task, ("classify", "regress"))
    if on_error is not None:
        one_of("--on-error", on_error, ("stop", "skip"))
    if layout is not None:
        one_of("--layout", layout, ("hwc", "chw"))
    given = {
        "label": label,
        "group": group,
        "drop": names(drop) or None,
        "keep": names(keep) or None,
        "missing": _missing(missing),
        "categories": _categories(categories),
        "task": task,
        "classes": _classes(classes),
        "x": x,
        "y": y,
        "layout": layout,
        "header": header,
        "size": image_size(size),
        "on_error": on_error,
        "deep": deep,
    }
    return {key: value for key, value in given.items() if value is not None}


def names(given: Sequence[str] | None) -> tuple[str, ...]:
    """``["id,date", "zip"]`` as ("id", "date", "zip")."""
    return tuple(name.strip() for text in given or () for name in text.split(",") if name.strip())


def image_size(text: str | None) -> tuple[int, int] | None:
    """``64`` or ``48x64`` as (height, width)."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise Misuse(f"--size takes one number or HEIGHTxWIDTH, got {text!r}")
    return int(parts[0]), int(parts[-1])


def _missing(marks: Sequence[str] | None) -> str | tuple[str, ...] | None:
    if not marks:
        return None
    if len(marks) == 1 and marks[0] in ("error", "keep"):
        return marks[0]
    return tuple(marks)


def _categories(given: Sequence[str] | None) -> dict[str, tuple[str, ...]] | tuple[str, ...] | None:
    if not given:
        return None
    listed = [text for text in given if "=" in text]
    if listed and len(listed) < len(given):
        raise Misuse("--categories takes either names of columns, or COLUMN=VALUE|VALUE for each of them; got both")
    if listed:
        return {column: tuple(values.split("|")) for column, _, values in (text.partition("=") for text in listed)}
    return names(given)


def _classes(text: str | None) -> int | tuple[str, ...] | None:
    if text is None:
        return None
    if "," not in text and text.strip().isdigit():
        return int(text)
    return names([text])
