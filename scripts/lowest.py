"""The oldest versions that pyproject.toml allows, as a file of constraints: ``python scripts/lowest.py > lowest.txt``.

Of the core and of the extras that are named (cli, data, figures and sklearn, if none is). Torch stays at the build of
constraints.txt: older ones are CUDA builds of several gigabytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
EXTRAS = ("cli", "data", "figures", "sklearn")


def lowest(extras: tuple[str, ...] = EXTRAS) -> dict[str, str]:
    """{"numpy": "1.24"}: the highest lower bound of each, where several extras name it."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(r for e in extras for r in project["optional-dependencies"][e])]
    found: dict[str, str] = {}
    for requirement in map(Requirement, wanted):
        if requirement.name in ("credro", "torch"):
            continue
        (bound,) = (s.version for s in requirement.specifier if s.operator == ">=")
        found[requirement.name] = max(found.get(requirement.name, "0"), bound, key=Version)
    return found


if __name__ == "__main__":
    given = tuple(sys.argv[1:]) or EXTRAS
    for name, version in lowest(given).items():
        print(f"{name}=={version}.*")
    print((ROOT / "constraints.txt").read_text(encoding="utf-8").strip())
