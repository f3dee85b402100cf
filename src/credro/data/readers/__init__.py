"""One reader for each layout: ``read(root, split, **options) -> Data`` for a name, the same with a path for a file."""

from __future__ import annotations

from collections.abc import Callable

from credro.data.base import Data
from credro.data.readers import arrays, camelyon, cifar, corrupted, embedded, folders, idx, svhn, tables

READERS: dict[str, Callable[..., Data]] = {
    "cifar10": cifar.cifar10,
    "cifar100": cifar.cifar100,
    "cifar10-c": corrupted.cifar10_c,
    "cifar100-c": corrupted.cifar100_c,
    "svhn": svhn.svhn,
    "fmnist": idx.fmnist,
    "mnist": idx.mnist,
    "notmnist": idx.notmnist,
    "places365": folders.places365,
    "imagenet": folders.imagenet,
    "camelyon17": camelyon.camelyon17,
    "digits": embedded.digits,
    "fashion-mini": embedded.fashion_mini,
    "fashion-mini-letters": embedded.fashion_mini_letters,
    "fashion-mini-digits": embedded.fashion_mini_digits,
}
"""By name; the same names as in ``sources.SOURCES``."""

FILES: dict[str, Callable[..., Data]] = {
    ".npz": arrays.npz,
    ".csv": tables.table,
    ".tsv": tables.table,
    ".parquet": tables.table,
    ".txt": tables.table,
    ".data": tables.table,
}
"""By the end of a file's name; a folder is read by ``folders.folder``."""
