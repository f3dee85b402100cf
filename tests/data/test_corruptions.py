import colorsys
import io
import pickle
import runpy
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage, stats

import credro.data.corruptions as corruptions
from credro.data import load
from credro.data.base import Data
from credro.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt, corrupt_data
from credro.data.corruptions._noise import _poisson_table
from credro.data.corruptions._tools import Draws, convolve, enlarge, motion_kernel, sample, to_bytes
from credro.data.corruptions._weather import crystals, plasma
from tests.data.layouts import images, write_image

ROOT = Path(__file__).parents[2]
NAMES = list(CORRUPTIONS)


@pytest.fixture(scope="module")
def fashion():
    with files("credro.data.embedded").joinpath("fashion_mini.npz").open("rb") as file, np.load(file) as arrays:
        return torch.from_numpy(arrays["test_x"][:120])[:, None]


@pytest.fixture(scope="module")
def scene():
    return runpy.run_path(str(ROOT / "scripts/contact_sheet_corruptions.py"))["scene"]


def noise_images(n, c, h, w):
    """Smoothed noise: colourful, with detail at every place."""
    x = np.random.default_rng(0).random((n, c, h, w))
    x = ndimage.gaussian_filter(x, (0, 0, 1, 1))
    return torch.from_numpy(((x - x.min()) / (x.max() - x.min()) * 255).round().astype(np.uint8))


def draws(n, seed=0, name="test"):
    return Draws(seed, name, 1, torch.arange(n))


# The whole


def test_the_fifteen_in_the_published_order():
    assert list(SEVERITIES) == NAMES
    assert len(NAMES) == 15
    assert all(len(steps) == 5 for steps in SEVERITIES.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("c", "h", "w"), [(3, 32, 32), (3, 17, 23), (1, 48, 40), (1, 8, 8)])
def test_same_pixels_in_any_batch(name, c, h, w, monkeypatch):
    x = noise_images(13, c, h, w)
    for severity in (1, 3, 5):
        whole = corrupt(x, name, severity, seed=5)
        assert whole.shape == x.shape
        assert whole.dtype == torch.uint8
        assert not torch.equal(whole, x)
        single = [corrupt(x[i : i + 1], name, severity, seed=5, first=i) for i in range(len(x))]
        assert torch.equal(whole, torch.cat(single))
        chunks = [corrupt(x[a:b], name, severity, seed=5, first=a) for a, b in ((0, 3), (3, 4), (4, 11), (11, 13))]
        assert torch.equal(whole, torch.cat(chunks))
        with monkeypatch.context() as patch:
            patch.setattr(corruptions, "_CHUNK", 5 * c * h * w)
            assert torch.equal(whole, corrupt(x, name, severity, seed=5))


@pytest.mark.parametrize("name", NAMES)
def test_same_pixels_on_many_real_images(name, fashion):
    # Averages of bytes often lie exactly between two bytes: this is where rounding could depend on the batch.
    for severity in range(1, 6):
        whole = corrupt(fashion, name, severity)
        parts = [corrupt(fashion[a : a + 7], name, severity, first=a) for a in range(0, len(fashion), 7)]
        assert torch.equal(whole, torch.cat(parts))


@pytest.mark.parametrize("name", NAMES)
def test_severity_grows(name, fashion, scene):
    photographs = {"fashion": fashion, "scene": scene(32)[None].repeat(60, 1, 1, 1)}
    large = scene(96)[None].repeat(40, 1, 1, 1)
    for label, x in {**photographs, "large scene": large}.items():
        distance = [(corrupt(x, name, s).float() - x.float()).abs().mean().item() for s in range(1, 6)]
        assert distance[0] > 0.5, (label, distance)
        assert all(a < b for a, b in pairwise(distance)), (label, distance)


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow"])
def test_seed_and_number_matter(name):
    x = noise_images(1, 3, 32, 32).repeat(2, 1, 1, 1)
    out = corrupt(x, name, 3)
    assert not torch.equal(out[0], out[1])
    assert not torch.equal(out, corrupt(x, name, 3, seed=1))
    assert torch.equal(out[1:], corrupt(x[:1], name, 3, first=1))


