"""CIFAR-10-C and CIFAR-100-C as published: one array for each corruption, five severities one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from credro.data.base import Data
from credro.data.errors import DataError
from credro.data.readers.cifar import CLASSES10, CLASSES100, MEAN, STD
from credro.data.readers.common import check_labels, not_found, pick_split, whole_numbers


def cifar10_c(root: Path, split: str | None, *, corruption: str | None = None, severity: int | None = None) -> Data:
    """``CIFAR-10-C/``: ``corruption`` by its file name ("fog"), ``severity`` 1 to 5 or None for all (as groups)."""
    return _read("cifar10-c", root, "CIFAR-10-C", split, corruption, severity, CLASSES10)


def cifar100_c(root: Path, split: str | None, *, corruption: str | None = None, severity: int | None = None) -> Data:
    """``CIFAR-100-C/``: like ``cifar10_c``, with the 100 fine classes."""
    return _read("cifar100-c", root, "CIFAR-100-C", split, corruption, severity, CLASSES100)


def _read(
    name: str,
    root: Path,
    folder: str,
    split: str | None,
    corruption: str | None,
    severity: int | None,
    classes: tuple[str, ...],
) -> Data:
    pick_split(name, split, ("test",))
    here = root / folder
    label_path = here / "labels.npy"
    if not label_path.is_file():
        raise not_found(name, root, [label_path, here / f"{corruption or 'CORRUPTION'}.npy"])
    present = sorted(path.stem for path in here.glob("*.npy") if path != label_path)
    if corruption is None:
        raise ValueError(f"corruption of {name!r} must be given, one of {', '.join(present)}")
    corruption = corruption.replace("-", "_")
    path = here / f"{corruption}.npy"
    if not path.is_file():
        raise not_found(name, root, [path, f"(there are: {', '.join(present) or 'none'})"])
    if severity not in (None, 1, 2, 3, 4, 5):
        raise ValueError(f"severity must be 1, 2, 3, 4, 5 or None for all, got {severity!r}")

    x, y = _array(path), _array(label_path)
    if x.dtype != "uint8" or x.ndim != 4 or x.shape[3] != 3:
        raise DataError(path, f"must be uint8 (N, height, width, 3), got {x.dtype} {x.shape}")
    if len(x) % 5:
        raise DataError(path, f"{len(x)} images are not five severities of equally many")
    labels = check_labels(label_path, whole_numbers(label_path, y), len(x), len(classes))
    each = len(x) // 5
    rows = slice(None) if severity is None else slice((severity - 1) * each, severity * each)
    samples = torch.from_numpy(x[rows].transpose(0, 3, 1, 2).copy())
    return Data(
        f"{name}/{corruption}" + ("" if severity is None else f"/{severity}"),
        samples,
        labels[rows],
        tuple(samples.shape[1:]),
        classes,
        groups=(torch.arange(len(x)) // each)[rows],
        group_names=tuple(f"severity {s}" for s in range(1, 6)),
        mean=MEAN,
        std=STD,
    )


def _array(path: Path) -> Any:
    import numpy as np

    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # mapped: one severity is read, not all five
    except Exception as error:  # a broken header may raise anything
        raise DataError(path, f"not a complete .npy array ({error})") from error
