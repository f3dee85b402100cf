"""The built site opens from the disk and loads nothing from a network, its search included. ``make docs`` builds it."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.browser import chromium

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site"

pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs")


class Loads(HTMLParser):
    """What a page loads by itself; links that a reader may follow are not among it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio") and given.get("src"):
            self.found.append(str(given["src"]))
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.found.append(str(given.get("href")))


def loads(page: Path) -> Iterator[str]:
    parser = Loads()
    parser.feed(page.read_text())
    yield from parser.found


def test_every_page_is_built() -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        assert (SITE / source.relative_to(ROOT / "docs")).with_suffix(".html").exists(), (
            f"{source}: run make docs again"
        )


def test_pages_load_nothing_from_elsewhere() -> None:
    for page in SITE.rglob("*.html"):
        for target in loads(page):
            if target.startswith("data:") or page.name == "404.html":
                continue
            assert "//" not in target, f"{page.relative_to(SITE)} loads {target}"
            assert (page.parent / target.partition("?")[0]).exists(), f"{page.relative_to(SITE)} misses {target}"


@pytest.mark.slow
def test_search_works_from_the_disk() -> None:
    asked: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((SITE / "index.html").as_uri())
        page.locator(".md-search__input").press_sequentially("threshold guarantee", delay=20)
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        assert page.locator(".md-search-result__link[href*='threshold']").count() > 0
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
