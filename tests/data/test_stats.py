import numpy as np
import pytest
import torch

from credro.data import Data, channel_stats
from tests.data.layouts import images, rng


def test_images_against_numpy():
    x = images(2500, 6, 5)
    data = Data("x", torch.from_numpy(x.transpose(0, 3, 1, 2).copy()), torch.zeros(2500), (3, 6, 5))
    mean, std = channel_stats(data)
    np.testing.assert_allclose(mean, (x / 255).mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(std, (x / 255).std((0, 1, 2)), rtol=1e-6)
    lazy = Data("x", data.batch, data.labels, data.shape)
    assert channel_stats(lazy) == (mean, std)


def test_tables_ignore_nan_and_survive_constants():
    x = rng().normal(size=(3000, 5)).astype(np.float32)
    x[:, 1] += 1e4  # large mean, small deviation: a sum of squares in one go would lose it
    x[rng(1).random((3000, 5)) < 0.3] = np.nan
    x[:1100, 0] = np.nan  # a whole chunk without a value
    x[:, 3] = 7.0
    x[:, 4] = np.nan
    mean, std = channel_stats(Data("x", torch.from_numpy(x), torch.zeros(3000), (5,)))
    exact = x[:, :3].astype(np.float64)
    np.testing.assert_allclose(mean[:3], np.nanmean(exact, 0), rtol=1e-9)
    np.testing.assert_allclose(std[:3], np.nanstd(exact, 0), rtol=1e-9)
    assert (mean[3], std[3]) == (7.0, 1.0)
    assert (mean[4], std[4]) == (0.0, 1.0)


def test_no_channels():
    with pytest.raises(ValueError, match="no channels or no samples: 3 samples"):
        channel_stats(Data("x", torch.ones(3), torch.zeros(3), ()))
    with pytest.raises(ValueError, match="0 samples"):
        channel_stats(Data("x", torch.ones(0, 2), torch.zeros(0), (2,)))


def test_a_black_channel():
    x = torch.zeros(4, 3, 2, 2, dtype=torch.uint8)
    x[:2, 1] = 255
    assert channel_stats(Data("x", x, torch.zeros(4), (3, 2, 2))) == ((0, 0.5, 0), (1, 0.5, 1))
