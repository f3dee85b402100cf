"""CIFAR-10 and CIFAR-100 as published (pickles), and their corrupted test images, CIFAR-10-C and -100-C (arrays)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.base import Data
from credro.data.errors import DataError
from credro.data.readers._published import Published, check_labels, not_found, whole_numbers
from credro.data.readers._unpickle import read_pickle

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


CIFAR10 = Published(
    "cifar10",
    {
        "train": tuple((f"cifar-10-batches-py/data_batch_{i}",) for i in range(1, 6)),
        "test": (("cifar-10-batches-py/test_batch",),),
    },
)
CIFAR100 = Published("cifar100", {split: ((f"cifar-100-python/{split}",),) for split in ("train", "test")})
CIFAR10_C = Published("cifar10-c", {"test": (("CIFAR-10-C/labels.npy",),)})
CIFAR100_C = Published("cifar100-c", {"test": (("CIFAR-100-C/labels.npy",),)})


def cifar10(root: Path, split: str | None) -> Data:
    """``cifar-10-batches-py/``: 50,000 training and 10,000 test images (3, 32, 32)."""
    return _read(CIFAR10, root, split, "labels", "batches.meta", "label_names", CLASSES10)


def cifar100(root: Path, split: str | None, *, coarse: bool = False) -> Data:
    """``cifar-100-python/``: 100 fine classes, or with ``coarse`` the 20 groups of them."""
    kind = "coarse" if coarse else "fine"
    names = tuple(str(i) for i in range(20)) if coarse else CLASSES100
    return _read(CIFAR100, root, split, f"{kind}_labels", "meta", f"{kind}_label_names", names)


def cifar10_c(root: Path, split: str | None, *, corruption: str | None = None, severity: int | None = None) -> Data:
    """``CIFAR-10-C/``: ``corruption`` by its file name ("fog"), ``severity`` 1 to 5 or None for all (as groups)."""
    return _read_corrupted(CIFAR10_C, root, split, corruption, severity, CLASSES10)


def cifar100_c(root: Path, split: str | None, *, corruption: str | None = None, severity: int | None = None) -> Data:
    """``CIFAR-100-C/``: like ``cifar10_c``, with the 100 fine classes."""
    return _read_corrupted(CIFAR100_C, root, split, corruption, severity, CLASSES100)


def _read(
    published: Published, root: Path, split: str | None, key: str, meta: str, names_key: str, names: tuple[str, ...]
) -> Data:
    """Batches, one after the other; the class names from the meta file where there is one."""
    paths = published.find(root, published.split(split))
    if (about := paths[0].parent / meta).is_file():
        names = _names(about, names_key, len(names))
    parts = [_batch(path, key, len(names)) for path in paths]
    samples, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return Data(published.name, samples, labels, tuple(samples.shape[1:]), names, mean=MEAN, std=STD)


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


def _read_corrupted(
    published: Published,
    root: Path,
    split: str | None,
    corruption: str | None,
    severity: int | None,
    classes: tuple[str, ...],
) -> Data:
    """One array for each corruption, five severities one after the other."""
    name = published.name
    (label_path,) = published.find(root, published.split(split))
    present = sorted(path.stem for path in label_path.parent.glob("*.npy") if path != label_path)
    if corruption is None:
        raise ArgumentError("corruption", f"corruption of {name!r} must be given, one of {', '.join(present)}")
    corruption = corruption.replace("-", "_")
    path = label_path.with_name(f"{corruption}.npy")
    if not path.is_file():
        raise not_found(name, root, [path], [str(path), f"(there are: {', '.join(present) or 'none'})"])
    if severity not in (None, 1, 2, 3, 4, 5):
        raise ArgumentError("severity", f"severity must be 1, 2, 3, 4, 5 or None for all, got {severity!r}")

    x, y = _array(path), _array(label_path)
    if x.dtype != "uint8" or x.ndim != 4 or x.shape[3] != 3:
        raise DataError(path, f"must be uint8 (N, height, width, 3), got {x.dtype} {x.shape}")
    if len(x) % 5:
        raise DataError(path, f"{len(x)} images are not five severities of equally many")
    labels = check_labels(label_path, whole_numbers(label_path, y), len(x), len(classes))
    each = len(x) // 5
    rows = slice(None) if severity is None else slice((severity - 1) * each, severity * each)
    samples = torch.from_numpy(x[rows].transpose(0, 3, 1, 2).copy())
    groups, names = (torch.arange(len(x)) // each)[rows], tuple(f"severity {s}" for s in range(1, 6))
    title = f"{name}/{corruption}" + ("" if severity is None else f"/{severity}")
    return Data(title, samples, labels[rows], tuple(samples.shape[1:]), classes, groups, names, MEAN, STD)


def _array(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # mapped: one severity is read, not all five
    except Exception as error:  # a broken header may raise anything
        raise DataError(path, f"not a complete .npy array ({error})") from error
