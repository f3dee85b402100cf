"""The real sets, where a copy of them lies beside the checkout."""

import gzip
import os
import pickle
from pathlib import Path

import pytest
import scipy.io
import torch

from credro.data import channel_stats, conform, load
from tests.data.layouts import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no real data beside the checkout (../shared/data)")


def raw_idx(folder, stem):
    return list(gzip.decompress((SHARED / folder / "raw" / f"{stem}-labels-idx1-ubyte.gz").read_bytes())[8:])


def folder_sizes(path):
    return [i for i, folder in enumerate(sorted(path.iterdir())) for _ in folder.iterdir()]


def cifar100_labels():
    with (SHARED / "cifar-100-python/test").open("rb") as file:
        return pickle.load(file, encoding="bytes")[b"fine_labels"]


def svhn_labels():
    return [int(y) % 10 for y in scipy.io.loadmat(SHARED / "SVHN/test_32x32.mat")["y"].ravel()]


@pytest.mark.parametrize(
    ("name", "split", "count", "shape", "classes", "labels"),
    [
        ("cifar100", "test", 5000, (3, 32, 32), 100, cifar100_labels),
        ("svhn", "test", 5000, (3, 32, 32), 10, svhn_labels),
        ("places365", "val", 5000, (3, 32, 32), 100, lambda: folder_sizes(SHARED / "places365_small/val")),
        ("places365", "test", 5000, (3, 32, 32), 100, lambda: folder_sizes(SHARED / "places365_small/val")),
        ("imagenet", "val", 5000, (3, 32, 32), 200, lambda: folder_sizes(SHARED / "imagenet/val")),
        ("fmnist", "train", 60000, (1, 28, 28), 10, lambda: raw_idx("FashionMNIST", "train")),
        ("fmnist", "test", 10000, (1, 28, 28), 10, lambda: raw_idx("FashionMNIST", "t10k")),
        ("mnist", "test", 5000, (1, 28, 28), 10, lambda: raw_idx("MNIST", "t10k")),
        ("notmnist", "test", 5000, (1, 28, 28), 10, lambda: raw_idx("notMNIST", "t10k")),
    ],
)
def test_images(name, split, count, shape, classes, labels):
    data = load(name, split=split, root=SHARED)
    assert len(data) == count
    assert data.shape == shape
    assert data.samples.shape == (count, *shape)
    assert data.samples.dtype == torch.uint8
    assert data.labels.dtype == torch.int64
    assert len(data.classes) == classes
    assert set(data.labels.tolist()) == set(range(classes))
    assert data.labels.tolist() == labels()


def test_fashion_is_balanced():
    for split, each in (("train", 6000), ("test", 1000)):
        assert load("fmnist", split=split, root=SHARED).labels.bincount().tolist() == [each] * 10


def test_svhn_zero_is_zero():
    """Digits in house numbers are never led by 0: it is among the rarer ones, and 1 the most frequent."""
    counts = load("svhn", split="test", root=SHARED).labels.bincount()
    assert counts.argmax() == 1
    assert counts[0] < counts[1] / 2


def test_strangers_conform_to_cifar():
    for name in ("fmnist", "imagenet", "svhn"):
        data = load(name, split="test", root=SHARED).subset(range(100))
        assert conform(data, (3, 32, 32)).samples.shape == (100, 3, 32, 32)


def test_fashion_statistics():
    """Published with the set: mean 0.2860, deviation 0.3530 of the training pixels."""
    mean, std = channel_stats(load("fmnist", root=SHARED))
    assert mean[0] == pytest.approx(0.2860, abs=1e-4)
    assert std[0] == pytest.approx(0.3530, abs=1e-4)


def test_breakhis():
    data = load("breakhis/breakhis400_64.npz", root=SHARED)
    assert (len(data), data.shape, data.samples.dtype) == (1670, (3, 64, 64), torch.uint8)
    assert len(data.group_names) == 81
    assert len(set(data.groups.tolist())) == 81
    assert data.labels.bincount().tolist() == [547, 1123]


def test_tables():
    heart = load("tabular/heart_4sites.npz", root=SHARED, group="site")
    assert (len(heart), heart.shape) == (920, (13,))
    assert heart.group_names == ("cleveland", "hungarian", "switzerland", "va")
    assert heart.groups.bincount().tolist() == [303, 294, 123, 200]  # as published by UCI
    assert heart.columns[0] == "age"
    assert heart.samples.isnan().any()
    with pytest.raises(ValueError, match="is missing"):
        load("tabular/heart_4sites.npz", root=SHARED, missing="error")
    gas = load("tabular/gas_drift_8batches.npz", root=SHARED, group="batch")
    assert (len(gas), gas.shape) == (6697, (128,))
    assert len(gas.group_names) == 8
    assert "Ethanol" in gas.classes
    bike = load("tabular/bike_hourly.npz", root=SHARED)
    assert (len(bike), bike.shape) == (17379, (12,))
    assert bike.labels.dtype == torch.float32
    wine = load("tabular/uci_regression.npz", root=SHARED, x="wine_x", y="wine_y")
    assert (len(wine), wine.shape) == (1599, (11,))
    assert wine.classes == ("3", "4", "5", "6", "7", "8")  # stored as 3.0 to 8.0


def has_cifar10():
    return (Path(os.environ.get("CREDRO_DATA", "/nowhere")) / "cifar-10-batches-py").is_dir()


@pytest.mark.skipif(not has_cifar10(), reason="CREDRO_DATA has no CIFAR-10")
def test_cifar10():
    train, test = load("cifar10"), load("cifar10", split="test")
    assert train.samples.shape == (50000, 3, 32, 32)
    assert train.labels.bincount().tolist() == [5000] * 10
    assert test.labels.bincount().tolist() == [1000] * 10
    assert test.labels[:5].tolist() == [3, 8, 8, 0, 6]
    mean, _ = channel_stats(train)
    assert mean == pytest.approx(train.mean, abs=1e-4)
