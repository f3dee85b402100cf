"""A report in a real browser (tests/browser.py), and what it was made from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import credro
from credro.data.base import Data
from credro.report.page import write_report
from tests.browser import chromium

N, CLASSES = 240, ("<b>cat</b>", "dog", "a bird with a very long name that goes on")


class Made:
    """A report of three classes with pictures and two OOD sets, and what it was made from."""

    def __init__(self, folder):
        draw = np.random.default_rng(0)
        self.labels = draw.integers(0, 3, N)
        scores = draw.normal(size=(4, N, 3)) + draw.normal(size=(N, 3)) + 2 * np.eye(3)[self.labels]
        scores[:, : N // 3] = 9 * np.eye(3)[self.labels[: N // 3]]  # a third of the members agree: EU ties at 0
        self.probs = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        far = draw.dirichlet(np.ones(3), (2, 4, 90))
        self.far = {"near": far[0], "a/long/folder-name_of_an_OOD_set": far[1]}
        pixels = torch.randint(256, (N, 1, 12, 12), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
        data = Data("toys", pixels, torch.from_numpy(self.labels), (1, 12, 12), CLASSES)
        self.path = write_report(folder / "report.html", self.probs, data, ood=self.far, name="toys")
        self.eu = np.asarray(credro.epistemic(credro.Box.of(self.probs)))
        self.correct = self.probs.mean(0).argmax(1) == self.labels


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser, made):
    """A function that opens the report; at the end nothing may have been complained about or asked for."""
    contexts, complaints, asked = [], [], []

    def open_(width=1280, height=900, scheme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(made.path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in asked if not url.startswith("data:")} == {made.path.as_uri()}
