"""Every command on docs/commands.md, and every example in a help text, is one that the parser takes."""

import re
import shlex
from pathlib import Path

import pytest

from credro.cli.app import command

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def commands(text):
    lines = text.replace("\\\n", " ").splitlines()
    return [line.partition(" #")[0].strip() for line in lines if line.strip().startswith("credro ")]


def leaves(group, path=()):
    for name, child in group.commands.items():
        if hasattr(child, "commands"):
            yield from leaves(child, (*path, name))
        else:
            yield (*path, name), child


ON_PAGE = [c for block in re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL) for c in commands(block)]
IN_HELP = [c for _, leaf in leaves(command()) for c in commands(leaf.help or "")]


@pytest.mark.parametrize("line", dict.fromkeys([*ON_PAGE, *IN_HELP]))
def test_the_parser_takes_it(line):
    words = shlex.split(line)[1:]
    path, leaf = next((p, c) for p, c in leaves(command()) if tuple(words[: len(p)]) == p)
    leaf.make_context(" ".join(path), words[len(path) :])  # raises on an unknown option or a missing argument


def test_every_command_is_on_the_page():
    for path, _ in leaves(command()):
        assert any(line.startswith(f"credro {' '.join(path)} ") for line in [f"{c} " for c in ON_PAGE]), path
