"""docs/licences.md, from the metadata of what is installed: ``make licences``."""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

HEAD = """# Licences of dependencies

credro itself: Apache-2.0. What it needs, and what its extras bring, with the licence that each package states in its
own metadata (`make licences`). Versions are those installed when this was written; what was not installed is left out.

| package | version | licence | needed by |
|---|---|---|---|"""
TAIL = """
## Where next

- [Start](start.md): which extra you need for what.
- [Design](design.md): why each of them is there."""


def licence(of: Distribution) -> str:
    """The SPDX expression; else the classifiers; else the first line of the free text."""
    about = of.metadata
    if found := about.get("License-Expression"):
        return str(found)
    kinds = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    if kinds := [k for k in kinds if k != "OSI Approved"]:
        return "; ".join(kinds)
    text = (about.get("License") or "").strip().splitlines()
    return text[0][:60] if text else "not stated"


def extras(requirement: Requirement) -> list[str]:
    """The extras of credro that bring it; "core" where none is needed."""
    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
        return ["core"]
    names = distribution("credro").metadata.get_all("Provides-Extra") or []
    return [name for name in names if requirement.marker.evaluate({"extra": name})]


def main() -> None:
    by: dict[str, set[str]] = {}
    for line in distribution("credro").requires or ():
        requirement = Requirement(line)
        if requirement.name != "credro":
            by.setdefault(requirement.name, set()).update(extras(requirement))
    print(HEAD)
    for name in sorted(by, key=str.lower):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        print(f"| {name} | {found.version} | {licence(found)} | {', '.join(sorted(by[name]))} |")
    print(TAIL)


if __name__ == "__main__":
    main()
