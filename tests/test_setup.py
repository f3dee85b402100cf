"""`make demo` and `make test` set up what they need, wherever the tree lies and whoever asks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")
needs_make = pytest.mark.skipif(MAKE is None, reason="make is not installed")
NOBODY = 65534


def tree(place: Path) -> Path:
    """The project without its history, environments and results, in a folder with spaces in its name."""
    folder = place / "a folder with spaces"
    names = (".git", ".venv*", "runs", "site", "dist", "build", "__pycache__", ".*_cache", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*names))
    return folder


def said(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")}
    command = [str(MAKE), *arguments]
    return subprocess.run(
        command, cwd=folder, env=plain | environment, capture_output=True, text=True, timeout=1200, check=False
    )


@needs_make
def test_the_demo_installs_less_than_the_tests(tmp_path):
    folder = tree(tmp_path)
    demo, test = (said(folder, "-n", target) for target in ("demo", "test"))
    assert (demo.returncode, test.returncode) == (0, 0), demo.stderr + test.stderr
    assert "-e '.[demo]'" in demo.stdout
    assert ".[dev]" not in demo.stdout
    assert "-e '.[dev]'" in test.stdout
    for planned in (demo.stdout, test.stdout):
        assert "git " not in planned
        assert str(folder) not in planned  # relative paths have no spaces
        assert "sudo" not in planned


@needs_make
def test_what_is_up_to_date_is_not_set_up_again(tmp_path):
    folder = tree(tmp_path)
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("bin/python", ".demo-up-to-date"):
        (folder / ".venv" / name).touch()
    assert "pip install" not in said(folder, "-n", "demo").stdout
    assert "-e '.[dev]'" in said(folder, "-n", "test").stdout
    (folder / ".venv" / ".up-to-date").touch()
    assert "pip install" not in said(folder, "-n", "test").stdout


def test_lowest_versions_are_those_of_the_project():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    spec = importlib.util.spec_from_file_location("lowest", ROOT / "scripts" / "lowest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.lowest()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"typer>={found['typer']}" in extras["cli"]
    assert "torch" not in found
    assert f"scikit-learn>={found['scikit-learn']}" in extras["sklearn"]  # the higher of two


@pytest.mark.slow
@needs_make
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_unprivileged_sets_up_and_runs_the_demo(tmp_path):
    """The real thing, and the demo in small; the browser is left out with words, or fails where it is required."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755)
    folder = tree(tmp_path)
    (folder / "home").mkdir()
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    empty = folder / "home" / "bin"  # no browser and no sudo on the way
    empty.mkdir()
    for tool in ("bash", "sh", "env", "id", "dirname", "mktemp", "make", "cat", "touch", "echo", "apt-get"):
        if place := shutil.which(tool):
            (empty / tool).symlink_to(place)

    def somebody(*command: str, path: str = os.environ["PATH"], **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(folder / "home"), "PATH": path, **more}
        environment |= {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
        who = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        return subprocess.run(
            [*who, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200, check=False
        )

    if somebody("python3", "-c", "pass").returncode:
        pytest.skip("the Python here is not readable for others")
    done = somebody(MAKE, ".venv/.demo-up-to-date")
    assert done.returncode == 0, done.stderr
    python = str(folder / ".venv" / "bin" / "python")
    done = somebody(python, "-m", "credro", "demo", "--samples", "200", "--epochs", "1", "--members", "2")
    assert done.returncode == 0, done.stderr
    assert list((folder / "runs" / "demo").rglob("*.html"))
    done = somebody(MAKE, "setup")
    assert done.returncode == 0, done.stderr
    for required, code in (("0", 0), ("1", 2)):
        done = somebody(MAKE, "browser", path=str(empty), CREDRO_REQUIRE_BROWSER=required)
        assert done.returncode == code, done.stdout + done.stderr
        assert "browser tests: not possible here" in done.stderr
