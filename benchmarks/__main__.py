"""``make bench``: every speed claim as a ratio measured in one run."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = ("uq", "augmentation", "training", "costs", "regression", "threshold", "early_stop")


def main(names: list[str]) -> None:
    for name in names or NAMES:
        if name not in NAMES:
            sys.exit(f"benchmarks: there is {', '.join(NAMES)}, not {name!r}")
        print(f"\n== {name} ==", flush=True)
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