# The others are drawn per channel, tinted, or stored with less colour.
@pytest.mark.parametrize(
    "name", sorted(set(NAMES) - {"gaussian_noise", "shot_noise", "impulse_noise", "frost", "jpeg_compression"})
)
def test_grey_images_are_treated_as_grey_colour_ones(name):
    x = noise_images(4, 1, 32, 32)
    grey, colour = corrupt(x, name, 4), corrupt(x.expand(-1, 3, -1, -1), name, 4)
    assert (grey.int() - colour.int()).abs().max() <= 1


def test_errors_say_what_is_allowed():
    x = noise_images(2, 3, 8, 8)
    with pytest.raises(ValueError, match=r"name must be one of gaussian_noise, .*, got 'rain'"):
        corrupt(x, "rain", 1)
    with pytest.raises(ValueError, match="severity must be 1, 2, 3, 4 or 5, got 6"):
        corrupt(x, "fog", 6)
    with pytest.raises(ValueError, match=r"uint8 images .* got torch.float32 of shape \(2, 3, 8, 8\)"):
        corrupt(x.float(), "fog", 1)
    with pytest.raises(ValueError, match=r"got torch.uint8 of shape \(2, 2, 8, 8\)"):
        corrupt(x[:, :2], "fog", 1)
    assert corrupt(x[:0], "fog", 1).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, 255])
def test_black_and_white_pictures_survive(name, value):
    x = torch.full((2, 3, 16, 16), value, dtype=torch.uint8)
    for severity in (1, 5):
        assert corrupt(x, name, severity).shape == x.shape


def test_data_in_memory_and_read_lazily():
    x = noise_images(9, 3, 12, 12)
    data = Data("mine", x, torch.arange(9), (3, 12, 12))
    at_once = corrupt_data(data, "glass_blur", 2, seed=3)
    assert torch.equal(at_once.samples, corrupt(x, "glass_blur", 2, seed=3))
    assert at_once.name == "mine-glass_blur-2"
    assert torch.equal(at_once.labels, data.labels)
    lazy = corrupt_data(replace(data, samples=lambda index: x[index]), "glass_blur", 2, seed=3)
    index = torch.tensor([7, 0, 3])
    assert torch.equal(lazy.batch(index), at_once.batch(index))
    with pytest.raises(ValueError, match="severity must be"):  # at once, not when the first image is read
        corrupt_data(lazy, "fog", 0)


def test_lazily_corrupted_files_travel_to_another_process(tmp_path):
    for i in range(3):
        write_image(tmp_path / "ab"[i % 2] / f"{i}.png", images(1, 12, 12, seed=i)[0])
    lazy = corrupt_data(load(tmp_path, lazy=True), "fog", 3)
    sent = pickle.loads(pickle.dumps(lazy))
    at_once = corrupt_data(load(tmp_path), "fog", 3)
    assert torch.equal(sent.batch(torch.tensor([2, 0])), at_once.samples[[2, 0]])


def test_the_sheet_in_the_docs_is_what_the_code_draws():
    """If not, run the script again."""
    script = runpy.run_path(str(ROOT / "scripts/contact_sheet_corruptions.py"))
    sheet = script["sheet"]([script["scene"](), script["shirt"]()]).quantize(256)
    drawn, kept = (
        np.asarray(picture.convert("RGB")).astype(int)
        for picture in (sheet, Image.open(ROOT / "docs/images/corruptions.png"))
    )
    assert kept.shape == drawn.shape
    tile, gap, left, top = (script[key] for key in ("TILE", "GAP", "NAMES", "HEAD"))
    for row, name in enumerate(NAMES):
        for column in range(12):
            x = left + column * (tile + gap) + (3 * gap if column > 5 else 0)
            y = top + row * (tile + gap)
            difference = np.abs(kept - drawn)[y : y + tile, x : x + tile]
            assert difference.mean() < 1, (name, column)


# One by one, against independent code


def test_draws_are_splitmix64():
    mask = 2**64 - 1

    def splitmix(state):
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    assert splitmix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # the published first output for seed 0
    d = draws(3)
    u = torch.cat([d.uniform(4), d.uniform(2)], 1)
    for key, row in zip(d.keys.tolist(), u.tolist(), strict=True):
        assert row == [(splitmix((key + i * 0x9E3779B97F4A7C15) & mask) >> 11) / 2**53 for i in range(1, 7)]


