import numpy as np
import pytest
import torch
from PIL import Image

from credro.data import Data, conform
from credro.data.conform import fit_images, grey
from tests.data.layouts import chw, images


def as_data(x, **more):
    samples = torch.from_numpy(chw(x).copy())
    return Data("x", samples, torch.zeros(len(x), dtype=torch.long), tuple(samples.shape[1:]), **more)


def smooth(n, h, w, seed=0):
    """Pictures more like photographs than noise is."""
    small = [Image.fromarray(x).resize((w, h), Image.Resampling.BICUBIC) for x in images(n, 5, 5, 3, seed)]
    return np.stack([np.asarray(image) for image in small])


@pytest.mark.parametrize(("h", "w"), [(64, 64), (28, 28), (224, 150), (33, 31), (8, 100)])
@pytest.mark.parametrize("source", [images, smooth])
def test_resizing_is_pillows(h, w, source):
    x = source(3, h, w)
    found = conform(as_data(x), (3, 32, 32)).samples.numpy().astype(int)
    expected = [np.asarray(Image.fromarray(p).resize((32, 32), Image.Resampling.BILINEAR)) for p in x]
    difference = np.abs(found - chw(np.stack(expected)))
    assert difference.max() <= 1  # Pillow rounds between its two passes
    assert difference.mean() < 0.2


def test_grey_is_pillows_bit_for_bit():
    x = images(4, 16, 16)
    expected = np.stack([np.asarray(Image.fromarray(p).convert("L")) for p in x])
    np.testing.assert_array_equal(conform(as_data(x), (1, 16, 16)).samples[:, 0].numpy(), expected)


def test_colour_to_grey_and_smaller():
    x = smooth(3, 32, 32)
    found = conform(as_data(x), (1, 28, 28)).samples[:, 0].numpy().astype(int)
    expected = [np.asarray(Image.fromarray(p).convert("L").resize((28, 28), Image.Resampling.BILINEAR)) for p in x]
    assert np.abs(found - np.stack(expected)).max() <= 1


def test_grey_to_colour():
    x = images(3, 28, 28, 1)
    found = conform(as_data(x), (3, 28, 28))
    assert found.shape == (3, 28, 28)
    np.testing.assert_array_equal(found.samples.numpy(), np.repeat(x[:, None], 3, 1))


def test_floats_stay_floats():
    x = torch.rand(2, 3, 10, 10, generator=torch.Generator().manual_seed(0))
    expected = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
    torch.testing.assert_close(grey(x)[:, 0], expected)
    assert fit_images(x, (3, 5, 5)).dtype == torch.float32
    constant = torch.full((1, 1, 7, 7), 0.25)
    torch.testing.assert_close(fit_images(constant, (3, 20, 20)), torch.full((1, 3, 20, 20), 0.25))


@pytest.mark.parametrize("size", [(5, 6), (31, 9), (10, 10)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_floats_are_resized_as_pillow_does(size, dtype):
    """Also those of another range than [0, 1], as normalised images have."""
    x = torch.randn(2, 3, 10, 14, generator=torch.Generator().manual_seed(0), dtype=torch.float64).mul(40).to(dtype)
    found = fit_images(x, (3, *size))
    assert found.dtype == dtype
    for i in range(2):
        for c in range(3):
            image = Image.fromarray(x[i, c].float().numpy())
            expected = np.asarray(image.resize(size[::-1], Image.Resampling.BILINEAR))
            np.testing.assert_allclose(
                found[i, c].float().numpy(), expected, atol=0.1 if dtype == torch.float16 else 1e-4
            )


def test_bytes_stay_in_their_range_and_whole_numbers_are_rounded():
    x = torch.tensor([0, 255], dtype=torch.uint8).repeat(4, 5)[None, None]
    for size in ((3, 3), (17, 40)):
        resized = fit_images(x, (1, *size))
        exact = torch.nn.functional.interpolate(x.double(), size, mode="bilinear", antialias=True)
        assert (resized.double() - exact).abs().max() <= 0.51
        whole = fit_images(x.to(torch.int16), (1, *size))
        assert torch.equal(whole, resized.to(torch.int16))


def test_lazy_and_in_memory_agree():
    data = as_data(images(30, 20, 20))
    lazy = Data("x", data.batch, data.labels, data.shape)
    found = conform(lazy, (1, 9, 9))
    assert not found.in_memory
    index = torch.tensor([3, 29, 3])
    assert torch.equal(found.batch(index), conform(data, (1, 9, 9)).samples[index])


def test_more_than_one_chunk():
    data = as_data(images(2100, 4, 4))
    found = conform(data, (3, 2, 2)).samples
    assert torch.equal(found[2050:], fit_images(data.samples[2050:], (3, 2, 2)))


def test_what_is_kept():
    data = as_data(images(2), mean=(0.1, 0.2, 0.3), std=(1.0, 1.0, 1.0), classes=("a", "b"))
    assert conform(data, (3, 32, 32)) is data
    assert conform(data, [3, 8, 8]).mean == (0.1, 0.2, 0.3)
    assert conform(data, (1, 8, 8)).mean == ()
    assert conform(data, (1, 8, 8)).classes == ("a", "b")
    assert conform(data.subset([]), (1, 8, 8)).samples.shape == (0, 1, 8, 8)


def test_wrong_arguments():
    with pytest.raises(
        ValueError, match=r"shape must be \(channels, height, width\) with 1 or 3 channels, got \(2, 3, 3\)"
    ):
        conform(as_data(images(2)), (2, 3, 3))
    with pytest.raises(ValueError, match="shape must be"):
        conform(as_data(images(2)), (32, 32))
    table = Data("t", torch.ones(2, 5), torch.zeros(2), (5,))
    with pytest.raises(ValueError, match="conform is for images"):
        conform(table, (1, 5, 5))
