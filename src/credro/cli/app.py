"""All commands in one place, and how errors reach the user: one line, no traceback unless asked for."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from credro.cli import bench, data, demo, evaluate, lists, predict, report, reproduce, train
from credro.cli._wording import one_line, speaking_of
from credro.cli.options import Misuse

app = typer.Typer(
    rich_markup_mode=None,  # plain text: it fits a screen, and reads the same in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Classifiers that answer with sets of probabilities and know when to doubt.

    \b
      credro demo                             see the whole way, in minutes
      credro train --data photos/ --out RUN   your own images, table or arrays
      credro evaluate RUN --ood svhn          how good, and how well it doubts
      credro predict RUN new/                 labels, intervals, abstentions
    """,
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("list")(lists.list_)
app.command("bench")(bench.bench)
app.add_typer(data.build(), name="data")

INTERRUPTED = 130  # as a shell reports the signal


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.", hidden=True)] = False,
) -> None:
    """Options for all commands; without a command, the help."""
    if version:
        import credro

        typer.echo(credro.__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def command() -> Any:
    """The whole command line, ready to be called; what is seldom asked for is left out of its help."""
    whole = typer.main.get_command(app)
    for parameter in whole.params:
        if parameter.name in ("show_completion", "install_completion"):  # docs/commands.md has them
            setattr(parameter, "hidden", True)  # noqa: B010 - only options have it
    return whole


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code; an error is one line with its remedy."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given  # wherever it stands, also after the command
    whole = command()
    with warnings.catch_warnings(), speaking_of(_asked_for(whole, given)):
        warnings.showwarning = _note
        try:
            code = whole([a for a in given if a != "--debug"], prog_name="credro", standalone_mode=False)
            sys.stdout.flush()
            if code == INTERRUPTED:  # newer versions of typer give the code, older ones raise Abort
                raise KeyboardInterrupt
            return code if isinstance(code, int) else 0
        except BrokenPipeError:  # the reader has seen enough, as in credro list data | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (typer.Abort, KeyboardInterrupt):
            return _fail(
                "interrupted; training goes on where it stopped when the same command is started again", INTERRUPTED
            )
        except typer.Exit as stop:
            return int(stop.exit_code)
        except Exception as error:
            if debug:
                raise
            return _fail(*_explain(error))


def _asked_for(whole: Any, given: Sequence[str]) -> Any:
    """The command, or command of a command, that is meant."""
    for word in given:
        whole = getattr(whole, "commands", {}).get(word, whole)
    return whole


def _explain(error: Exception) -> tuple[str, int]:
    """An error in one line, and the exit code."""
    if hasattr(error, "format_message"):  # the parser's own: an unknown option, a missing argument
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "credro"
        said = one_line(error.format_message()).rstrip(".")
        return f"{said}{' See' if said.endswith('?') else '; see'} {where} --help", 2
    if isinstance(error, Misuse):
        return one_line(error), 2
    if isinstance(error, ValueError | TypeError | OSError | RuntimeError | ImportError):
        return one_line(error) or type(error).__name__, 1
    return f"unexpected {type(error).__name__}: {one_line(error)}; --debug shows where", 1


def _fail(message: str, code: int) -> int:
    print(f"credro: {message}", file=sys.stderr)
    return code


def _note(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {one_line(message)}", file=sys.stderr)
