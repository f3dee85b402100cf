"""The command line: parse, call, print. One module a command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``credro`` command."""
    try:
        from credro.cli.app import run
    except ImportError as error:
        if (error.name or "").split(".")[0] == "credro":  # a fault of ours is not a missing extra
            raise
        sys.exit(f"credro: the command line needs {error.name}: pip install 'credro[cli]'")
    from credro.training.memory import keep_memory

    keep_memory()
    sys.exit(run())
