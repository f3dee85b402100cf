"""``credro bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from credro.cli.options import one_of


def bench(
    name: Annotated[str | None, typer.Argument(metavar="NAME", hidden=True, show_default=False)] = None,
) -> None:
    """Measure the speed, against peers in the same run.

    NAME is one benchmark, such as uq, training or augmentation; all of them without.
    They are not part of an installed package: run this in a clone of the repository.

    \b
    Examples:
      credro bench
      credro bench uq
    """
    import subprocess
    import sys

    folder = _folder()
    names = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))
    todo = names if name is None else [one_of("NAME", name, names)]
    # A process of its own: a benchmark sets threads, and must not find them set.
    for each in todo:
        code = subprocess.call([sys.executable, "-m", f"benchmarks.{each}"], cwd=folder.parent)
        if code:
            raise typer.Exit(code)


def _folder() -> Path:
    """``benchmarks/`` of the current folder, or of the clone that credro is installed from."""
    for base in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (base / "benchmarks" / "__init__.py").exists() and (base / "src" / "credro").is_dir():
            return base / "benchmarks"
    raise RuntimeError("the benchmarks are in the repository, not in the installed package: run this in a clone of it")
