"""Figures of single samples: what is drawn is what the members say."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from credro.readouts import BoxReadOut
from tests.prediction.test_prediction import CLASSES, FILES, gaussians, made, members

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_intervals_members_and_mean_of_a_sample():
    probs = members().numpy()[:, 7]
    ax = made(samples=FILES).plot(7)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(CLASSES)
    for k, bar in enumerate(ax.patches):
        assert bar.get_x() == pytest.approx(probs[:, k].min())
        assert bar.get_x() + bar.get_width() == pytest.approx(probs[:, k].max())
    *points, mean = [np.asarray(c.get_offsets())[:, 0] for c in ax.collections]
    np.testing.assert_allclose(points, probs, atol=1e-12)
    np.testing.assert_allclose(mean, probs.mean(0), atol=1e-12)
    assert ax.get_title(loc="left").startswith(f"sample photos/07.jpg: {CLASSES[probs.mean(0).argmax()]}\nEU ")
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first class is on top
    ax.figure.canvas.draw()


def test_of_many_classes_those_with_the_highest_upper_probability():
    probs = members(3, 4, 50)
    ax = BoxReadOut()(probs).plot(-1)
    highest = np.sort(np.argsort(-probs.numpy()[:, 3].max(0))[:20])
    assert [text.get_text() for text in ax.get_yticklabels()] == [str(k) for k in highest]
    assert ax.get_xlabel() == "probability (20 of 50 classes, by upper probability)"
    assert ax.get_title(loc="left").startswith("sample 3: ")


def test_axes_of_ones_own_are_drawn_on():
    figure, axes = plt.subplots(1, 2)
    assert made("mean").plot(0, axes[1]) is axes[1]
    assert "range of the members" in [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert not axes[0].patches
    assert len(plt.get_fignums()) == 1
    figure.canvas.draw()


def test_names_are_no_formulas():
    ax = made(classes=("$x^$", "b$", "c_{", "$\\nonsense$")).plot(0)
    ax.figure.canvas.draw()  # raises where matplotlib takes a name for mathematics that it cannot read


def test_a_regression_is_drawn_as_densities():
    prediction = gaussians(samples=FILES)
    means, stds = prediction.means[:, 4].numpy(), prediction.stds[:, 4].numpy()
    ax = prediction.plot(4)
    *each, mixture, _ = ax.get_lines()
    assert len(each) == 4
    for line, mean, std in zip(each, means, stds, strict=True):
        np.testing.assert_allclose(line.get_ydata(), norm.pdf(line.get_xdata(), mean, std), atol=1e-12)
    assert trapezoid(mixture.get_ydata(), mixture.get_xdata()) == pytest.approx(1, abs=0.01)
    low, high = (float(end[4]) for end in prediction.interval(0.9))
    (band,) = ax.patches
    assert band.get_extents().transformed(ax.transData.inverted()).intervalx == pytest.approx([low, high])


def test_one_sample_at_a_time_and_one_that_exists():
    with pytest.raises(ValueError, match="plot shows one sample: give its number"):
        made().plot(slice(0, 2))
    with pytest.raises(IndexError, match="sample 12 is out of range"):
        made().plot(12)


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"matplotlib is needed here: pip install 'credro\[figures\]'"):
        made().plot(0)
