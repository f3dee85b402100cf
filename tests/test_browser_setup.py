"""Browser tests run, or say why not: the script that installs Chromium, among stubs, and the rule of skipping."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "install_chromium.sh"
TOOLS = ("bash", "dirname", "env", "mktemp", "rm", "tail", "cat", "chmod")


class World:
    """A folder that is the whole PATH: a few tools, and stubs that note every call."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.log = folder / "bin", folder / "log"
        self.bin.mkdir()
        self.log.touch()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        self.stub("python", "exit 0")

    def stub(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f'#!{shutil.which("bash")}\necho "{name} $*" >>"{self.log}"\n{body}\n')
        path.chmod(0o755)

    def run(self) -> tuple[int, str, list[str]]:
        """Exit code, what was printed, the calls."""
        done = subprocess.run(
            [self.bin / "bash", SCRIPT],
            env={"PATH": str(self.bin), "PYTHON": str(self.bin / "python"), "HOME": str(self.bin.parent)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr, self.log.read_text().splitlines()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def brings(world: World) -> str:
    """The body of an apt-get that installs a browser."""
    path = world.bin / "chromium"
    return f'case "$*" in *install*) printf "#!{world.bin}/bash\\nexit 0\\n" >"{path}"; chmod 755 "{path}";; esac'


def test_nothing_is_done_where_all_is_there(world):
    world.stub("chromium", "exit 0")
    world.stub("apt-get", "exit 1")
    started = time.perf_counter()
    code, said, calls = world.run()
    assert (code, said) == (0, f"browser tests: {world.bin}/chromium\n")
    assert time.perf_counter() - started < 5
    assert not [c for c in calls if c.startswith(("apt-get", "sudo")) or "pip" in c]


def test_root_installs_it_and_looks_for_new_lists_only_when_needed(world):
    world.stub("id", "echo 0")
    world.stub("apt-get", brings(world))
    code, said, calls = world.run()
    assert code == 0, said
    assert "installing Chromium" in said
    asked = [c for c in calls if c.startswith("apt-get")]
    assert len(asked) == 1
    assert "--no-install-recommends chromium" in asked[0]


def test_old_lists_of_packages_are_renewed(world):
    world.stub("id", "echo 0")
    fresh = world.bin.parent / "fresh"
    world.stub(
        "apt-get",
        f'case "$*" in *update*) echo >"{fresh}"; exit 0;; esac\n[ -e "{fresh}" ] || exit 100\n{brings(world)}',
    )
    code, said, calls = world.run()
    assert code == 0, said
    steps = ["update" if " update" in c else "install" for c in calls if c.startswith("apt-get")]
    assert steps == ["install", "update", "install"]


def test_sudo_is_used_where_it_asks_for_no_password(world):
    world.stub("id", "echo 1000")
    world.stub("sudo", '[ "$1" = -n ] || exit 9\nshift\n"$@"')
    world.stub("true", "exit 0")
    world.stub("apt-get", brings(world))
    code, said, calls = world.run()
    assert code == 0, said
    assert any(c.startswith("sudo -n env") and "apt-get" in c for c in calls)


@pytest.mark.parametrize(
    ("user", "stubs", "reason"),
    [
        ("0", {}, "there is no apt-get"),
        ("1000", {"apt-get": "exit 0"}, "run 'sudo apt-get install chromium', or this script as root"),
        ("1000", {"apt-get": "exit 0", "sudo": "exit 1"}, "run 'sudo apt-get install chromium'"),
        (
            "0",
            {"apt-get": "echo 'E: Temporary failure resolving'; exit 100"},
            "could not install Chromium: E: Temporary",
        ),
        ("0", {"apt-get": "exit 0", "chromium-browser": "exit 1"}, "no browser that starts"),
    ],
    ids=["no apt-get", "no sudo", "sudo with a password", "no network", "a snap's stub"],
)
def test_where_it_may_not_one_line_says_so(world, user, stubs, reason):
    world.stub("id", f"echo {user}")
    for name, body in stubs.items():
        world.stub(name, body)
    code, said, _ = world.run()
    assert code == 1
    [line] = [text for text in said.splitlines() if "not possible here" in text]
    assert reason in line


def test_playwright_is_installed_only_where_it_is_missing(world):
    world.stub("chromium", "exit 0")
    world.stub("python", 'case "$*" in *import*) exit 1;; esac')
    code, _, calls = world.run()
    assert code == 0
    assert [c for c in calls if "-m pip install" in c and c.endswith("playwright")]
    world.stub("python", "exit 1")
    code, said, _ = world.run()
    assert code == 1
    assert "pip could not install Playwright" in said


@pytest.mark.parametrize(("required", "code"), [("", 0), ("1", 1)])
def test_make_goes_on_without_a_browser_unless_it_is_required(tmp_path, required, code):
    """The rule of the Makefile, with a script that always says no."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "install_chromium.sh"
    script.write_text("#!/bin/sh\necho 'not possible here'\nexit 1\n")
    script.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv").mkdir()
    for name in ("pyproject.toml", "constraints.txt", ".venv/.up-to-date"):
        (tmp_path / name).touch()
    (tmp_path / ".venv" / ".up-to-date").touch()
    environment = {**os.environ, "CREDRO_REQUIRE_BROWSER": required}
    done = subprocess.run(
        [make, "browser"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode != 0) == bool(code), done.stderr
    assert "not possible here" in done.stdout


@pytest.mark.parametrize(
    ("required", "code", "said"),
    [(None, 0, "1 skipped"), ("1", 1, "Chromium is not installed: run scripts/install_chromium.sh")],
)
def test_without_a_browser_tests_skip_or_fail(tmp_path, required, code, said):
    pytest.importorskip("playwright.sync_api")
    test = tmp_path / "test_it.py"
    test.write_text("from tests.browser import chromium\n\ndef test_page():\n    with chromium():\n        pass\n")
    environment = {k: v for k, v in os.environ.items() if k != "CREDRO_REQUIRE_BROWSER"}
    environment |= {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)} | (
        {"CREDRO_REQUIRE_BROWSER": required} if required else {}
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(test)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert said in done.stdout
    assert "Chromium is not installed" in done.stdout  # -rs tells why


def test_where_changes_land_the_browser_is_required():
    assert "export CREDRO_REQUIRE_BROWSER=1" in (ROOT / ".ci" / "run").read_text()
    assert "--dist loadfile -rs" in (ROOT / "Makefile").read_text()
