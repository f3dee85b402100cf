"""For the site: what a docstring says of an argument becomes an entry of a list. Used by mkdocs.yml.

Docstrings of this project are prose in which ``name: what it is.`` tells of an argument or field, or have Google's
sections (``Args:``). help() shows both well; a web page would run them together.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Alias, Class, Extension, Function, Object

NAMES = r"\w+(?:, \w+)*"
ENTRY = re.compile(rf"(?:^|(?<=[.)\]]) )({NAMES}): ", re.MULTILINE)
SECTIONS = {"Args:": "Arguments", "Returns:": "Returns", "Raises:": "Raises"}


def as_list(text: str, known: set[str]) -> str:
    """``text`` with a list entry for every ``name: ...`` whose names are all ``known``, and for those of sections."""
    return "\n\n".join(_paragraph(part, known) for part in text.split("\n\n"))


def _section(title: str, lines: list[str]) -> str:
    """A Google section: an entry begins where a line is indented no deeper than the first."""
    depth = min(len(line) - len(line.lstrip()) for line in lines)
    entries: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) == depth:
            entries.append(re.sub(rf"^({NAMES}): ", lambda m: f"`{m.group(1)}`: ", line.strip()))
        else:
            entries[-1] += f" {line.strip()}"
    return "\n".join([f"**{title}**", "", *(f"- {entry}" for entry in entries)])


def _paragraph(text: str, known: set[str]) -> str:
    first, *rest = text.splitlines() or [""]
    if first in SECTIONS and rest:
        return _section(SECTIONS[first], rest)
    if text.startswith((" ", "-")):  # an equation, a list
        return text
    flat = re.sub(r"\n\s*", "\n", text)
    starts = [m for m in ENTRY.finditer(flat) if set(m.group(1).split(", ")) <= known]
    if not starts:
        return text
    ends = [*(m.start() for m in starts[1:]), len(flat)]
    lead = flat[: starts[0].start()].strip()
    entries = [
        f"- {', '.join(f'`{name}`' for name in m.group(1).split(', '))}: {' '.join(flat[m.end() : end].split())}"
        for m, end in zip(starts, ends, strict=True)
    ]
    return "\n".join([*([lead, ""] if lead else []), *entries])


class Arguments(Extension):
    """Rewrites the docstrings of a package once it is loaded."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        self.walk(pkg)

    def walk(self, parent: Object) -> None:
        for child in parent.members.values():
            if isinstance(child, Alias):
                continue
            if child.docstring is not None and isinstance(child, Class | Function):
                known = {p.name for p in child.parameters} | (set(child.members) if isinstance(child, Class) else set())
                child.docstring.value = as_list(child.docstring.value, known)
            self.walk(child)
