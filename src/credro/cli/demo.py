"""``credro demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from credro.cli.options import Misuse, at_least

MOST = 12000
"""Training images that come with the package."""


def demo(
    out: Annotated[Path, typer.Option(help="Where everything goes.", metavar="FOLDER")] = Path("runs/demo"),
    members: Annotated[int, typer.Option(help="Members of each ensemble.", metavar="M")] = 5,
    samples: Annotated[int, typer.Option(help="Training images, at most 12000.", metavar="N")] = 6000,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.", metavar="N")] = None,
) -> None:
    """See the whole way on embedded data, in minutes.

    Trains a deep ensemble and CreDRO, reads them as four methods, compares them on test images, OOD sets and
    corrupted images, and draws figures. Start it again after an interruption: it goes on where it stopped.

    \b
    Examples:
      credro demo
      credro demo --samples 1000 --epochs 5 --out runs/quick
    """
    at_least(1, members=members, samples=samples, epochs=epochs)
    if samples > MOST:
        raise Misuse(f"--samples must be at most {MOST}, got {samples}")
    from credro.experiments.demo import demo as run

    run(out, members=members, samples=samples, epochs=epochs, say=typer.echo)
