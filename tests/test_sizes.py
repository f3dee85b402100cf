"""Images of other sizes than those trained on: only where it is asked for, and as the network itself takes them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import credro
from credro.data import Data
from tests.training.common import blobs, small_net, tiny_images, trained


def pooled():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


@pytest.fixture(scope="module")
def ensemble():
    return trained("resnet8", tiny_images(), recipe=credro.Recipe(epochs=1, batch_size=16, channels_last=False))


def larger(count=6, size=20, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, size, size + 4), generator=draw, dtype=torch.uint8)


def test_other_sizes_are_normalised_by_channel_and_given_to_the_network(ensemble):
    x = larger()
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (ensemble.inputs.mean, ensemble.inputs.std))
    with torch.no_grad():
        expected = torch.stack([net((x / 255 - mean) / std).softmax(-1) for net in ensemble.nets])
    prediction = ensemble.predict(x, any_size=True)
    torch.testing.assert_close(prediction.probs, expected, rtol=1e-4, atol=1e-6)
    assert prediction.classes == tuple("abcd")
    torch.testing.assert_close(
        ensemble.predict(x.numpy(), any_size=True, batch_size=2).probs, expected, rtol=1e-4, atol=1e-6
    )
    loader = DataLoader(list(x), batch_size=1)
    torch.testing.assert_close(ensemble.predict(loader, any_size=True).probs, expected, rtol=1e-4, atol=1e-6)


def test_images_of_several_sizes_one_at_a_time(ensemble):
    several = [larger(1, size)[0] for size in (12, 16, 24)]
    found = ensemble.predict(DataLoader(several, batch_size=1), any_size=True).probs
    for i, image in enumerate(several):
        torch.testing.assert_close(found[:, i], ensemble.predict(image[None], any_size=True).probs[:, 0])


def test_without_it_the_error_names_it(ensemble):
    with pytest.raises(ValueError, match=r"shape \(3, 12, 12\), got \(3, 20, 24\): resize them, or give any_size=True"):
        ensemble.predict(larger())


def test_an_answer_that_was_kept_hides_no_wrong_size(ensemble):
    data = Data("large", larger(), torch.zeros(6, dtype=torch.long), (3, 20, 24), tuple("abcd"))
    first = ensemble.predict(data, any_size=True)
    assert torch.equal(ensemble.predict(data, any_size=True).probs, first.probs)
    with pytest.raises(ValueError, match="any_size=True"):
        ensemble.predict(data)


@pytest.mark.parametrize("shape", [(4, 1, 20, 20), (4, 20, 20), (4, 3, 20), (4, 5)])
def test_it_is_for_images_with_as_many_channels(ensemble, shape):
    with pytest.raises(ValueError, match="any_size=True is for images"):
        ensemble.predict(np.zeros(shape, np.uint8), any_size=True)


def test_too_small_for_the_network_is_said(ensemble):
    with pytest.raises(ValueError, match=r"shape must be at least 4x4 pixels for this network, got \(3, 3, 7\)"):
        ensemble.predict(larger(2, 3), any_size=True)


@pytest.mark.parametrize("net", ["mlp", "cnn"])
def test_networks_of_a_fixed_size_say_so(net):
    fixed = trained(net, tiny_images(), recipe=credro.Recipe(epochs=1, batch_size=16))
    with pytest.raises(ValueError, match=r"any_size=True: the network does not take images of shape \(3, 20, 24\)"):
        fixed.predict(larger(), any_size=True)


@pytest.mark.parametrize("net", ["resnet8", "resnet18", "wrn28-4", "resnet18-imagenet"])
def test_residual_networks_take_other_sizes(net):
    """What docs/networks.md says; the weights do not matter."""
    made = credro.nets.make(net, classes=3, shape=(3, 32, 32)).eval()
    x = torch.randn(1, 3, 40, 48, generator=torch.Generator().manual_seed(0))
    y = torch.zeros(1, dtype=torch.long)
    given = credro.Ensemble.of([made], (torch.randn(1, 3, 32, 32), y))
    with torch.no_grad():
        torch.testing.assert_close(given.predict(x, any_size=True).probs[0], made(x).softmax(-1), rtol=1e-4, atol=1e-6)


def test_ones_own_network_and_one_that_leaves_nothing():
    given = credro.Ensemble.of([pooled()], (torch.rand(2, 3, 12, 12), torch.tensor([0, 1])))
    assert given.predict(torch.rand(5, 3, 30, 9), any_size=True).mean.shape == (5, 4)
    with pytest.raises(ValueError, match=r"does not take images of shape \(3, 2, 2\)"):
        given.predict(torch.rand(5, 3, 2, 2), any_size=True)


def test_tables_have_no_other_size():
    x, y = blobs(20)
    table = credro.Ensemble.of([small_net()], (x, y))
    with pytest.raises(ValueError, match=r"samples must have shape \(6,\), got \(5,\)$"):
        table.predict(x[:, :5])
    with pytest.raises(ValueError, match="any_size=True is for images"):
        table.predict(x[:, :5], any_size=True)
