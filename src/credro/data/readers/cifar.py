"""CIFAR-10 and CIFAR-100 in their official Python layout (pickles)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.errors import DataError
from credro.data.readers.common import check_labels, not_found, pick_split
from credro.data.unpickle import read_pickle

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
"""The usual normalisation, of the training images of CIFAR-10; CIFAR-100 shares it."""

CLASSES10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

CLASSES100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk",
    "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip


def cifar10(root: Path, split: str | None) -> Data:
    """``cifar-10-batches-py/``: 50,000 training and 10,000 test images (3, 32, 32)."""
    split = pick_split("cifar10", split, ("train", "test"))
    files = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    return _read("cifar10", root / "cifar-10-batches-py", files, "labels", "batches.meta", "label_names", CLASSES10)


def cifar100(root: Path, split: str | None, *, coarse: bool = False) -> Data:
    """``cifar-100-python/``: 100 fine classes, or with ``coarse`` the 20 groups of them."""
    split = pick_split("cifar100", split, ("train", "test"))
    kind = "coarse" if coarse else "fine"
    names = tuple(str(i) for i in range(20)) if coarse else CLASSES100
    return _read("cifar100", root / "cifar-100-python", [split], f"{kind}_labels", "meta", f"{kind}_label_names", names)


def _read(
    name: str, folder: Path, files: list[str], key: str, meta: str, names_key: str, names: tuple[str, ...]
) -> Data:
    """Batches, one after the other; the class names from the meta file where there is one."""
    paths = [folder / file for file in files]
    if missing := [path for path in paths if not path.is_file()]:
        raise not_found(name, folder.parent, missing)
    if (folder / meta).is_file():
        names = _names(folder / meta, names_key, len(names))
    parts = [_batch(path, key, len(names)) for path in paths]
    samples, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return Data(name, samples, labels, tuple(samples.shape[1:]), names, mean=MEAN, std=STD)


def _batch(path: Path, key: str, classes: int) -> tuple[Tensor, Tensor]:
    content = read_pickle(path)
    for needed in ("data", key):
        if needed not in content:
            raise DataError(path, f"has no {needed!r}, only {', '.join(sorted(content))}")
    data, labels = content["data"], content[key]
    if getattr(data, "ndim", 0) != 2 or data.shape[1] != 3072:
        raise DataError(path, f"'data' must be bytes of shape (N, 3072), got {getattr(data, 'shape', type(data))}")
    samples = torch.from_numpy(data.copy()).view(-1, 3, 32, 32)  # red, green, blue planes, row by row
    return samples, check_labels(path, _integers(path, key, labels), len(samples), classes)


def _integers(path: Path, key: str, labels: Any) -> Tensor:
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
        raise DataError(path, f"{key!r} must be a list of whole numbers")
    return torch.tensor(labels, dtype=torch.long)


def _names(path: Path, key: str, expected: int) -> tuple[str, ...]:
    found = read_pickle(path).get(key)
    if not isinstance(found, list) or len(found) != expected:
        raise DataError(path, f"{key!r} must be a list of {expected} names")
    return tuple(n.decode("latin1") if isinstance(n, bytes) else str(n) for n in found)
