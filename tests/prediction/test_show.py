"""What a notebook shows, parsed again and held against the members' probabilities."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import credro
from credro.prediction import GaussianPrediction, Prediction
from credro.prediction.show import BAR
from credro.readouts import BoxReadOut, HullReadOut
from tests.prediction.test_prediction import FILES, gaussians, made, members
from tests.training.common import blobs, digits, small_net, trained

SAFE = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "span"}
VOID = {"rect"}


class Page(HTMLParser):
    """Tables as lists of texts, bars as lists of rectangles, and every tag met."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.rows, self.bars, self.text, self.open = set(), [], [], "", []
        self.labels: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        assert not any(name.startswith("on") or name in ("href", "src") for name in given)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "svg":
            self.bars.append([])
            self.labels.append(given["aria-label"])
        elif tag == "rect":
            self.bars[-1].append((float(given["x"]), float(given["width"])))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.rows and any(tag in ("td", "th") for tag in self.open):
            self.rows[-1][-1] += data


def test_the_table_says_what_the_members_say():
    probs = members().numpy()
    mean, low, high = probs.mean(0), probs.min(0), probs.max(0)
    names = ("cat", "dog", "a, b", "<script>")
    page = Page(made(samples=FILES)._repr_html_())
    head, *rows = page.rows
    assert head == ["sample", "label", "probability", "top 3: lower to upper", "EU", "AU", "TU"]
    assert [row[0] for row in rows] == list(FILES[:10])
    eu = credro.epistemic(credro.Box.of(probs))
    for i, (_, label, probability, tops, shown_eu, au, tu) in enumerate(rows):
        order = np.argsort(-mean[i])[:3]
        assert label == names[order[0]]
        assert float(probability) == pytest.approx(mean[i].max(), abs=6e-4)
        for k in order:
            assert f"{names[k]}: {mean[i, k]:.2f} [{low[i, k]:.2f}, {high[i, k]:.2f}]" in tops
        assert float(shown_eu) == pytest.approx(eu[i], abs=6e-4)
        assert float(tu) - float(au) == pytest.approx(eu[i], abs=2e-3)
        for k, bar in zip(order, page.bars[3 * i : 3 * i + 3], strict=True):
            (start, whole), (left, width), (tick, _) = bar
            assert (start, whole) == (0, BAR)
            assert left / BAR == pytest.approx(low[i, k], abs=0.01)
            assert (left + width) / BAR == pytest.approx(high[i, k], abs=0.01)
            assert (tick + 1) / BAR == pytest.approx(mean[i, k], abs=0.01)
    assert "The first 10 of 12 samples" in page.text
    assert "EU, AU, TU in nats" in page.text


def test_few_samples_are_shown_whole_and_none_is_no_error():
    page = Page(made()[:3]._repr_html_())
    assert len(page.rows) == 4
    assert "The first" not in page.text
    assert len(Page(made()[:0]._repr_html_()).rows) == 1
    assert len(Page(gaussians()[:0]._repr_html_()).rows) == 1


def test_what_the_bars_and_numbers_mean_is_said():
    assert "Bars: lower to upper probability" in made()._repr_html_()
    assert "Bars: range of the members" in made("mean")._repr_html_()
    assert "EU: width of the interval" in BoxReadOut()(members(classes=2))._repr_html_()
    assert "top 2: lower to upper" in BoxReadOut()(members(classes=2))._repr_html_()


EVIL = ('<script>alert("1")</script>', "\"'><img src=x onerror=alert(1)>", "a&amp;b", "</td></table>")


def test_names_cannot_become_markup():
    found = BoxReadOut()(members())
    prediction = Prediction(found.probs, found.mean, found.set, classes=EVIL, samples=EVIL * 3, method=EVIL[0])
    page = Page(prediction._repr_html_())
    assert page.tags <= SAFE
    assert page.rows[1][0] == EVIL[0]
    wanted = {EVIL[k][:39] + "…" if len(EVIL[k]) > 40 else EVIL[k] for k in members().mean(0).argmax(-1).tolist()[:10]}
    assert {row[1] for row in page.rows[1:]} == wanted
    assert all("<" not in tag for tag in page.tags)


