"""Chromium without a window, driven by Playwright: ``scripts/install_chromium.sh`` brings both.

Where one of them is missing the tests skip and say so; with ``CREDRO_REQUIRE_BROWSER=1``, as in ``.ci/run``, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
HOW = "run scripts/install_chromium.sh"


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser with a profile of its own; the calling test skips, or fails, where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("Chromium")
    sandbox = [] if hasattr(os, "geteuid") and os.geteuid() else ["--no-sandbox"]  # root has none
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=path, args=[*sandbox, *ARGUMENTS]) as found,
    ):
        yield found


def missing(what: str) -> None:
    """Skip, or fail where a browser is required."""
    reason = f"{what} is not installed: {HOW} to test in a browser"
    if os.environ.get("CREDRO_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason} (CREDRO_REQUIRE_BROWSER=1: these tests must not be skipped)", pytrace=False)
    pytest.skip(reason)
