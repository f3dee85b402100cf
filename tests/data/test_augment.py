import colorsys

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from scipy import ndimage

from credro.data.augment import (
    AUGMENTATIONS,
    _shifted,
    _shifted_by_gather,
    colour_jitter,
    crop_flip,
    normalise,
    random_blur,
    random_crop,
    random_flip,
    random_right_angle,
    random_scale,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def images(b=64, c=3, h=32, w=32, dtype=torch.uint8):
    x = torch.randint(1, 256, (b, c, h, w), generator=rng(9), dtype=torch.uint8)
    return x if dtype == torch.uint8 else x.to(dtype) / 255


def crops_by_pillow(image, padding):
    """Every crop that could come out, keyed by its bytes: made with Pillow, one by one."""
    h, w = image.shape[-2:]
    picture = Image.fromarray(image.permute(1, 2, 0).numpy() if len(image) == 3 else image[0].numpy())
    large = ImageOps.expand(picture, padding)
    offsets = [(dy, dx) for dy in range(2 * padding + 1) for dx in range(2 * padding + 1)]
    cut = {(dy, dx): np.asarray(large.crop((dx, dy, dx + w, dy + h))) for dy, dx in offsets}
    return {v.tobytes(): k for k, v in cut.items()}, {v[:, ::-1].tobytes(): k for k, v in cut.items()}


@pytest.mark.parametrize(("c", "h", "w", "padding"), [(3, 32, 32, 4), (1, 28, 28, 3), (3, 9, 14, 2), (1, 8, 8, 0)])
def test_crop_flip_gives_exactly_what_pillow_could_give(c, h, w, padding):
    x = images(c=c, h=h, w=w)
    seen = set()
    for seed in range(3):
        crops = random_crop(x, padding, rng(seed))
        flipped = random_flip(crops, rng(seed + 100))
        for before, crop, after in zip(x, crops, flipped, strict=True):
            plain, mirrored = crops_by_pillow(before, padding)
            seen.add(plain[crop.permute(1, 2, 0).contiguous().numpy().tobytes()])
            key = after.permute(1, 2, 0).contiguous().numpy().tobytes()
            assert key in plain or key in mirrored
    assert len(seen) > min((2 * padding + 1) ** 2 * 0.8, 60)


def test_the_crop_flip_pipeline_keeps_samples_apart_and_draws_both_halves():
    x = images(200)
    out = crop_flip(x, rng())
    kinds = []
    for before, after in zip(x, out, strict=True):
        plain, mirrored = crops_by_pillow(before, 4)
        key = after.permute(1, 2, 0).contiguous().numpy().tobytes()
        assert (key in plain) != (key in mirrored)
        kinds.append(key in mirrored)
    assert 70 < sum(kinds) < 130


def test_offsets_are_uniform_and_fill_is_used():
    x = torch.zeros(8100, 1, 8, 8)
    x[:, :, 4, 4] = 1
    at = random_crop(x, 1, rng()).flatten(1).argmax(1)
    counts = torch.bincount(at)
    assert sorted(counts.nonzero()[:, 0].tolist()) == [r * 8 + c for r in (3, 4, 5) for c in (3, 4, 5)]
    assert (counts[counts > 0] - 900).abs().max() < 150
    assert (random_crop(torch.zeros(50, 1, 4, 4), 2, rng(), fill=0.5) == 0.5).any()


@pytest.mark.parametrize("most", [0, 3, 7])
def test_copying_and_gathering_agree(most):
    x = images(40, 3, 6, 9)
    dy, dx = torch.randint(-most, most + 1, (2, 40), generator=rng())
    mirrored = torch.rand(40, generator=rng()) < 0.5
    for source in (x, x.float() / 255):
        copied = _shifted(source, dy, dx, mirrored, most, 1)
        assert torch.equal(copied, _shifted_by_gather(source, dy, dx, mirrored, most, 1))


def test_vertical_and_certain_flips():
    x = images()
    assert torch.equal(random_flip(x, rng(), p=1.0), x.flip(-1))
    assert torch.equal(random_flip(x, rng(), vertical=True, p=1.0), x.flip(-1, -2))
    assert torch.equal(random_flip(x, rng(), p=0.0), x)


def test_right_angles():
    x = images(200, 1, 6, 6)
    turns = []
    for before, after in zip(x, random_right_angle(x, rng()), strict=True):
        turns += [k for k in range(4) if np.array_equal(np.rot90(before[0].numpy(), k), after[0].numpy())]
    assert len(turns) == 200
    assert min(np.bincount(turns)) > 30
    with pytest.raises(ValueError, match=r"square images .* got \(4, 6\)"):
        random_right_angle(images(2, 1, 4, 6), rng())


@pytest.mark.parametrize("factor", [1.0, 1.3, 0.8])
def test_scale_is_bilinear_zoom_about_the_centre(factor):
    x = images(3, 3, 16, 20, torch.float64)
    out = random_scale(x, factor, factor, rng())
    at = np.meshgrid(*((np.arange(n) - (n - 1) / 2) / factor + (n - 1) / 2 for n in (16, 20)), indexing="ij")
    for before, after in zip(x.flatten(0, 1), out.flatten(0, 1), strict=True):
        expected = ndimage.map_coordinates(before.numpy(), at, order=1, mode="reflect")
        np.testing.assert_allclose(after.numpy(), expected, atol=1e-6)


def test_blur_is_a_gaussian():
    x = images(2, 3, 24, 24, torch.float64)
    out = random_blur(x, 1.2, 1.2, rng())
    for before, after in zip(x.flatten(0, 1), out.flatten(0, 1), strict=True):
        expected = ndimage.gaussian_filter(before.numpy(), 1.2, mode="mirror", radius=4)
        np.testing.assert_allclose(after.numpy(), expected, atol=1e-6)


def test_jitter_moves_each_part_as_told():
    x = images(40, dtype=torch.float32) * 0.4 + 0.3
    off = {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0}
    torch.testing.assert_close(colour_jitter(x, rng(), **off), x, atol=1e-5, rtol=0)

    light = colour_jitter(x, rng(), **off | {"brightness": 0.3}) / x
    assert light.flatten(1).std(1).max() < 1e-4
    assert light.flatten(1).mean(1).min() > 0.69
    assert light.flatten(1).mean(1).max() < 1.31
    assert light.flatten(1).mean(1).std() > 0.1

    spread = colour_jitter(x, rng(), **off | {"contrast": 0.3})
    torch.testing.assert_close(spread.mean((1, 2, 3)), x.mean((1, 2, 3)), atol=1e-4, rtol=0)
    assert (spread.flatten(1).std(1) / x.flatten(1).std(1)).std() > 0.1

    weights = torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
    for part in ({"saturation": 0.5}, {"hue": 0.1}):
        moved = colour_jitter(x, rng(), **off | part)
        torch.testing.assert_close((moved * weights).sum(1), (x * weights).sum(1), atol=2e-3, rtol=0)
        assert (moved - x).abs().amax((1, 2, 3)).median() > 0.02
    grey = x[:, :1].expand(-1, 3, -1, -1)
    torch.testing.assert_close(
        colour_jitter(grey, rng(), **off | {"saturation": 0.5, "hue": 0.1}), grey, atol=2e-3, rtol=0
    )


def test_hue_turns_by_the_angle():
    x = torch.tensor([0.6, 0.4, 0.4]).view(1, 3, 1, 1).expand(200, 3, 2, 2)
    out = colour_jitter(x, rng(), brightness=0, contrast=0, saturation=0, hue=0.1)[:, :, 0, 0]
    hues = torch.tensor([(colorsys.rgb_to_hsv(*pixel.tolist())[0] + 0.5) % 1 - 0.5 for pixel in out])
    assert hues.min() < -0.06
    assert hues.max() > 0.06
    assert hues.abs().max() < 0.16


@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize(("c", "dtype"), [(1, torch.uint8), (3, torch.uint8), (3, torch.float32), (1, torch.float32)])
def test_pipelines_keep_shape_type_and_range_and_follow_the_seed(name, c, dtype):
    x = images(16, c, 28, 28, dtype)
    before = x.clone()
    out = AUGMENTATIONS[name](x, rng(1))
    assert out.shape == x.shape
    assert out.dtype == x.dtype
    assert torch.equal(x, before)
    assert torch.equal(out, AUGMENTATIONS[name](x, rng(1)))
    assert torch.equal(out, AUGMENTATIONS[name](x, rng(2))) == (name == "none")
    if dtype != torch.uint8:
        assert out.min() >= 0
        assert out.max() <= 1
        bytes_out = AUGMENTATIONS[name]((x * 255).round().to(torch.uint8), rng(1))
        assert (bytes_out.float() / 255 - out).abs().max() < 1.01 / 255  # one rounding, not several


def test_histology_differs_from_sample_to_sample():
    x = images(1, 3, 64, 64).expand(12, -1, -1, -1)
    out = AUGMENTATIONS["histology"](x, rng())
    assert len({sample.contiguous().numpy().tobytes() for sample in out}) == 12


def test_single_samples_and_empty_parts_work():
    x = images(1)
    for augment in AUGMENTATIONS.values():
        assert augment(x, rng()).shape == x.shape


def test_normalise():
    x = images(5)
    mean, std = [0.5, 0.4, 0.3], [0.2, 0.3, 0.1]
    expected = (x.permute(0, 2, 3, 1).numpy() / 255 - mean) / std
    np.testing.assert_allclose(normalise(x, mean, std).permute(0, 2, 3, 1).numpy(), expected, atol=1e-5)
    y = images(5, dtype=torch.float32)
    np.testing.assert_allclose(normalise(y, mean, std).numpy(), normalise(x, mean, std).numpy(), atol=1e-5)
    table = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert normalise(table, [1, 2], [2, 3]).tolist() == [[0, 0], [1, 1]]
    with pytest.raises(ValueError, match=r"one entry per channel \(3\), got 1, 3"):
        normalise(x, [0.5], std)


def test_ranges_are_checked():
    with pytest.raises(ValueError, match=r"0 < low <= high, got 1.2 and 1.0"):
        random_scale(images(2), 1.2, 1.0, rng())
