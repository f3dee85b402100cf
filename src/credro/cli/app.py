"""All commands in one place, and how errors reach the user: one line, no traceback unless asked for."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from credro.cli import bench, data, demo, evaluate, lists, predict, train

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help=(
        "Credal ensembles: classifiers that answer with a set of probabilities, and know what they do not know.\n\n"
        "[bold]credro demo[/] shows the whole way on embedded data. With your own: [bold]credro train[/], then "
        "[bold]credro evaluate[/] and [bold]credro predict[/]. [bold]credro list methods[/] tells what there is.\n\n"
        "Exit codes: 0 done, 1 the work failed, 2 the command line is wrong."
    ),
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("list")(lists.list_)
app.command("bench")(bench.bench)
app.add_typer(data.build(), name="data")

_debug = False


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """Options for all commands."""
    global _debug
    _debug = debug


def run() -> None:
    """Run the command line; an error is one line with its remedy."""
    warnings.showwarning = _say
    try:
        app()
    except (ValueError, TypeError, OSError, RuntimeError, ImportError) as error:
        if _debug:
            raise
        print(f"credro: {error}", file=sys.stderr)
        sys.exit(1)


def _say(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {message}", file=sys.stderr)
