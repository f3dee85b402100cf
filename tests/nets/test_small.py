import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from credro.nets import CNN, MLP, make

FASHION = Path(__file__).parents[3] / "shared/data/FashionMNIST/raw"


def test_mlp_is_its_matrices():
    torch.manual_seed(0)
    net = MLP((1, 4, 5), classes=3, hidden=(7, 6)).double()
    x = torch.randn(9, 1, 4, 5, dtype=torch.float64)
    (w1, b1), (w2, b2), (w3, b3) = zip(*[iter(net.parameters())] * 2, strict=True)
    hidden = (x.reshape(9, 20) @ w1.T + b1).clamp(min=0)
    hidden = (hidden @ w2.T + b2).clamp(min=0)
    torch.testing.assert_close(net(x), hidden @ w3.T + b3)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_mlp_count(batch_norm):
    net = make("mlp", 3, (20,), hidden=(7, 6), batch_norm=batch_norm)
    by_hand = 20 * 7 + 7 + 7 * 6 + 6 + 6 * 3 + 3 + (2 * (7 + 6) if batch_norm else 0)
    assert sum(p.numel() for p in net.parameters()) == by_hand


def test_mlp_dropout_drops_the_stated_share():
    torch.manual_seed(0)
    net = MLP((4,), classes=2, hidden=(10_000,), dropout=0.3)
    nn.init.ones_(net.body[1].bias)
    nn.init.zeros_(net.body[1].weight)
    assert (net.body(torch.randn(1, 4)) == 0).float().mean().item() == pytest.approx(0.3, abs=0.03)
    net.eval()
    assert (net.body(torch.randn(1, 4)) == 1).all()


def test_linear_classifier():
    assert sum(p.numel() for p in make("mlp", 3, (20,), hidden=()).parameters()) == 63


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(8, 70), st.integers(8, 70), st.integers(1, 12))
def test_cnn_takes_any_image(channels, height, width, classes):
    net = make("cnn", classes, (channels, height, width))
    assert net(torch.zeros(2, channels, height, width)).shape == (2, classes)


def test_cnn_count():
    by_hand = 9 * (1 * 16 + 16 * 32 + 32 * 64) + 2 * (16 + 32 + 64) + 3 * 3 * 64 * 10 + 10
    assert sum(p.numel() for p in make("cnn").parameters()) == by_hand == 29_178


def test_cnn_fits_random_labels():
    torch.manual_seed(0)
    x, y = torch.randn(128, 1, 12, 12), torch.randint(0, 10, (128,))
    net = CNN(shape=(1, 12, 12))
    optimiser = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(40):
        optimiser.zero_grad()
        functional.cross_entropy(net(x), y).backward()
        optimiser.step()
    assert (net(x).argmax(1) == y).all()


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="shape must be at least 8x8"):
        CNN(shape=(1, 7, 28))
    with pytest.raises(ValueError, match=r"at least 8x8 .*, got \(28, 28, 3\); channels come first: x.transpose"):
        CNN(shape=(28, 28, 3))
    with pytest.raises(ValueError, match=r"got \(28, 28\); grey images have one channel: x\[:, None\]"):
        CNN(shape=(28, 28))
    with pytest.raises(ValueError, match="widths must be positive"):
        CNN(widths=())
    with pytest.raises(ValueError, match="hidden must be positive"):
        MLP((4,), hidden=(3, 0))
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\), got 1.5"):
        MLP((4,), dropout=1.5)
    for shape in ((), (0,), (-3, 4), (2.5,)):
        with pytest.raises(ValueError, match="shape must be the positive whole numbers"):
            MLP(shape)
    with pytest.raises(ValueError, match="classes must be at least 1, got 0"):
        MLP((4,), classes=0)


@pytest.mark.slow
@pytest.mark.skipif(not FASHION.exists(), reason="needs Fashion-MNIST in ../shared/data")
def test_cnn_fits_and_generalises_on_fashion():
    def read(name, offset):
        return torch.from_numpy(np.frombuffer(gzip.open(FASHION / name).read(), np.uint8, offset=offset).copy())

    def images(part):
        return (read(f"{part}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28) / 255 - 0.286) / 0.353

    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    index = torch.randperm(60_000, generator=generator)[:6_000]
    x, y = images("train")[index], read("train-labels-idx1-ubyte.gz", 8).long()[index]
    net = make("cnn").to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 20)
    for _ in range(20):
        for batch in torch.randperm(6_000, generator=generator).split(128):
            optimiser.zero_grad()
            functional.cross_entropy(net(x[batch]), y[batch]).backward()
            optimiser.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        assert (net(x).argmax(1) == y).float().mean() > 0.999
        test_y = read("t10k-labels-idx1-ubyte.gz", 8).long()
        assert (net(images("t10k")).argmax(1) == test_y).float().mean() > 0.865
