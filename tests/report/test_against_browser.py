"""What is against a report is seen: red, above the fold, with and without scripts, on a phone and on paper."""

from __future__ import annotations

import re

import pytest
import torch

import credro
from credro.data.base import Data
from credro.report.page import write_report


@pytest.fixture(scope="module")
def flattering(tmp_path_factory):
    """A report on the very samples that a run was trained on, under a long name."""
    folder = tmp_path_factory.mktemp("flattering")
    x = torch.randn(120, 3, generator=torch.Generator().manual_seed(0))
    data = Data("rows", x, x.argmax(1), (3,), ("ant", "bee", "cat"))
    recipe = credro.Recipe(epochs=60, lr=0.1)
    run = credro.fit("mlp", data, members=2, recipe=recipe, executor="sequential", progress="none")
    return write_report(folder / "report.html", run, data, name="a-run-with-a-long-name_of-many-words-2026-11-18")


def is_red(colour):
    r, g, b = map(int, re.findall(r"\d+", colour)[:3])
    return r > 150 and r > 1.6 * g and r > 1.6 * b


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
@pytest.mark.parametrize(("width", "height", "phone"), [(1280, 800, False), (360, 640, True), (320, 568, True)])
def test_the_banner_is_red_and_above_the_fold(browser, flattering, width, height, phone, scripts, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": height},
        is_mobile=phone,
        has_touch=phone,
        java_script_enabled=scripts,
        color_scheme=scheme,
    )
    page = context.new_page()
    page.goto(flattering.as_uri())
    banner = page.get_by_role("alert")
    assert banner.count() == 1
    assert "All 120 samples were trained on: every figure on this page flatters the run." in banner.inner_text()
    first = banner.locator("li").first.bounding_box()
    assert first["y"] >= 56  # the header's height: nothing lies over it
    assert first["y"] + first["height"] <= height
    assert first["width"] > 200
    if scripts:
        for what in ("color", "borderLeftColor"):
            assert is_red(banner.evaluate(f"e => getComputedStyle(e).{what}")), (what, scheme)
        hit = "([x, y]) => !!document.elementFromPoint(x, y).closest('[role=alert]')"
        assert page.evaluate(hit, [first["x"] + 40, first["y"] + 8])
    context.close()


def test_the_banner_is_on_paper_too(browser, flattering):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(flattering.as_uri())
    page.emulate_media(media="print")
    banner = page.get_by_role("alert")
    assert banner.is_visible()
    assert is_red(banner.evaluate("e => getComputedStyle(e).color"))
    context.close()
