"""Imports point one way along the data, whichever way they are written; files are read in one sitting."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "credro"
LONG = {
    "credal/sets.py": "Box and Hull are one contract, read side by side",
    "ensemble/_ensemble.py": "one class, all that a user may ask of an ensemble; a third of it is what it promises",
}
"""Files above 300 lines, each with its reason."""


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on the package in ``folder``, by the project's contracts."""
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); from importlinter.cli import lint_imports; "
        f"sys.exit(lint_imports(config_filename={str(ROOT / 'pyproject.toml')!r}, no_cache=True))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)


def test_imports_point_one_way() -> None:
    found = lint(SOURCE.parent)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("evaluation/measure.py", "from ..report import style"),
        ("credal/sets.py", "from credro import report"),
        ("credal/sets.py", "from credro._names import ArgumentError"),
        ("training/run.py", "def late():\n    from credro.ensemble import load"),
        ("data/base.py", "import credro.nets.registry"),
    ],
)
def test_an_import_that_points_back_is_found(tmp_path: Path, file: str, line: str) -> None:
    shutil.copytree(SOURCE, tmp_path / "credro", ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    path = tmp_path / "credro" / file
    path.write_text(path.read_text() + f"\n{line}\n")
    found = lint(tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "BROKEN" in found.stdout


def test_a_package_without_a_place_is_found(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "credro", ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    (tmp_path / "credro" / "elsewhere.py").write_text("")
    assert "elsewhere" in lint(tmp_path).stdout


def test_files_are_read_in_one_sitting() -> None:
    long = {p.relative_to(SOURCE).as_posix(): len(p.read_text().splitlines()) for p in SOURCE.rglob("*.py")}
    assert {name: lines for name, lines in long.items() if lines > 300 and name not in LONG} == {}
    assert all(long[name] > 300 for name in LONG), "no longer long: take them off the list"


def test_the_places_of_the_newcomers_questions_are_there() -> None:
    text = (ROOT / "docs" / "design.md").read_text().split("## Where do I ...")[1].split("\n## ")[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 10
    for _, question, place, _ in rows:
        named = re.findall(r"`([^`]+)`", place)
        paths = [SOURCE / name for name in named if "/" in name]
        assert paths, question
        assert all(path.exists() for path in paths), place
        for name in (n for n in named if "/" not in n):
            inside = [p for path in paths for p in (path.rglob("*.py") if path.is_dir() else [path])]
            assert any(name.split(".")[-1] in p.read_text() for p in inside), f"{name} is not in {place}"
