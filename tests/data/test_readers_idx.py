import gzip

import numpy as np
import pytest
import torch

from credro.data import DataError, DataNotFound, load
from tests.data.layouts import images, write_idx

FOLDERS = {"mnist": "MNIST", "fmnist": "FashionMNIST", "notmnist": "notMNIST"}


def write(root, folder="MNIST", stem="t10k", sub="raw", n=12, labels=None, compress=True):
    x = images(n, 28, 28, 1)
    y = np.arange(n, dtype=np.uint8) % 10 if labels is None else np.asarray(labels, np.uint8)
    end = ".gz" if compress else ""
    write_idx(root / folder / sub / f"{stem}-images-idx3-ubyte{end}", x, compress=compress)
    write_idx(root / folder / sub / f"{stem}-labels-idx1-ubyte{end}", y, compress=compress)
    return x, y


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("sub", ["raw", ""])
def test_reads_both_splits(tmp_path, name, compress, sub):
    for split, stem, n in (("train", "train", 15), ("test", "t10k", 12)):
        x, y = write(tmp_path, FOLDERS[name], stem, sub, n, compress=compress)
        data = load(name, split=split, root=tmp_path)
        assert data.shape == (1, 28, 28)
        assert data.samples.dtype == torch.uint8
        np.testing.assert_array_equal(data.samples[:, 0].numpy(), x)
        assert data.labels.tolist() == y.tolist()
        assert len(data.classes) == 10
        assert data.mean == data.std == ()


def test_class_names(tmp_path):
    for name, folder in FOLDERS.items():
        write(tmp_path, folder)
        first = load(name, split="test", root=tmp_path).classes[0]
        assert first == {"mnist": "0", "fmnist": "T-shirt/top", "notmnist": "A"}[name]


def test_missing_names_files_and_page(tmp_path):
    with pytest.raises(DataNotFound) as caught:
        load("notmnist", root=tmp_path)
    text = str(caught.value)
    assert str(tmp_path / "notMNIST" / "raw" / "train-images-idx3-ubyte.gz") in text
    assert "credro data get notmnist cannot fetch it" in text
    assert "https://github.com/davidflanagan/notMNIST-to-MNIST" in text


def test_labels_alone_are_missing(tmp_path):
    write(tmp_path)
    (tmp_path / "MNIST/raw/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataNotFound, match="t10k-labels-idx1-ubyte"):
        load("mnist", split="test", root=tmp_path)


def test_mislabelled(tmp_path):
    write(tmp_path, labels=[0, 1, 2, 10] * 3)
    with pytest.raises(DataError, match=r"label 10 of sample 3 is outside 0\.\.9 \(3 such labels in all\)"):
        load("mnist", split="test", root=tmp_path)
    write(tmp_path, labels=[0, 1, 2])
    with pytest.raises(DataError, match="12 samples, but labels of shape"):
        load("mnist", split="test", root=tmp_path)


def test_broken_files(tmp_path):
    x, _ = write(tmp_path)
    path = tmp_path / "MNIST/raw/t10k-images-idx3-ubyte.gz"

    def fails(message):
        with pytest.raises(DataError, match=message) as caught:
            load("mnist", split="test", root=tmp_path)
        assert str(path) in str(caught.value)

    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    fails("broken gzip")
    raw = gzip.decompress(whole)
    path.write_bytes(raw[:-5])
    fails("9408 bytes, but 9403 follow")
    path.write_bytes(raw + b"x")
    fails("9408 bytes, but 9409 follow")
    path.write_bytes(raw[:10])
    fails("ends within its header")
    path.write_bytes(b"")
    fails("not an idx file")
    path.write_bytes(b"PK\x03\x04 something else")
    fails("not an idx file of bytes with 3 dimensions: it begins with 50 4b 03 04")
    write_idx(path, np.zeros((0, 28, 28), np.uint8))
    fails("holds no samples")
    write_idx(path, x, shape=(-12, -28, 28))
    fails("its header says")


def test_labels_in_place_of_images(tmp_path):
    write(tmp_path)
    write_idx(tmp_path / "MNIST/raw/t10k-images-idx3-ubyte.gz", np.zeros(12, np.uint8))
    with pytest.raises(DataError, match="3 dimensions: it begins with 00 00 08 01"):
        load("mnist", split="test", root=tmp_path)
