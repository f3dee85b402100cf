"""The documentation holds: its Python runs, its commands are taken, its links and its pages lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from typing import Any

import pytest

import credro
from credro.cli.app import command
from credro.experiments import BENCHMARKS, EXPERIMENTS
from credro.methods import CHOICES, METHODS
from credro.nets import NETS
from tests.cli.test_commands_page import commands, leaves

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = sorted([ROOT / "README.md", *DOCS])
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def tables_as_they_were() -> Iterator[None]:
    """Pages that add a method, a choice, a network or an experiment to credro's tables add it for themselves."""
    tables: list[dict[str, Any]] = [METHODS, NETS, EXPERIMENTS, BENCHMARKS, *(kinds for kinds, _ in CHOICES.values())]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def run_python(page: Path, text: str, match: re.Match[str], names: dict[str, object]) -> None:
    """Execute a block as a reader would type it, so that an error names the line of the page."""
    line = text[: match.start()].count("\n") + 1
    exec(compile("\n" * line + match.group(2), str(page), "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block, page by page, in an empty folder."""
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for match in FENCED.finditer(text):
        if match.group(1) == "python":
            run_python(page, text, match, names)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=name)
def test_tutorials_run_with_their_commands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python and shell blocks of a tutorial in the order in which a reader would type them."""
    from credro.cli.app import run

    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for match in FENCED.finditer(text):
        if match.group(1) == "python":
            run_python(page, text, match, names)
        elif match.group(1) == "bash":
            for line in commands(match.group(2)):
                assert run(shlex.split(line)[1:]) == 0, line


def typed(page: Path) -> list[str]:
    """The command lines of a page: those in shell blocks, and indented ones as in README.md."""
    text = page.read_text()
    shell = "\n".join(body for language, body in FENCED.findall(text) if language in ("bash", "sh", "console"))
    indented = "\n".join(line for line in FENCED.sub("", text).splitlines() if line.startswith("    "))
    return [line for part in (shell, indented) for line in commands(part)]


def mentioned(page: Path) -> list[str]:
    """Commands in running text, ``credro evaluate RUN`` and the like; they may be incomplete."""
    return re.findall(r"(?<!`)`(credro [a-z][^`\n]*)`(?!`)", FENCED.sub("", page.read_text()))


TYPED = sorted({(name(page), line) for page in PAGES for line in typed(page)})
MENTIONED = sorted({(name(page), line) for page in PAGES for line in mentioned(page)})


def find(line: str) -> tuple[tuple[str, ...], object, list[str]]:
    """The command of a line, and what follows it."""
    words = shlex.split(line)[1:]
    for path, leaf in leaves(command()):
        if tuple(words[: len(path)]) == path:
            return path, leaf, words[len(path) :]
    raise AssertionError(f"credro has no command {' '.join(words[:2])!r}")


@pytest.mark.parametrize(("page", "line"), TYPED)
def test_the_parser_takes_every_command(page: str, line: str) -> None:
    path, leaf, rest = find(line)
    leaf.make_context(" ".join(path), rest)  # raises on an unknown option or a missing argument


@pytest.mark.parametrize(("page", "line"), MENTIONED)
def test_commands_in_running_text_exist(page: str, line: str) -> None:
    if line.split()[1] == "data" and len(line.split()) == 2:
        return  # the group of commands
    _, leaf, rest = find(line)
    known = {option for parameter in leaf.params for option in parameter.opts} | {"--help", "--debug"}
    for word in rest:
        assert not word.startswith("--") or word in known, f"{line}: {word}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"`make ([a-z-]+)`", page.read_text()):
        assert target in targets


def slugs(page: Path) -> set[str]:
    """Anchors of a page's headings, as the site and code hosts make them."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", page.read_text())):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_pictures_and_anchors_exist(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{name(page)} points to {target}, which does not exist"
        if anchor:
            assert anchor in slugs(target), f"{name(page)} points to {name(target)}#{anchor}"


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_a_page_ends_with_where_to_go_next(page: Path) -> None:
    last = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[-1]
    assert last.startswith("Where next\n")
    assert re.search(r"\]\([^)]+\.md", last), "it must lead to another page"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in DOCS}


def test_every_public_name_is_in_the_reference() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    packages = (credro, credro.data, credro.evaluation, credro.members, credro.metrics)
    wanted = {each for package in packages for each in package.__all__ if not ismodule(getattr(package, each))}
    for each in wanted - {"__version__"}:
        assert re.search(rf"^ +heading: credro\.(\w+\.)*{each}$", text, re.MULTILINE), each


def reference() -> list[tuple[str, str]]:
    pages = (ROOT / "docs" / "api").glob("*.md")
    return sorted((name(page), path) for page in pages for path in re.findall(r"^::: (\S+)$", page.read_text(), re.M))


@pytest.mark.parametrize(("page", "path"), reference())
def test_what_the_reference_shows_exists_under_the_name_it_gives(page: str, path: str) -> None:
    module, _, each = path.rpartition(".")
    entry = (ROOT / page).read_text().split(f"::: {path}\n")[1]
    heading = re.match(r" +options:\n +heading: (\S+)\n", entry).group(1)
    shown, _, same = heading.rpartition(".")
    assert getattr(import_module(module), each) is getattr(import_module(shown), same)


def test_the_reference_has_every_kind_of_choice_and_its_options() -> None:
    text = (ROOT / "docs" / "api" / "members.md").read_text()
    said = re.findall(r"^\| ([a-z-]+) \| `(\w+)` \| `(\w+)` \| (.*) \|$", text, re.M)
    expected = [
        (what.replace("readout", "read-out"), kind, made.__name__, made().options())
        for what, (kinds, _) in CHOICES.items()
        for kind, made in kinds.items()
    ]
    assert [(w, k, c, {} if o == "none" else eval(f"dict({o.replace('`', '')})")) for w, k, c, o in said] == expected
