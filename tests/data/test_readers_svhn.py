import numpy as np
import pytest
import scipy.io
import torch

from credro.data import DataError, DataNotFound, load
from tests.data.layouts import images


def write(root, x, y, file="SVHN/test_32x32.mat"):
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, {"X": x, "y": y})
    return path


def published(n=11):
    """X (32, 32, 3, N) and y (N, 1), with 10 for zero."""
    x = images(n)
    return x, x.transpose(1, 2, 3, 0), (np.arange(n, dtype=np.uint8) % 10 + 1)[:, None]


@pytest.mark.parametrize("file", ["SVHN/{}_32x32.mat", "{}_32x32.mat"])
@pytest.mark.parametrize("split", ["train", "test", "extra"])
def test_axes_and_zero(tmp_path, file, split):
    images, x, y = published()
    write(tmp_path, x, y, file.format(split))
    data = load("svhn", split=split, root=tmp_path)
    assert data.shape == (3, 32, 32)
    assert data.samples.dtype == torch.uint8
    np.testing.assert_array_equal(data.samples.permute(0, 2, 3, 1).numpy(), images)
    assert data.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_missing(tmp_path):
    with pytest.raises(DataNotFound, match="credro data get svhn"):
        load("svhn", root=tmp_path)


def test_mislabelled(tmp_path):
    _, x, y = published()
    for bad in (0, 11):
        write(tmp_path, x, np.where(y == 3, bad, y))
        with pytest.raises(DataError, match="of sample 2 is outside"):
            load("svhn", split="test", root=tmp_path)
    write(tmp_path, x, y + 0.5)
    with pytest.raises(DataError, match=r"labels must be whole numbers, got float64 such as \[1.5, 2.5, 3.5\]"):
        load("svhn", split="test", root=tmp_path)
    write(tmp_path, x, y[:5])
    with pytest.raises(DataError, match="11 samples, but labels"):
        load("svhn", split="test", root=tmp_path)


def test_broken(tmp_path):
    _, x, y = published()
    path = write(tmp_path, x, y)
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:60], b""):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"test_32x32\.mat"):
            load("svhn", split="test", root=tmp_path)
    write(tmp_path, x.astype(float), y)
    with pytest.raises(DataError, match="X must be uint8"):
        load("svhn", split="test", root=tmp_path)
    write(tmp_path, x.transpose(3, 0, 1, 2), y)
    with pytest.raises(DataError, match="X must be uint8"):
        load("svhn", split="test", root=tmp_path)
    scipy.io.savemat(path, {"X": x})
    with pytest.raises(DataError, match="has no variable y"):
        load("svhn", split="test", root=tmp_path)
    write(tmp_path, np.zeros((32, 32, 3, 0), np.uint8), y[:0])
    with pytest.raises(DataError):
        load("svhn", split="test", root=tmp_path)
