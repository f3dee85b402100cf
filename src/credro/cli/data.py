"""``credro data``: what sets there are, fetch one, look at one."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli._readers import with_reader_options
from credro.cli._wording import one_line
from credro.cli.options import Root, one_of, settings

if TYPE_CHECKING:
    from credro.data.base import Data


def build() -> typer.Typer:
    """The sub-commands, to be hung into the main app."""
    app = typer.Typer(
        help="""List, fetch and look at data sets.

        \b
        Examples:
          credro data list
          credro data show photos/ --sheet sheet.png
        """,
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    app.callback()(_help)
    app.command("list")(list_sets)
    app.command("get")(get_set)
    app.command("show")(show_set)
    return app


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def list_sets(
    as_json: Annotated[bool, typer.Option("--json", help="For a program to read.")] = False, root: Root = None
) -> None:
    """Sets that have a name, and how to come by them.

    The same as credro list data.

    \b
    Examples:
      credro data list
      credro data list --json --root data
    """
    from credro.cli.lists import list_

    list_("data", as_json, root)


def get_set(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    root: Root = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of a mirror that has the publisher's files."),
    ] = None,
) -> None:
    """Fetch a set from its publisher.

    A download that stopped is resumed, and what has come is checked. NAME is one that credro data list shows.

    \b
    Example:
      credro data get cifar10 --root data
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from credro.data import SOURCES
    from credro.data.download import get

    one_of("NAME", name, SOURCES)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bars:
        tasks: dict[str, object] = {}

        def progress(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file)
            bars.update(tasks[file], completed=done, total=total)  # type: ignore[arg-type]

        paths = get(name, root, progress=progress, source=source)
    for path in paths:
        typer.echo(str(path))


@with_reader_options
def show_set(
    name: Annotated[str, typer.Argument(metavar="DATA", hidden=True)],
    split: Annotated[str | None, typer.Option(metavar="NAME", help="train, test, ...")] = None,
    root: Root = None,
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Write a picture with some images of every class here."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another option of the reader; repeat it."),
    ] = None,
    reader: Any = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a program to read.")] = False,
) -> None:
    """Show what is in a set and how it is read.

    Count, shape, classes and groups; what was taken for header, label and
    features, what is dropped and why. DATA is a name, or the path of a folder,
    .npz, .csv or .parquet. The options are those of credro train.

    \b
    Examples:
      credro data show digits --sheet digits.png
      credro data show cifar10-c --set corruption=fog --set severity=3
      credro data show patients.csv --label outcome --missing '?' --json
    """
    from credro.data.load import load

    data = load(name, split=split, root=root, **{**settings(set_), **reader})
    typer.echo(json.dumps(facts(data), indent=2) if as_json else "\n".join(describe(data)))
    if sheet is not None:
        from credro.data.sheet import contact_sheet

        contact_sheet(data).save(sheet)
        print(f"wrote {sheet}", file=sys.stderr)


def facts(data: Data) -> dict[str, Any]:
    """A set as JSON keeps it: samples by class and by group; for a regression the range of its targets."""
    known: dict[str, Any] = {"name": data.name, "samples": len(data), "shape": list(data.shape)}
    if data.labels.is_floating_point():
        known["labels"] = {"min": float(data.labels.min()), "max": float(data.labels.max())}
    else:
        known["classes"] = _named(data.labels.tolist(), data.classes)
    if data.groups is not None:
        known["groups"] = _named(data.groups.tolist(), data.group_names)
    known["notes"] = list(data.notes)
    if data.spec is not None:
        known["read"] = data.spec.to_json()
    if data.bad:
        known["bad"] = {str(bad.path): bad.problem for bad in data.bad}
    return known


def _named(values: list[int], names: tuple[str, ...]) -> dict[str, int]:
    """How often each occurs, in the order of the numbers."""
    return {names[v] if 0 <= v < len(names) else str(v): n for v, n in sorted(Counter(values).items())}


def describe(data: Data, most: int = 40) -> list[str]:
    """A set in a few lines."""
    import torch

    kind = "texts" if data.texts is not None else str(data.batch(torch.tensor([0])).dtype).removeprefix("torch.")
    held = data.in_memory or data.texts is not None
    lines = [
        f"name     {data.name}",
        f"samples  {len(data):,}, {'held in memory' if held else 'read from files'}",
        f"shape    {tuple(data.shape)}, {kind}",
    ]
    if data.labels.is_floating_point():
        lines.append(
            f"labels   {data.labels.min():g} to {data.labels.max():g}, mean {data.labels.mean():g} (regression)"
        )
    else:
        lines.append(f"classes  {len(data.classes)}")
        lines += _counts(data.labels.tolist(), data.classes)
    if data.groups is not None:
        lines.append(f"groups   {len(set(data.groups.tolist()))}")
        lines += _counts(data.groups.tolist(), data.group_names)
    if data.columns:
        shown = ", ".join(data.columns[:most]) + (f", ... {data.columns[-1]}" if len(data.columns) > most else "")
        lines.append(f"features {len(data.columns)}: {shown}")
    return [*lines, *(f"note     {one_line(note)}" for note in data.notes)]


def _counts(values: list[int], names: tuple[str, ...], most: int = 20) -> list[str]:
    counted = list(_named(values, names).items())
    lines = [f"  {n:>8,}  {name}" for name, n in counted[:most]]
    return [*lines, f"  ... and {len(counted) - most} more"] if len(counted) > most else lines