@pytest.mark.parametrize(("samples", "classes"), [(3, 4), (20_000, 3), (200, 1000)])
def test_it_is_small_whatever_there_is_to_show(samples, classes):
    long = tuple('"' * 5000 + str(k) for k in range(classes))
    found = HullReadOut()(members(2, samples, classes).float())
    prediction = Prediction(found.probs, found.mean, found.set, classes=long, samples=tuple('"' * 900 for _ in found))
    assert len(prediction._repr_html_().encode()) < 50_000


def test_only_what_is_shown_is_computed(monkeypatch):
    seen = []
    real = credro.prediction.classes.total
    monkeypatch.setattr(credro.prediction.classes, "total", lambda s: seen.append(len(s)) or real(s))
    HullReadOut()(members(2, 20_000))._repr_html_()
    assert seen == [10]


def test_the_end_of_a_long_path_is_shown():
    found = BoxReadOut()(members(samples=1))
    prediction = Prediction(found.probs, found.mean, found.set, samples=("a/" * 40 + "the-file.jpg",))
    assert Page(prediction._repr_html_()).rows[1][0].endswith("a/the-file.jpg")


def test_numbers_are_shown_with_their_intervals():
    prediction = gaussians(samples=FILES)
    frame, page = prediction.to_frame(), Page(prediction._repr_html_())
    low, high = frame["lower"][:10].min(), frame["upper"][:10].max()
    for (name, *shown), bar in zip(page.rows[1:], page.bars, strict=True):
        row = frame.loc[name]
        assert float(shown[0]) == pytest.approx(row["mean"], rel=1e-3)
        assert float(shown[1]) == pytest.approx(row["std"], rel=1e-2)
        assert shown[2].strip() == f"{row['lower']:.4g} to {row['upper']:.4g}"
        assert float(shown[3]) == pytest.approx(row["eu"], rel=1e-2)
        left, width = bar[1]
        assert left / BAR == pytest.approx((row["lower"] - low) / (high - low), abs=0.01)
        assert width / BAR == pytest.approx((row["upper"] - row["lower"]) / (high - low), abs=0.01)
    assert "are variances" in page.text


def test_equal_sure_numbers_are_shown():
    sure = GaussianPrediction(torch.ones(2, 3).double(), torch.zeros(2, 3).double(), None)
    assert Page(sure._repr_html_()).rows[1][1] == "1"


def test_an_ensemble_shows_members_classes_and_warnings():
    x, y = blobs(40)
    data = credro.data.Data("own", x, y, (6,), ("low", "mid", "<b>high</b>"), prepared=True)
    ensemble = trained(small_net, data, members=3, held_out=(x + 1, y))
    page = Page(ensemble._repr_html_())
    assert page.tags <= SAFE
    assert page.rows[0] == [
        "member",
        "delta",
        "epochs",
        "training accuracy",
        "training loss",
        "held-out accuracy",
        "held-out loss",
    ]
    for i, record in enumerate(ensemble.records):
        assert page.rows[i + 1][1] == f"{record.delta:.3g}"
        assert page.rows[i + 1][3] == f"{100 * record.train.accuracy:.1f}%"
        assert page.rows[i + 1][5] == f"{100 * record.held_out.accuracy:.1f}%"
    assert "low, mid, <b>high</b>" in page.text
    assert ensemble.warnings
    assert all(text in page.text for text in ensemble.warnings)
    ensemble.calibrate((x, y))
    page = Page(ensemble._repr_html_())
    assert page.rows[0][-1] == "temperature"
    assert [row[-1] for row in page.rows[1:]] == [f"{t:.3f}" for t in ensemble.temperatures]
    assert "calibrated" in page.text


def test_an_ensemble_of_given_networks_says_what_is_not_known():
    x, y = blobs(40)
    ensemble = credro.Ensemble.of([small_net() for _ in range(3)], (x, y))
    page = Page(ensemble._repr_html_())
    assert page.rows == []
    assert "trained elsewhere, so that nothing is known of their fit" in page.text


def test_many_members_and_classes_are_counted():
    data = digits(60)
    names = tuple(f"class {k}" for k in range(10))
    ensemble = trained("mlp", data.relabel(data.labels, names), members=23, recipe=credro.Recipe(epochs=1))
    page = Page(ensemble._repr_html_())
    assert len(page.rows) == 21
    assert "and 3 more members" in page.text
    many = credro.Ensemble(
        ensemble.nets, ensemble.method, ensemble.inputs, tuple(map(str, range(1000))), ensemble.device
    )
    assert "and 980 more" in Page(many._repr_html_()).text
