import gzip
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

ROOT = Path(__file__).parents[2]
RAW = ROOT.parent / "shared" / "data"
EMBEDDED = files("credro.data.embedded")


@pytest.fixture(scope="module")
def arrays():
    with EMBEDDED.joinpath("fashion_mini.npz").open("rb") as file, np.load(file, allow_pickle=False) as z:
        return dict(z)


def test_contents(arrays):
    sizes = {"train": 12_000, "test": 3_000, "letters": 2_000, "digits": 1_797}
    assert set(arrays) == {f"{key}_{part}" for key in sizes for part in "xy"}
    for key, n in sizes.items():
        x, y = arrays[f"{key}_x"], arrays[f"{key}_y"]
        assert x.shape == (n, 28, 28)
        assert y.shape == (n,)
        assert x.dtype == y.dtype == np.uint8
        assert x.max() == 255
        if key != "digits":
            assert np.bincount(y).tolist() == [n // 10] * 10
            assert len(set(y[:40].tolist())) > 5, "classes must be mixed"


def test_size_and_licences():
    assert len(EMBEDDED.joinpath("fashion_mini.npz").read_bytes()) < 8 * 2**20
    assert "Copyright (c) 2017 Zalando SE" in EMBEDDED.joinpath("LICENSE-fashion-mnist.txt").read_text()
    assert "Permission is hereby granted" in EMBEDDED.joinpath("LICENSE-notmnist.txt").read_text()
    assert "CC BY 4.0" in EMBEDDED.joinpath("LICENSE-digits.txt").read_text()


def test_digits_are_scikit_learns_with_a_margin(arrays):
    source = load_digits()
    x = arrays["digits_x"].astype(float)
    assert np.array_equal(arrays["digits_y"], source.target)
    assert x[:, :4].max() == x[:, 24:].max() == x[:, :, :4].max() == x[:, :, 24:].max() == 0
    # Averaged back to 4x4 blocks, both hold the same picture.
    large = x[:, 4:24, 4:24].reshape(-1, 4, 5, 4, 5).mean((2, 4)).ravel()
    small = source.images.reshape(-1, 4, 2, 4, 2).mean((2, 4)).ravel()
    assert np.corrcoef(large, small)[0, 1] > 0.97


def read(name, rank):
    data = np.frombuffer(gzip.decompress((RAW / name).read_bytes()), np.uint8)
    return data[4 + 4 * rank :].reshape(-1, *[28] * (rank - 1))


@pytest.mark.skipif(not (RAW / "FashionMNIST").is_dir(), reason="needs the published files in ../shared/data")
@pytest.mark.parametrize(
    ("key", "folder", "split"),
    [("train", "FashionMNIST", "train"), ("test", "FashionMNIST", "t10k"), ("letters", "notMNIST", "t10k")],
)
def test_images_are_distinct_entries_of_the_published_files(arrays, key, folder, split):
    published = {}
    x, y = read(f"{folder}/raw/{split}-images-idx3-ubyte.gz", 3), read(f"{folder}/raw/{split}-labels-idx1-ubyte.gz", 1)
    for image, label in zip(x, y, strict=True):
        published.setdefault((image.tobytes(), int(label)), [0])[0] += 1
    for image, label in zip(arrays[f"{key}_x"], arrays[f"{key}_y"], strict=True):
        left = published[(image.tobytes(), int(label))]
        left[0] -= 1
        assert left[0] >= 0, "an image was taken more often than it is there"


@pytest.mark.skipif(not (RAW / "FashionMNIST").is_dir(), reason="needs the published files in ../shared/data")
@pytest.mark.slow
def test_the_script_makes_these_bytes(tmp_path):
    script = ROOT / "scripts" / "make_fashion_mini.py"
    subprocess.run([sys.executable, script, RAW, tmp_path / "made.npz"], check=True, capture_output=True)
    made, kept = tmp_path / "made.npz", EMBEDDED.joinpath("fashion_mini.npz")
    with np.load(made) as a, kept.open("rb") as file, np.load(file) as b:
        assert all(np.array_equal(a[key], b[key]) for key in b.files)  # zlib versions may compress differently