def test_draws_are_uniform_normal_and_independent():
    u = draws(300).uniform(400)
    assert stats.kstest(u.flatten().numpy(), "uniform").pvalue > 1e-3
    assert stats.kstest(u.mean(1).numpy(), "norm", (0.5, (1 / 12 / 400) ** 0.5)).pvalue > 1e-3
    assert stats.kstest(u.mean(0).numpy(), "norm", (0.5, (1 / 12 / 300) ** 0.5)).pvalue > 1e-3
    assert abs(np.corrcoef(u[:-1].flatten(), u[1:].flatten())[0, 1]) < 0.012
    assert stats.kstest(draws(100).normal(500).flatten().numpy(), "norm").pvalue > 1e-3
    assert torch.bincount(draws(90).integers(3, 100).flatten()).sub(3000).abs().max() < 250
    keys = torch.cat([Draws(s, n, v, torch.arange(500)).keys for s in range(4) for n in "ab" for v in (1, 2)])
    assert len(keys.unique()) == len(keys)


@pytest.mark.parametrize(("h", "w", "k"), [(12, 15, 5), (6, 6, 11), (4, 5, 13)])
def test_convolve(h, w, k):
    gen = np.random.default_rng(1)
    x, kernels = gen.random((3, 2, h, w)), gen.random((3, 1, k, k))
    ours = convolve(torch.from_numpy(x), torch.from_numpy(kernels)).numpy()
    for i in range(3):
        for c in range(2):
            expected = ndimage.convolve(x[i, c], kernels[i, 0], mode="mirror")
            np.testing.assert_allclose(ours[i, c], expected, atol=1e-10)


def test_sample_and_enlarge():
    gen = np.random.default_rng(2)
    x = gen.random((2, 1, 9, 12))
    at = gen.uniform(-4, 14, (2, 2, 9, 12))
    ours = sample(torch.from_numpy(x), torch.from_numpy(at[:, 0]), torch.from_numpy(at[:, 1])).numpy()
    for i in range(2):
        expected = ndimage.map_coordinates(x[i, 0], at[i], order=1, mode="reflect")
        np.testing.assert_allclose(ours[i, 0], expected, atol=1e-10)
    ramp = torch.arange(9.0, dtype=torch.float64)[:, None].expand(1, 1, 9, 9)
    torch.testing.assert_close(enlarge(ramp, 2.0, (9, 9))[0, 0, :, 0], 4 + (torch.arange(9.0).double() - 4) / 2)


def test_bytes_are_rounded():
    x = torch.arange(256) / 255
    assert torch.equal(to_bytes(x.double()), torch.arange(256).to(torch.uint8))
    assert to_bytes(torch.tensor([-1.0, 2.0, 0.5 / 255, 1.5 / 255 - 1e-12], dtype=torch.float64)).tolist() == [
        0,
        255,
        1,
        2,
    ]


@pytest.mark.parametrize("severity", [1, 5])
def test_gaussian_noise(severity):
    noise = corrupt(torch.full((40, 1, 32, 32), 128, dtype=torch.uint8), "gaussian_noise", severity).float() - 128
    deviation = 255 * SEVERITIES["gaussian_noise"][severity - 1][0]
    assert abs(noise.mean()) < 0.5
    assert abs(noise.std() / deviation - 1) < 0.02


def test_shot_noise():
    for photons in (500.0, 50.0):
        table, width = _poisson_table(photons)
        expected = stats.poisson.cdf(np.arange(width), photons * np.arange(256)[:, None] / 255)
        np.testing.assert_allclose(table.view(256, width).numpy() - np.arange(256)[:, None], expected, atol=1e-11)
    for value in (0, 20, 128):
        out = corrupt(torch.full((40, 1, 32, 32), value, dtype=torch.uint8), "shot_noise", 5).double() / 255
        assert abs(out.mean() - value / 255) < 0.003
        assert abs(out.var() - value / 255 / 50) < 0.0002
    counts = (corrupt(torch.full((1, 1, 64, 64), 60, dtype=torch.uint8), "shot_noise", 5).double() / 255 * 50).round()
    seen = np.bincount(counts.flatten().long().numpy(), minlength=25)[4:22]
    expected = stats.poisson.pmf(np.arange(4, 22), 50 * 60 / 255)
    assert stats.chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 1e-3


