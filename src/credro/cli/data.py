"""``credro data``: what sets there are, fetch one, look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from credro.data.base import Data

Root = Annotated[
    Path | None,
    typer.Option(help="Folder that holds the sets. Else CREDRO_DATA, else the cache folder."),
]


def build() -> typer.Typer:
    """The sub-commands, to be hung into the main app."""
    app = typer.Typer(help="List, fetch and look at data sets.", no_args_is_help=True)
    app.command("list")(list_sets)
    app.command("get")(get_set)
    app.command("show")(show_set)
    return app


def list_sets() -> None:
    """Every set that has a name, and how to come by it."""
    from credro.data.sources import SOURCES

    width = max(map(len, SOURCES))
    for name, source in SOURCES.items():
        how = "comes along" if source.embedded else "can be fetched" if source.files else "by hand"
        typer.echo(f"{name:<{width}}  {how:<14}  {source.about}")
        typer.echo(f"{'':<{width}}  {'':<14}  {source.page}")


def get_set(
    name: Annotated[str, typer.Argument(help="One of the names that 'credro data list' shows.")],
    root: Root = None,
    source: Annotated[
        str | None,
        typer.Option(help="Address of a mirror that has the publisher's files."),
    ] = None,
) -> None:
    """Fetch a set from its publisher: resumed where it stopped, and checked."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from credro.data.download import DownloadError, get

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns) as bars:
        tasks: dict[str, object] = {}

        def progress(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file)
            bars.update(tasks[file], completed=done, total=total)  # type: ignore[arg-type]

        try:
            paths = get(name, root, progress=progress, source=source)
        except (DownloadError, ValueError) as error:
            _fail(error)
    for path in paths:
        typer.echo(str(path))


def show_set(
    name: Annotated[str, typer.Argument(help="A name, or the path of a folder, .npz, .csv or .parquet.")],
    split: Annotated[str | None, typer.Option(help="train, test, ...")] = None,
    root: Root = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Write a picture with some images of every class here."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of the reader, as name=value: --set corruption=fog --set severity=3"),
    ] = None,
) -> None:
    """Count, shape, classes and groups of a set, and a contact sheet of its images."""
    from credro.data.load import load

    try:
        data = load(name, split=split, root=root, **_options(option or []))
        for line in describe(data):
            typer.echo(line)
        if sheet is not None:
            from credro.data.sheet import contact_sheet

            contact_sheet(data).save(sheet)
            typer.echo(f"wrote {sheet}")
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        _fail(error)


def describe(data: Data) -> list[str]:
    """A set in a few lines."""
    import torch

    first = data.batch(torch.tensor([0]))
    lines = [
        f"name     {data.name}",
        f"samples  {len(data):,}, {'held in memory' if data.in_memory else 'read from files'}",
        f"shape    {tuple(data.shape)}, {str(first.dtype).removeprefix('torch.')}",
    ]
    if data.labels.is_floating_point():
        lines.append(f"labels   {data.labels.min():g} to {data.labels.max():g}, mean {data.labels.mean():g} (values)")
    else:
        lines.append(f"classes  {len(data.classes)}")
        lines += _counts(data.labels.tolist(), data.classes)
    if data.groups is not None:
        lines.append(f"groups   {len(set(data.groups.tolist()))}")
        lines += _counts(data.groups.tolist(), data.group_names)
    return lines


def _counts(values: list[int], names: tuple[str, ...], most: int = 20) -> list[str]:
    from collections import Counter

    counted = sorted(Counter(values).items())
    lines = [f"  {n:>8,}  {names[v] if v < len(names) else v}" for v, n in counted[:most]]
    return [*lines, f"  ... and {len(counted) - most} more"] if len(counted) > most else lines


def _options(pairs: list[str]) -> dict[str, object]:
    """``name=value`` as Python values: numbers, tuples and True/False where they read so, else text."""
    import ast

    options: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set must be name=value, got {pair!r}")
        try:
            options[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            options[key] = text
    return options


def _fail(error: Exception) -> None:
    typer.echo(f"Error: {error}", err=True)
    raise typer.Exit(1)
