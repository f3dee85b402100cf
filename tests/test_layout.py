"""Imports point one way: a room may know the rooms to its left, never those to its right (docs/design.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "credro"
ORDER = [
    "credal",
    "data",
    "nets",
    "objectives",
    "readouts",
    "methods",
    "training",
    "evaluation",
    "ensemble",
    "sklearn",
    "assess",
    "report",
    "experiments",
    "demo",
    "cli",
]
FILES = sorted(p for p in SOURCE.rglob("*.py") if p.name not in ("__main__.py",) and p != SOURCE / "__init__.py")


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_left(path: Path) -> None:
    here = room(path)
    assert here in ORDER, f"{here} has no place in the way of the data: add it to ORDER and docs/design.md"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("credro."):
            other = node.module.split(".")[1]
            assert ORDER.index(other) <= ORDER.index(here), f"{path.name} ({here}) imports {node.module} to its right"
            if here == "credal":
                assert other == "credal", "credal knows torch alone"
