"""``make bench``: every speed claim as a ratio measured in one run.

``python -m benchmarks NAME ...`` runs some; options behind the last name are its own: ``tables --data DIR``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import takewhile

NAMES = (
    "uq",
    "augmentation",
    "training",
    "costs",
    "regression",
    "threshold",
    "early_stop",
    "tables",
    "own_data",
    "trunks",
    "text",
    "scale",
)


def main(arguments: list[str]) -> None:
    names = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    options = arguments[len(names) :]
    for name in names or NAMES:
        if name not in NAMES:
            sys.exit(f"benchmarks: there is {', '.join(NAMES)}, not {name!r}")
        print(f"\n== {name} ==", flush=True)
        run = import_module(f"benchmarks.{name}").main
        if options and names and name == names[-1]:
            run(options)
        else:
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
