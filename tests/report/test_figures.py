from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import credro
from credro.readouts import BoxReadOut
from credro.report.figures import accuracy_rejection_curves, densities, density, gallery
from credro.report.style import COLOURS, NAMES

matplotlib = pytest.importorskip("matplotlib", reason="figures need matplotlib")


def inks(path: Path) -> int:
    """Number of different colours: an empty page has one."""
    with Image.open(path) as image:
        assert min(image.size) > 200
        return len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0))


def test_density_is_one_in_total_and_mirrored_at_zero() -> None:
    x = np.random.default_rng(0).exponential(size=5000)
    grid = np.linspace(0, 20, 4000)
    found = density(x, grid)
    assert np.trapezoid(found, grid) == pytest.approx(1, abs=1e-3)
    # An exponential density is 1 at zero; a plain kernel estimate would show half of it there.
    assert found[0] == pytest.approx(1, abs=0.15)


def test_density_against_scipy_away_from_zero() -> None:
    stats = pytest.importorskip("scipy.stats", reason="the oracle is SciPy's estimate")
    x = np.random.default_rng(1).normal(5, 0.5, size=2000)
    grid = np.linspace(3, 7, 50)
    spread = min(x.std(), np.subtract(*np.percentile(x, [75, 25])) / 1.349)
    oracle = stats.gaussian_kde(x, bw_method=0.9 * spread * len(x) ** -0.2 / x.std(ddof=1))(grid)
    assert density(x, grid) == pytest.approx(oracle, rel=1e-6)


def test_density_of_equal_values_is_finite() -> None:
    assert np.isfinite(density(np.zeros(10), np.linspace(0, 1, 50))).all()


def test_figures_are_drawn(tmp_path: Path) -> None:
    g = torch.Generator().manual_seed(0)
    probs = torch.rand(3, 40, 4, generator=g, dtype=torch.float64).softmax(-1)
    prediction = BoxReadOut()(probs)
    labels = torch.randint(4, (40,), generator=g)
    images = torch.randint(256, (40, 1, 8, 8), generator=g).to(torch.uint8)
    curve = credro.accuracy_rejection(prediction.label == labels, prediction.epistemic)
    sets = {"test": prediction.epistemic, "other": prediction.epistemic + 0.1}
    assert inks(densities({"credro": sets, "de": sets}, "test", tmp_path / "d.png")) > 20
    assert inks(accuracy_rejection_curves({"credro": curve, "de": curve}, tmp_path / "a.png")) > 20
    assert inks(gallery(images, prediction, labels, "abcd", tmp_path / "sub" / "g.png", each=3)) > 20


def test_three_curves_have_bars_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("credro.report.figures.save", lambda figure, path: drawn.append(figure) or path)
    eu, correct = np.arange(10) / 10, np.arange(10) < 7
    curves = {m: credro.accuracy_rejection(correct, s * eu) for m, s in (("de", 1), ("crewra", 2), ("credro", -1))}
    accuracy_rejection_curves(dict(list(curves.items())[:2]), tmp_path / "two.png")
    accuracy_rejection_curves(curves, tmp_path / "three.png")
    assert [len(figure.axes) for figure in drawn] == [1, 2]
    bars = drawn[1].axes[1]
    assert [p.get_width() for p in bars.patches] == [curves[m].area for m in curves]
    assert [t.get_text() for t in bars.texts] == [f"{curves[m].area:.4f}" for m in curves]  # two tie, and can be read


def test_every_method_has_a_colour_and_a_name_of_its_own() -> None:
    for name in credro.methods.METHODS:
        assert name in COLOURS
        assert name in NAMES
    assert len(set(COLOURS.values())) == len(COLOURS)
