"""Sets that need no download: scikit-learn's digits, and the small Fashion-MNIST within the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import torch

from credro.data.base import Data
from credro.data.errors import DataError, need
from credro.data.readers._idx import DIGITS, FASHION, LETTERS
from credro.data.readers._published import Published, check_labels

TEST_DIGITS = 500

DIGITS_8X8 = Published("digits", {"train": (), "test": (), "all": ()})
FASHION_MINI = Published("fashion-mini", {"train": (), "test": ()})
FASHION_MINI_LETTERS = Published("fashion-mini-letters", {"test": ()})
FASHION_MINI_DIGITS = Published("fashion-mini-digits", {"test": ()})


def digits(root: Path, split: str | None) -> Data:
    """scikit-learn's digits (1, 8, 8): 1,297 for training and 500 for test, by one fixed shuffle (seed 0).

    The stored intensities 0..16 become bytes as ``round(v * 255 / 16)``.
    """
    split = DIGITS_8X8.split(split)
    bunch = need("sklearn.datasets").load_digits()
    samples = (torch.from_numpy(bunch.images) * (255 / 16)).round().to(torch.uint8)[:, None]
    data = Data("digits", samples, torch.from_numpy(bunch.target).long(), (1, 8, 8), DIGITS)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    rows = {"train": order[TEST_DIGITS:], "test": order[:TEST_DIGITS], "all": torch.arange(len(data))}
    return data.subset(rows[split].sort().values)


def fashion_mini(root: Path, split: str | None) -> Data:
    """12,000 training and 3,000 test images of Fashion-MNIST (1, 28, 28)."""
    return _embedded(FASHION_MINI.name, FASHION_MINI.split(split), FASHION)


def fashion_mini_letters(root: Path, split: str | None) -> Data:
    """2,000 notMNIST letters (1, 28, 28), which no clothes are like."""
    FASHION_MINI_LETTERS.split(split)
    return _embedded(FASHION_MINI_LETTERS.name, "letters", LETTERS)


def fashion_mini_digits(root: Path, split: str | None) -> Data:
    """scikit-learn's 1,797 digits at (1, 28, 28), which no clothes are like."""
    FASHION_MINI_DIGITS.split(split)
    return _embedded(FASHION_MINI_DIGITS.name, "digits", DIGITS)


def _embedded(name: str, part: str, classes: tuple[str, ...]) -> Data:
    file = resources.files("credro.data").joinpath("embedded/fashion_mini.npz")
    if not file.is_file():
        raise DataError(str(file), "is missing: this installation of credro is not complete")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        samples = torch.from_numpy(arrays[f"{part}_x"])[:, None]
        labels = torch.from_numpy(arrays[f"{part}_y"].astype("int64"))
    return Data(name, samples, check_labels(Path(str(file)), labels, len(samples), len(classes)), (1, 28, 28), classes)