def test_impulse_noise():
    x = torch.full((50, 3, 32, 32), 100, dtype=torch.uint8)
    for severity, (share,) in enumerate(SEVERITIES["impulse_noise"], 1):
        out = corrupt(x, "impulse_noise", severity)
        assert set(out.unique().tolist()) == {0, 100, 255}
        assert abs((out != 100).double().mean() / share - 1) < 0.1
        assert abs((out == 0).double().sum() / (out == 255).double().sum() - 1) < 0.1


def test_defocus_blur():
    x = torch.zeros(1, 1, 33, 33, dtype=torch.uint8)
    x[0, 0, 16, 16] = 255
    # A point becomes the kernel: a cross of five pixels, smoothed over three. At 33 pixels the radius is just above 1.
    cross = np.zeros((33, 33))
    cross[16, 15:18] = cross[15:18, 16] = 51
    line = np.exp(-0.5 * (np.arange(-1, 2) / (0.3 * 33 / 32)) ** 2)
    line /= line.sum()
    expected = ndimage.convolve(cross, np.outer(line, line))
    assert np.abs(corrupt(x, "defocus_blur", 4)[0, 0].numpy() - expected).max() <= 0.501
    # Below one pixel only the smoothing is left.
    line = np.exp(-0.5 * (np.arange(-1, 2) / (0.6 * 33 / 32)) ** 2)
    point = 255 * np.outer(line, line) / line.sum() ** 2
    assert np.abs(corrupt(x, "defocus_blur", 3)[0, 0, 15:18, 15:18].numpy() - point).max() <= 0.501


def test_motion_kernel():
    kernel = motion_kernel(torch.tensor([0.0, np.pi / 2], dtype=torch.float64), 2.0)
    line = np.exp(-0.5 * (np.arange(7) / 2) ** 2)
    line /= line.sum()
    np.testing.assert_allclose(kernel[0, 0, 6, 6:].numpy(), line, atol=1e-12)
    np.testing.assert_allclose(kernel[1, 0, 6:, 6].numpy(), line, atol=1e-12)
    torch.testing.assert_close(kernel.sum((1, 2, 3)), torch.ones(2, dtype=torch.float64))


def test_zoom_blur():
    x = noise_images(1, 1, 20, 20)
    at = np.arange(20) - 9.5
    pictures = [x[0, 0].numpy().astype(float)]
    for factor in np.arange(1, 1.0599, 0.01):
        grid = np.meshgrid(at / factor + 9.5, at / factor + 9.5, indexing="ij")
        pictures.append(ndimage.map_coordinates(pictures[0], grid, order=1, mode="reflect"))
    assert np.abs(corrupt(x, "zoom_blur", 1)[0, 0].numpy() - np.mean(pictures, 0)).max() <= 0.501


def test_glass_blur_keeps_the_values_around():
    x = noise_images(1, 1, 32, 32)
    out = corrupt(x, "glass_blur", 1)  # its blur is far below one pixel: pixels move, values stay
    near = np.stack(
        [ndimage.shift(x[0, 0].numpy(), (a, b), order=0, mode="mirror") for a in (-1, 0, 1) for b in (-1, 0, 1)]
    )
    assert (near == out[0, 0].numpy()).any(0).all()
    assert 0.4 < (out != x).float().mean() < 0.6  # 0.6 are drawn, one in nine of these stays


def test_snow_only_brightens_and_frost_dims_by_its_weight():
    x = noise_images(6, 3, 32, 32)
    assert (corrupt(x, "snow", 3).int() >= x.int() - 1).all()
    for severity, (weight, _) in enumerate(SEVERITIES["frost"], 1):
        assert (corrupt(x, "frost", severity).int() >= weight * x.int() - 1).all()
    ice = crystals(draws(8), 40, 56, 1.25)
    assert ice.shape == (8, 1, 40, 56)
    assert ice.min() >= 0
    assert ice.max() <= 1
    assert ice.std((1, 2, 3)).min() > 0.1


