"""Make the embedded set ``fashion_mini.npz`` from the published files.

    python scripts/make_fashion_mini.py DATA [OUT]

DATA holds ``FashionMNIST/raw`` and ``notMNIST/raw`` (gzipped idx files); the digits are scikit-learn's. The choice is
seeded and the archive carries no times, so the same files give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

SEED = 2017
LIMIT = 8 * 2**20  # what the package may grow by
OUT = Path(__file__).parents[1] / "src/credro/data/embedded/fashion_mini.npz"


def read_idx(path: Path) -> np.ndarray:
    """The uint8 array in a gzipped idx file: magic 0, 0, 8, rank, then one big-endian length per axis."""
    raw = gzip.decompress(path.read_bytes())
    rank = raw[3]
    shape = np.frombuffer(raw, ">i4", rank, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def balanced(labels: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` sample numbers, equally many of each class, in random order."""
    classes = np.unique(labels)
    index = [rng.permutation(np.flatnonzero(labels == c))[: n // len(classes)] for c in classes]
    chosen = rng.permutation(np.concatenate(index))
    assert len(chosen) == n, f"a class is too small for {n} samples: {np.bincount(labels)}"
    return chosen


def digits_28() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's 8x8 digits, drawn as 20x20 in the middle of 28x28 as MNIST's are, 0..255."""
    bunch = load_digits()
    out = np.zeros((len(bunch.images), 28, 28), np.uint8)
    for canvas, image in zip(out, bunch.images, strict=True):
        small = Image.fromarray(np.round(image * (255 / 16)).astype(np.uint8))
        canvas[4:24, 4:24] = np.asarray(small.resize((20, 20), Image.Resampling.BICUBIC))
    return out, bunch.target.astype(np.uint8)


def make(data: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED)
    arrays = {}
    for key, folder, split, n in [
        ("train", "FashionMNIST", "train", 12_000),
        ("test", "FashionMNIST", "t10k", 3_000),
        ("letters", "notMNIST", "t10k", 2_000),
    ]:
        x = read_idx(data / folder / "raw" / f"{split}-images-idx3-ubyte.gz")
        y = read_idx(data / folder / "raw" / f"{split}-labels-idx1-ubyte.gz")
        index = balanced(y, n, rng)
        arrays[f"{key}_x"], arrays[f"{key}_y"] = x[index], y[index]
    arrays["digits_x"], arrays["digits_y"] = digits_28()
    return arrays


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """What ``np.savez_compressed`` writes, at the strongest level."""
    with zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{key}.npy")  # dated 1980, always
            archive.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with FashionMNIST/raw and notMNIST/raw")
    parser.add_argument("out", type=Path, nargs="?", default=OUT)
    args = parser.parse_args()
    arrays = make(args.data)
    write(args.out, arrays)
    size = args.out.stat().st_size
    print(f"{args.out.name}: {size / 2**20:.2f} MiB")
    for key, array in arrays.items():
        print(f"  {key:10} {array.dtype} {array.shape}")
    assert size < LIMIT, f"{size} bytes are more than {LIMIT}"


if __name__ == "__main__":
    main()
