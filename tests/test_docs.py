"""Every Python block of the documentation runs, page by page, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 2
        code = "\n" * (line - 1) + match.group(1)
        exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_and_pictures_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}, which does not exist"
