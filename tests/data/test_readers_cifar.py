import numpy as np
import pytest
import torch

from credro.data import DataError, DataNotFound, load
from tests.data.layouts import cifar_rows, images, write_pickle

NAMES = [b"airplane", b"automobile", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]


def write_cifar10(root, n=4, spoil=None):
    x = images(6 * n)
    y = [i % 10 for i in range(6 * n)]
    files = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for k, file in enumerate(files):
        rows = slice(k * n, (k + 1) * n)
        content = {b"data": cifar_rows(x[rows]), b"labels": y[rows], **(spoil or {})}
        write_pickle(root / "cifar-10-batches-py" / file, content, protocol=4 - k % 3)
    write_pickle(root / "cifar-10-batches-py" / "batches.meta", {b"label_names": NAMES})
    return x, y


def test_cifar10(tmp_path):
    x, y = write_cifar10(tmp_path)
    train, test = load("cifar10", root=tmp_path), load("cifar10", split="test", root=tmp_path)
    assert (len(train), len(test)) == (20, 4)
    assert train.shape == (3, 32, 32)
    assert train.samples.dtype == torch.uint8
    np.testing.assert_array_equal(torch.cat([train.samples, test.samples]).permute(0, 2, 3, 1).numpy(), x)
    assert torch.cat([train.labels, test.labels]).tolist() == y
    assert train.classes == tuple(name.decode() for name in NAMES)
    assert train.mean == (0.4914, 0.4822, 0.4465)
    assert train.std == (0.2023, 0.1994, 0.2010)


def test_cifar100_with_and_without_names(tmp_path):
    x, fine, coarse = images(6), [0, 99, 5, 5, 42, 7], [0, 19, 3, 3, 2, 1]
    folder = tmp_path / "cifar-100-python"
    write_pickle(folder / "test", {b"data": cifar_rows(x), b"fine_labels": fine, b"coarse_labels": coarse})
    data = load("cifar100", split="test", root=tmp_path)
    np.testing.assert_array_equal(data.samples.permute(0, 2, 3, 1).numpy(), x)
    assert data.labels.tolist() == fine
    assert len(data.classes) == 100
    assert data.classes[99] == "worm"
    write_pickle(
        folder / "meta",
        {b"fine_label_names": [b"f%d" % i for i in range(100)], b"coarse_label_names": [b"c%d" % i for i in range(20)]},
    )
    assert load("cifar100", split="test", root=tmp_path).classes[:2] == ("f0", "f1")
    rough = load("cifar100", split="test", root=tmp_path, coarse=True)
    assert rough.labels.tolist() == coarse
    assert rough.classes[19] == "c19"


def test_missing_coarse_labels(tmp_path):
    write_pickle(tmp_path / "cifar-100-python/test", {b"data": cifar_rows(images(2)), b"fine_labels": [1, 2]})
    with pytest.raises(DataError, match="has no 'coarse_labels', only data, fine_labels"):
        load("cifar100", split="test", root=tmp_path, coarse=True)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ({b"labels": [0, 1, 10, 2]}, r"label 10 of sample 2 is outside 0\.\.9"),
        ({b"labels": [0, 1, -1, 2]}, "label -1 of sample 2"),
        ({b"labels": [0, 1]}, "4 samples, but labels of shape"),
        ({b"labels": ["cat"] * 4}, "list of whole numbers"),
        ({b"data": np.zeros((4, 3071), np.uint8)}, "shape \\(N, 3072\\)"),
        ({b"data": b"none"}, "shape \\(N, 3072\\)"),
        ({b"data": np.zeros((0, 3072), np.uint8), b"labels": []}, "holds no samples"),
    ],
)
def test_mislabelled_or_empty(tmp_path, spoil, message):
    write_cifar10(tmp_path, spoil=spoil)
    with pytest.raises(DataError, match=message) as caught:
        load("cifar10", root=tmp_path)
    assert "data_batch_1" in str(caught.value)


def test_truncated_and_missing(tmp_path):
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-py/data_batch_3"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="data_batch_3: not a complete pickle"):
        load("cifar10", root=tmp_path)
    path.unlink()
    with pytest.raises(DataNotFound) as caught:
        load("cifar10", root=tmp_path)
    for part in (str(path), "https://www.cs.toronto.edu/~kriz/cifar.html", "credro data get cifar10", "CREDRO_DATA"):
        assert part in str(caught.value)
    assert "data_batch_2" not in str(caught.value)  # it is there
    assert isinstance(caught.value, FileNotFoundError)


def test_wrong_meta(tmp_path):
    write_cifar10(tmp_path)
    write_pickle(tmp_path / "cifar-10-batches-py/batches.meta", {b"label_names": NAMES[:3]})
    with pytest.raises(DataError, match="list of 10 names"):
        load("cifar10", root=tmp_path)


