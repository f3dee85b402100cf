from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import credro
from credro.readouts import BoxReadOut
from credro.report.figures import accuracy_rejection_curves, densities, density, density_panels, gallery
from credro.report.style import SETS

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


def test_curves_of_methods_without_a_credal_set_are_dashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("credro.report.figures.save", lambda figure, path: drawn.append(figure) or path)
    curve = credro.accuracy_rejection(np.arange(10) < 7, np.arange(10) / 10)
    accuracy_rejection_curves(dict.fromkeys([*credro.methods.METHODS, "nobody's"], curve), tmp_path / "all.png")
    lines = {line.get_label().partition(" (area")[0]: line for line in drawn[0].axes[0].lines}
    assert {name for name, line in lines.items() if line.get_linestyle() == "--"} == {"DE", "EN-DRO"}
    assert lines["CreDRO"].get_color() == credro.methods.colour("credro")
    assert "nobody's" in lines  # a method that is not in the table has a curve too


def test_density_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven panels in two rows; the shaded set never sets the scale, and colours go on from the start."""
    drawn = []
    monkeypatch.setattr("credro.report.figures.save_all", lambda figure, paths: drawn.append(figure) or tuple(paths))
    draw = np.random.default_rng(0)
    sets = {"id": draw.exponential(0.001, 500), "far": draw.random(500), "one": np.ones(1)}
    many = {**sets, **{f"set {i}": draw.random(50) for i in range(7)}}
    wanted = (tmp_path / "a.png", tmp_path / "a.pdf")
    assert density_panels([*((f"p{i}", sets) for i in range(6)), ("last", many)], "EU", wanted, fill="id") == wanted
    axes = drawn[0].axes
    assert [ax.get_visible() for ax in axes] == [True] * 7 + [False]
    assert [ax.get_title() for ax in axes[:7]] == [*(f"p{i}" for i in range(6)), "last"]
    shaded, far = axes[0].lines
    assert len(axes[0].collections) == 1  # the fill; a set of one value has no density
    assert axes[0].get_ylim()[1] == pytest.approx(1.3 * far.get_ydata().max())
    assert shaded.get_ydata().max() > axes[0].get_ylim()[1]
    assert [line.get_color() for line in axes[6].lines[1:]] == [*SETS, *SETS][:8]


def test_density_panels_are_written_to_every_file(tmp_path: Path) -> None:
    paths = [tmp_path / "sub" / "a.png", tmp_path / "sub" / "a.pdf"]
    density_panels([("p", {"x": np.arange(9.0), "y": np.arange(5.0)})], "EU", paths)
    assert inks(paths[0]) > 20
    assert paths[1].read_bytes().startswith(b"%PDF")
