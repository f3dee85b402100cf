"""Image folders: one folder for each class, with or without a folder for each split above them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from credro.data.base import Data
from credro.data.errors import DataError, UnknownSplit
from credro.data.readers.common import SPLITS, not_found, pick_split
from credro.data.readers.images import SUFFIXES, image_data


def folder(
    path: Path,
    split: str | None,
    *,
    classes: Sequence[str] | None = None,
    size: Sequence[int] | None = None,
    channels: int | None = None,
    lazy: bool | None = None,
    name: str | None = None,
) -> Data:
    """``path/CLASS/*.png`` or ``path/SPLIT/CLASS/*.png`` (jpg, bmp, gif, tif, webp, ppm), at any depth below CLASS.

    split: None takes train where there are splits, everything where there are none; "test" takes val where no test is.
    classes: the names in the order of their numbers; None: the folders of all splits together, sorted, so that
    every split numbers them alike. size, channels, lazy: see ``image_data``.
    """
    parts = split_folders(path)
    here = path
    if parts:
        if split == "test" and "test" not in parts:
            split = "val"
        here = parts[pick_split(str(path), split, [s for s in SPLITS if s in parts])]
    elif split not in (None, "all"):
        raise UnknownSplit(path, split, (), f"has no folder {split!r}, only classes; leave split out to read them all")
    found = sorted({sub.name for top in (parts.values() if parts else [path]) for sub in _subfolders(top)})
    if not found:
        raise DataError(path, "holds no class folders (expected CLASS/image.png or SPLIT/CLASS/image.png)")
    names = tuple(found if classes is None else classes)
    if unknown := set(found) - set(names):
        raise DataError(path, f"has class folders that are not in classes: {', '.join(sorted(unknown)[:5])}")
    files: list[Path] = []
    labels: list[int] = []
    for label, sub in enumerate(names):
        if (here / sub).is_dir():
            images = _images(here / sub)
            if not images:
                raise DataError(here / sub, f"holds no images (looked for {' '.join(SUFFIXES)})")
            files += images
            labels += [label] * len(images)
    if not files:
        raise DataError(here, "holds no images")
    return image_data(
        name or path.resolve().name, files, torch.tensor(labels), names, size=size, channels=channels, lazy=lazy
    )


def places365(
    root: Path, split: str | None, *, size: Sequence[int] | None = None, channels: int = 3, lazy: bool | None = None
) -> Data:
    """``places365_small/{train,val}/CLASS/*`` (or ``places365_standard``, ``places365``), in colour."""
    return _named(
        "places365", root, ("places365_small", "places365_standard", "places365"), split, size, channels, lazy
    )


def imagenet(
    root: Path, split: str | None, *, size: Sequence[int] | None = None, channels: int = 3, lazy: bool | None = None
) -> Data:
    """``imagenet/{train,val}/WNID/*`` (or ``ILSVRC2012``), in colour; classes are the WordNet numbers."""
    return _named("imagenet", root, ("imagenet", "ImageNet", "ILSVRC2012"), split, size, channels, lazy)


def _named(
    name: str,
    root: Path,
    candidates: Sequence[str],
    split: str | None,
    size: Sequence[int] | None,
    channels: int,
    lazy: bool | None,
) -> Data:
    split = pick_split(name, split, ("train", "val", "test"))
    wanted = ("val", "test") if split == "test" else (split,)  # the labels of the real test images are not public
    looked_for = [root / candidate / part for candidate in candidates for part in wanted]
    for path in looked_for:
        if path.is_dir():
            return folder(path.parent, path.name, size=size, channels=channels, lazy=lazy, name=name)
    raise not_found(name, root, [path / "CLASS" for path in looked_for])


def split_folders(path: Path) -> dict[str, Path]:
    """The folders of a set's splits, by the name of the split; empty where it has none."""
    present = {sub.name.lower(): sub for sub in _subfolders(path)}
    return {
        split: next(present[name] for name in names if name in present)
        for split, names in SPLITS.items()
        if any(name in present for name in names)
    }


def _subfolders(path: Path) -> list[Path]:
    return [Path(entry.path) for entry in os.scandir(path) if entry.is_dir() and not entry.name.startswith(".")]


def _images(path: Path) -> list[Path]:
    """All images below ``path``, sorted, so that the order is the same on every machine."""
    return sorted(
        Path(top) / file
        for top, _, files in os.walk(path)
        for file in files
        if file.lower().endswith(SUFFIXES) and not file.startswith(".")
    )
