"""One reader for each layout: ``read(root, split, **options) -> Data`` for a name, the same with a path for a file."""

from __future__ import annotations

from collections.abc import Callable

from credro.data.base import Data
from credro.data.readers import _camelyon, _cifar, _embedded, _idx, _svhn, arrays, folders, tables
from credro.data.readers._published import Published

_NAMED: tuple[tuple[Published, Callable[..., Data]], ...] = (
    (_cifar.CIFAR10, _cifar.cifar10),
    (_cifar.CIFAR100, _cifar.cifar100),
    (_cifar.CIFAR10_C, _cifar.cifar10_c),
    (_cifar.CIFAR100_C, _cifar.cifar100_c),
    (_svhn.SVHN, _svhn.svhn),
    (_idx.FMNIST, _idx.fmnist),
    (_idx.MNIST, _idx.mnist),
    (_idx.NOTMNIST, _idx.notmnist),
    (folders.PLACES365, folders.places365),
    (folders.IMAGENET, folders.imagenet),
    (_camelyon.CAMELYON17, _camelyon.camelyon17),
    (_embedded.DIGITS_8X8, _embedded.digits),
    (_embedded.FASHION_MINI, _embedded.fashion_mini),
    (_embedded.FASHION_MINI_LETTERS, _embedded.fashion_mini_letters),
    (_embedded.FASHION_MINI_DIGITS, _embedded.fashion_mini_digits),
)

READERS: dict[str, Callable[..., Data]] = {published.name: read for published, read in _NAMED}
"""By name; the same names as in ``sources.SOURCES``."""

PUBLISHED: dict[str, Published] = {published.name: published for published, _ in _NAMED}
"""Where the sets of these names lie below the root, and which splits they have."""

FILES: dict[str, Callable[..., Data]] = {
    ".npz": arrays.npz,
    **dict.fromkeys((".csv", ".tsv", ".parquet", ".txt", ".data"), tables.table),
}
"""By the end of a file's name; a folder is read by ``folders.folder``."""
