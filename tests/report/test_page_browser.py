"""The report in a real browser (tests/browser.py)."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import numpy as np
import pytest

import credro
from tests.report.conftest import N


def shown(page, key):
    return page.locator(f"#{key}").inner_text().replace("\u00a0", " ")


def expected(made, per_mille):
    """Which samples are kept (N,), by sorting; those that tie go together."""
    asked = -(-per_mille * N // 1000)
    return made.eu < np.sort(made.eu)[::-1][asked - 1] if asked else np.ones(N, bool)


def close(text, fraction, digits):
    """Whether a fraction is written in per cent with so many digits; a five in the next one may go either way."""
    number, _, unit = text.partition(" ")
    assert unit == "%"
    assert len(number.partition(".")[2]) == digits
    return float(number) == pytest.approx(100 * fraction, abs=0.5001 * 10**-digits)


def check_numbers(page, made, per_mille):
    kept = expected(made, per_mille)
    accuracy = shown(page, "accuracy")
    assert close(accuracy, made.correct[kept].mean(), 2) if kept.any() else accuracy == "none left"
    assert close(shown(page, "kept"), kept.mean(), 1)
    assert shown(page, "kept-count") == f"{kept.sum()} of {N} samples"
    limit = {"never": np.inf, "always": -np.inf}.get(text := shown(page, "limit")) or float(text)
    assert ((made.eu > limit) == ~kept).all()
    for i, far in enumerate(made.far.values()):
        eu = np.asarray(credro.epistemic(credro.Box.of(far)))
        assert close(shown(page, f"ood-{i}"), (eu > limit).mean(), 1)
    assert shown(page, "accuracy") in page.locator("#rate").get_attribute("aria-valuetext").replace("\u00a0", " ")


def test_it_opens_quickly_and_quietly(opened):
    started = time.perf_counter()
    page = opened()
    assert page.locator("h1").inner_text() == "toys"
    assert time.perf_counter() - started < 5
    assert page.evaluate("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart") < 2000


def test_the_slider_shows_the_right_numbers(opened, made):
    page = opened()
    for per_mille in (0, 1, 37, 250, 500, 667, 668, 900, 1000):
        page.locator("#rate").fill(str(per_mille))
        check_numbers(page, made, per_mille)
        assert page.locator("#rate-number").input_value() == f"{per_mille / 10:.1f}"


def test_the_mark_is_on_the_curve(opened, made):
    page = opened()
    page.locator("#rate").fill("300")
    kept = expected(made, 300)
    x, y = map(float, re.match(r"M([\d.]+) ([\d.]+)", page.locator("#dot").get_attribute("d")).groups())
    low, high = (float(page.locator("#dot").get_attribute(f"data-{end}")) for end in ("low", "high"))
    assert x == pytest.approx(1000 * (1 - kept.mean()))
    assert low + (1 - y / 1000) * (high - low) == pytest.approx(made.correct[kept].mean())
    assert float(page.locator("#cursor").get_attribute("x1")) == pytest.approx(x)


def test_keys_typing_and_buttons_move_the_slider(opened, made):
    page = opened()
    page.locator("#rate").focus()
    for key, per_mille in (("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2), ("End", 1000), ("ArrowLeft", 999)):
        page.keyboard.press(key)
        check_numbers(page, made, per_mille)
    page.locator("#rate-number").fill("12.3")
    check_numbers(page, made, 123)
    page.locator("#rate-number").fill("400")  # out of range: nothing happens
    check_numbers(page, made, 123)
    page.get_by_role("button", name="95\u00a0% right").press("Enter")
    step = int(page.locator("#rate").input_value())
    check_numbers(page, made, step)
    assert float(shown(page, "accuracy").split()[0]) >= 95
    assert made.correct[expected(made, step - 1)].mean() < 0.95


def column(page, name, heading):
    region = page.get_by_role("region", name=name, exact=True)
    titles = [t.strip() for t in region.locator("thead th").all_inner_texts()]
    at = next(i for i, title in enumerate(titles) if title.startswith(heading))
    return (
        region,
        region.locator("thead th").nth(at),
        lambda: region.locator(f"tbody tr > :nth-child({at + 1})").all_inner_texts(),
    )


@pytest.mark.parametrize(
    ("table", "heading", "numeric"),
    [
        ("Results of every method", "AUROC near", True),
        ("Results of every method", "Method", False),
        ("Every member of the run", "Accuracy", True),
        ("Interval widths of the classes", "Median", True),
    ],
)
def test_tables_sort_by_click_and_by_key(opened, table, heading, numeric):
    page = opened()
    _, head, cells = column(page, table, heading)
    key = (lambda text: float(text.replace(",", ""))) if numeric else str.lower
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [key(c) for c in cells()] == sorted(key(c) for c in cells())
    head.get_by_role("button").press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert [key(c) for c in cells()] == sorted((key(c) for c in cells()), reverse=True)
    assert page.locator("th[aria-sort=descending]").count() == 1


def test_pictures_show(opened):
    page = opened()
    sizes = page.eval_on_selector_all("img", "all => all.map(i => [i.complete, i.naturalWidth, i.clientWidth])")
    assert len(sizes) == 18  # of the OOD sets there are probabilities only
    assert all(done and natural == 12 and wide > 40 for done, natural, wide in sizes)


def test_light_and_dark(opened):
    ground = "getComputedStyle(document.body).backgroundColor"
    for scheme, pressed in (("light", "false"), ("dark", "true")):
        page = opened(scheme=scheme)
        button = page.get_by_role("button", name="Dark colours")
        first = page.evaluate(ground)
        assert button.get_attribute("aria-pressed") == pressed
        button.press("Enter")
        assert button.get_attribute("aria-pressed") != pressed
        second = page.evaluate(ground)
        button.click()
        assert page.evaluate(ground) == first
        both = [first, second] if scheme == "light" else [second, first]
        assert both == ["rgb(255, 255, 255)", "rgb(19, 20, 23)"]


def test_on_paper_it_is_light_and_without_controls(opened):
    page = opened(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("header").is_visible()
    assert not page.locator("#rate").is_visible()
    assert page.locator("#rejection svg").is_visible()
    assert len(page.pdf(format="A4")) > 10_000


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_nothing_sticks_out(opened, width):
    page = opened(width=width, height=740)
    for details in page.locator("details").all():
        details.evaluate("d => { d.open = true }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("#rate", "#theme", "h1", "#rejection svg", ".card", "svg.simplex"):
        box = page.locator(name).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 0.5
        assert box["width"] > 30


def test_the_slider_is_as_long_as_the_curve(opened):
    for width in (360, 1280):
        page = opened(width=width)
        drawn = page.locator("#rejection svg").bounding_box()
        slid = page.locator("#rate").bounding_box()
        thumb = 20
        assert slid["x"] + thumb / 2 == pytest.approx(drawn["x"], abs=1)
        assert slid["width"] - thumb == pytest.approx(drawn["width"], abs=1)


def test_a_screen_reader_finds_its_way(opened):
    page = opened()
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
    targets = page.eval_on_selector_all("a[href^='#']", "all => all.map(a => a.getAttribute('href').slice(1))")
    assert set(targets) <= set(ids)
    unnamed = """all => all.filter(e => !(e.labels && e.labels.length) && !e.textContent.trim()
        && !e.getAttribute('aria-label')).map(e => e.outerHTML)"""
    assert page.eval_on_selector_all("input, select, button, a, summary", unnamed) == []
    assert page.eval_on_selector_all("img", "all => all.every(i => i.alt.length > 8)")
    silent = """all => all.filter(s => s.getAttribute('aria-hidden') !== 'true' && !(s.getAttribute('role') === 'img'
        && s.querySelector('title').textContent && s.querySelector('desc').textContent)).length"""
    assert page.eval_on_selector_all("svg", silent) == 0
    assert page.eval_on_selector_all("table", "all => all.every(t => t.caption && t.querySelector('th[scope=col]'))")
    assert page.locator("html").get_attribute("lang") == "en"


def test_the_keyboard_reaches_everything_and_shows_where_it_is(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = set()
    for _ in range(200):
        page.keyboard.press("Tab")
        key, width = page.evaluate(
            "[document.activeElement.id, parseFloat(getComputedStyle(document.activeElement).outlineWidth)]"
        )
        if page.evaluate("document.activeElement === document.body"):
            break
        assert width >= 1
        reached.add(key)
    assert {"rate", "rate-number", "choice", "previous", "next"} <= reached


def test_the_simplex_shows_the_set_of_the_chosen_sample(opened, made):
    page = opened()
    corners = page.locator(".triangle").get_attribute("points").split()
    corners = np.array([[float(v) for v in p.split(",")] + [1] for p in corners])
    for press in ("next", "next", "previous"):
        page.locator(f"#{press}").click()
    page.locator("#choice").select_option(index=page.locator("#choice option").count() - 1)
    said = page.locator("#chosen").inner_text()
    n = int(re.match(r"Sample (\d+):", said)[1])
    assert n == made.eu.argmax()  # the last of the list
    drawn = page.locator("#credal").get_attribute("points").split()
    found = np.array([[float(v) for v in p.split(",")] + [1] for p in drawn]) @ np.linalg.inv(corners)
    members = made.probs[:, n]
    assert found.min(0) == pytest.approx(members.min(0), abs=1e-4)  # barycentric coordinates are probabilities
    assert found.max(0) == pytest.approx(members.max(0), abs=1e-4)
    rows = page.locator("#chosen-bounds tbody tr td").all_inner_texts()
    bounds = np.array(rows, dtype=float).reshape(3, 3)
    assert bounds == pytest.approx(np.stack([members.min(0), members.mean(0), members.max(0)], 1), abs=6e-4)
    places = page.eval_on_selector_all(
        ".member", "all => all.map(c => [+c.getAttribute('cx'), +c.getAttribute('cy'), 1])"
    )
    assert np.array(places) @ np.linalg.inv(corners) == pytest.approx(members, abs=1e-4)


def test_markup_in_names_is_text(opened):
    page = opened()
    assert page.get_by_text("<b>cat</b>").count() > 5
    assert page.locator(".class b").count() == 0