def test_fog_is_smooth_and_dims_to_the_range():
    cloud = plasma(draws(30), 32, 3.0)
    assert cloud.shape == (30, 32, 32)
    assert (cloud.amin((1, 2)) == 0).all()
    assert (cloud.amax((1, 2)) == 1).all()
    rough = plasma(draws(30), 32, 1.75)
    step = [field.diff(dim=1).abs().mean() for field in (cloud, rough)]
    assert step[0] < step[1]
    x = noise_images(4, 3, 32, 32)
    assert (corrupt(x, "fog", 5).amax((1, 2, 3)) <= x.amax((1, 2, 3))).all()


def test_brightness_by_hsv():
    x = noise_images(1, 3, 12, 12)
    x[0, :, 0, 0] = 0
    out = corrupt(x, "brightness", 4)[0].permute(1, 2, 0).reshape(-1, 3)
    for before, after in zip(x[0].permute(1, 2, 0).reshape(-1, 3).tolist(), out.tolist(), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(v / 255 for v in before))
        expected = colorsys.hsv_to_rgb(hue, saturation, min(1, value + 0.2))
        assert max(abs(255 * e - a) for e, a in zip(expected, after, strict=True)) <= 0.501


def test_contrast():
    x = noise_images(2, 3, 12, 12)
    mean = x.double().mean((2, 3), keepdim=True)
    assert ((x - mean) * 0.4 + mean - corrupt(x, "contrast", 3)).abs().max() <= 0.501


def test_elastic_transform_moves_but_keeps_flat_pictures():
    flat = torch.full((3, 3, 24, 24), 77, dtype=torch.uint8)
    assert torch.equal(corrupt(flat, "elastic_transform", 5), flat)
    # Of a ramp, the new value is the row that a pixel came from: no further than map and displacement allow.
    ramp = (torch.arange(32) * 8).to(torch.uint8)[:, None].expand(40, 1, 32, 32).contiguous()
    shift = (corrupt(ramp, "elastic_transform", 5).double() - ramp)[:, :, 8:24, 8:24] / 8
    assert 0.5 < shift.abs().mean() < 3
    assert abs(shift.mean()) < 0.5


@pytest.mark.parametrize(("size", "severity"), [(32, 1), (32, 3), (32, 4), (32, 5), (28, 2), (28, 5)])
def test_pixelate_is_pillows_box_there_and_back(size, severity):
    x = noise_images(1, 3, size, size)
    small = int(size * SEVERITIES["pixelate"][severity - 1][0])
    picture = Image.fromarray(x[0].permute(1, 2, 0).numpy())
    expected = picture.resize((small, small), Image.Resampling.BOX).resize((size, size), Image.Resampling.BOX)
    ours = corrupt(x, "pixelate", severity)[0].permute(1, 2, 0).numpy()
    assert np.abs(ours.astype(int) - np.asarray(expected).astype(int)).max() <= 1  # Pillow rounds twice


@pytest.mark.parametrize("c", [1, 3])
def test_jpeg_is_pillows(c):
    x = noise_images(2, c, 24, 20)
    for before, after in zip(x, corrupt(x, "jpeg_compression", 4), strict=True):
        file = io.BytesIO()
        Image.fromarray(before.permute(1, 2, 0).squeeze(-1).numpy()).save(file, format="jpeg", quality=50)
        assert np.array_equal(np.asarray(Image.open(file)), after.permute(1, 2, 0).squeeze(-1).numpy())


def test_lengths_grow_with_the_image(scene):
    """A picture of twice the size, corrupted and halved, is as far from clean as the small one."""
    small, large = (scene(n)[None].repeat(30, 1, 1, 1) for n in (48, 96))

    def distance(x, name):
        difference = (corrupt(x, name, 4).float() - x.float()).abs()
        return torch.nn.functional.avg_pool2d(difference, x.shape[-1] // 48).mean()

    for name in ("motion_blur", "glass_blur", "snow", "frost", "elastic_transform", "zoom_blur"):
        assert 0.7 < distance(large, name) / distance(small, name) < 1.4, name