def write_corrupted(root, n=4, labels=None):
    folder = root / "CIFAR-10-C"
    folder.mkdir(parents=True)
    x = images(5 * n)
    y = np.tile(np.arange(n, dtype=np.uint8), 5) if labels is None else labels
    np.save(folder / "fog.npy", x)
    np.save(folder / "gaussian_noise.npy", x[::-1])
    np.save(folder / "labels.npy", y)
    return x


def test_corrupted(tmp_path):
    x = write_corrupted(tmp_path)
    every = load("cifar10-c", root=tmp_path, corruption="fog")
    np.testing.assert_array_equal(every.samples.permute(0, 2, 3, 1).numpy(), x)
    assert every.groups.tolist() == [s for s in range(5) for _ in range(4)]
    third = load("cifar10-c", split="test", root=tmp_path, corruption="fog", severity=3)
    np.testing.assert_array_equal(third.samples.permute(0, 2, 3, 1).numpy(), x[8:12])
    assert third.labels.tolist() == [0, 1, 2, 3]
    assert {third.group_names[g] for g in third.groups.tolist()} == {"severity 3"}
    assert third.mean == (0.4914, 0.4822, 0.4465)
    noise = load("cifar10-c", root=tmp_path, corruption="gaussian-noise", severity=1)
    np.testing.assert_array_equal(noise.samples.permute(0, 2, 3, 1).numpy(), x[::-1][:4])


def test_corrupted_errors(tmp_path):
    with pytest.raises(DataNotFound, match=r"labels\.npy"):
        load("cifar10-c", root=tmp_path, corruption="fog")
    write_corrupted(tmp_path)
    with pytest.raises(ValueError, match="corruption of 'cifar10-c' must be given, one of fog, gaussian_noise"):
        load("cifar10-c", root=tmp_path)
    with pytest.raises(DataNotFound, match="there are: fog, gaussian_noise"):
        load("cifar10-c", root=tmp_path, corruption="rain")
    with pytest.raises(ValueError, match="severity must be 1, 2, 3, 4, 5 or None for all, got 6"):
        load("cifar10-c", root=tmp_path, corruption="fog", severity=6)
    with pytest.raises(ValueError, match="split of 'cifar10-c' must be one of 'test', got 'train'"):
        load("cifar10-c", split="train", root=tmp_path, corruption="fog")
    fog = tmp_path / "CIFAR-10-C/fog.npy"
    whole = fog.read_bytes()
    fog.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a complete"):
        load("cifar10-c", root=tmp_path, corruption="fog")
    np.save(fog, images(7))
    with pytest.raises(DataError, match="not five severities"):
        load("cifar10-c", root=tmp_path, corruption="fog")
    np.save(fog, images(20, c=1))
    with pytest.raises(DataError, match="must be uint8"):
        load("cifar10-c", root=tmp_path, corruption="fog")
    np.save(fog, images(25))
    with pytest.raises(DataError, match="25 samples, but labels of shape"):
        load("cifar10-c", root=tmp_path, corruption="fog")
    np.save(fog, images(0))
    with pytest.raises(DataError, match="holds no samples"):
        load("cifar10-c", root=tmp_path, corruption="fog")
    fog.write_bytes(b"")
    with pytest.raises(DataError, match="not a complete"):
        load("cifar10-c", root=tmp_path, corruption="fog")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.full(20, 10), "label 10 of sample 0"),
        (np.full(20, 0.5), "labels must be whole numbers, got float64"),
        (np.full(20, np.nan), "labels must be whole numbers, got float64"),
        (np.full(20, "cat"), "labels must be whole numbers, got <U3"),
    ],
)
def test_corrupted_labels(tmp_path, labels, message):
    write_corrupted(tmp_path, labels=labels)
    with pytest.raises(DataError, match=message):
        load("cifar10-c", root=tmp_path, corruption="fog")


def test_broken_header(tmp_path):
    """A bracket that is never closed: not even a ValueError in numpy."""
    write_corrupted(tmp_path)
    path = tmp_path / "CIFAR-10-C/labels.npy"
    path.write_bytes(path.read_bytes().replace(b"(20,)", b"(20,("))
    with pytest.raises(DataError, match=r"labels\.npy: not a complete"):
        load("cifar10-c", root=tmp_path, corruption="fog")


def test_hundred_classes_of_corrupted(tmp_path):
    write_corrupted(tmp_path, labels=np.full(20, 99))
    (tmp_path / "CIFAR-10-C").rename(tmp_path / "CIFAR-100-C")
    data = load("cifar100-c", root=tmp_path, corruption="fog", severity=5)
    assert (len(data), len(data.classes), data.classes[data.labels[0]]) == (4, 100, "worm")


def test_corrupted_never_unpickles(tmp_path):
    write_corrupted(tmp_path)
    np.save(tmp_path / "CIFAR-10-C/fog.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a complete"):
        load("cifar10-c", root=tmp_path, corruption="fog")
