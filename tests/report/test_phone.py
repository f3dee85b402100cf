"""The report under a finger: menu, slider, and wide tables that scroll in a box of their own."""

from __future__ import annotations

import re
import time

import numpy as np
import torch

from credro.data.base import Data
from credro.report.page import write_report
from tests.report.test_page_browser import check_numbers


def test_a_phone_has_a_menu(opened):
    page = opened(360, 640, is_mobile=True, has_touch=True)
    assert page.get_by_role("navigation").count() == 1
    menu = page.locator("#contents")
    summary = menu.locator("summary")
    assert summary.bounding_box()["height"] >= 44
    link = menu.get_by_role("link", name="Confusion")
    assert not link.is_visible()
    summary.tap()
    sections = page.eval_on_selector_all("main section", "all => all.map(s => '#' + s.id)")
    assert menu.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))") == sections
    assert all(
        box["height"] >= 44 and box["width"] <= 360 for box in (a.bounding_box() for a in menu.locator("a").all())
    )
    link.tap()
    reached = "() => Math.abs(document.querySelector('#confusion').getBoundingClientRect().top) < 120"
    until = time.monotonic() + 10  # it scrolls smoothly; the page's policy forbids wait_for_function
    while not page.evaluate(reached):
        assert time.monotonic() < until
        page.wait_for_timeout(50)
    assert not link.is_visible()  # it has closed
    assert page.locator("header").bounding_box()["y"] == 0  # and stays at hand
    summary.tap()
    page.keyboard.press("Escape")
    assert not link.is_visible()
    summary.tap()
    page.touchscreen.tap(180, 620)
    assert not menu.evaluate("d => d.open")


def test_without_scripts_the_menu_opens_too(browser, made):
    context = browser.new_context(viewport={"width": 360, "height": 640}, java_script_enabled=False)
    page = context.new_page()
    page.goto(made.path.as_uri())
    page.locator("#contents summary").click()
    assert page.locator("#contents a").first.is_visible()
    context.close()


def test_a_wide_screen_has_a_row_of_links(opened):
    page = opened()
    assert page.get_by_role("navigation").count() == 1
    assert not page.locator("#contents").is_visible()
    tops = {a.bounding_box()["y"] for a in page.get_by_role("navigation").get_by_role("link").all()}
    assert len(tops) == 1


def test_the_slider_is_large_enough_for_a_finger(opened, made):
    page = opened(360, 640, is_mobile=True, has_touch=True)
    rate = page.locator("#rate")
    rate.scroll_into_view_if_needed()
    box = rate.bounding_box()
    assert box["height"] >= 44
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    step = int(rate.input_value())
    assert 440 < step < 560
    check_numbers(page, made, step)
    for button in page.locator("button.goal").all():
        assert button.bounding_box()["height"] >= 44


def test_the_matrix_scrolls_in_its_own_box(browser, tmp_path):
    draw = np.random.default_rng(0)
    names = tuple(f"a class with a long name {k}" for k in range(20))
    labels = draw.integers(0, 20, 600)
    probs = draw.dirichlet(np.ones(20), (3, 600)) + 0.5 * np.eye(20)[labels]
    data = Data("many", torch.from_numpy(draw.normal(size=(600, 2))), torch.from_numpy(labels), (2,), names)
    path = write_report(tmp_path / "r.html", probs / probs.sum(-1, keepdims=True), data)
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator(".scroll:has(table.matrix)")
    assert box.evaluate("e => e.scrollWidth > e.clientWidth")
    box.evaluate("e => { e.scrollLeft = 300 }")
    head, first = (box.locator(where).first.bounding_box() for where in ("tbody th", "tbody td"))
    assert head["x"] >= 0  # the name of the class stays in sight
    assert first["x"] < head["x"] + head["width"]
    fits = "all => all.filter(c => c.scrollWidth > c.clientWidth + 1).length"
    assert page.eval_on_selector_all("table.matrix td", fits) == 0
    cell = page.locator("table.matrix td.right").first
    assert re.fullmatch(
        r"a class with a long name 0 taken for a .* 0: \d+ of \d+, [\d.]+\u00a0%", cell.get_attribute("title")
    )
    assert cell.evaluate("e => getComputedStyle(e).backgroundColor") != "rgba(0, 0, 0, 0)"
    context.close()
