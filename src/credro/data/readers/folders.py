"""Image folders: one folder for each class, with or without a folder for each split above them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from credro._names import Argument, Message, one_of
from credro.data.base import Data
from credro.data.classes import UNKNOWN, Classes, class_names, list_classes
from credro.data.errors import BadFiles, DataError, UnknownSplit
from credro.data.readers._marks import SPLITS, choose, split_of
from credro.data.readers._published import Published
from credro.data.readers._tree import Folder, check_levels, endings, scan, splits_of
from credro.data.readers._words import count, listed
from credro.data.readers.images import image_data
from credro.data.spec import DataSpec, given

ON_UNKNOWN = ("error", "ood")


def _published(name: str, *folders: str) -> Published:
    """Sets of folders. The labels of the real test images are not public: val is taken for them."""
    parts = {"train": ("train",), "val": ("val",), "test": ("val", "test")}
    return Published(
        name, {s: (tuple(f"{f}/{w}" for f in folders for w in words),) for s, words in parts.items()}, "CLASS"
    )


PLACES365 = _published("places365", "places365_small", "places365_standard", "places365")
IMAGENET = _published("imagenet", "imagenet", "ImageNet", "ILSVRC2012")


def folder(
    path: Path,
    split: str | None,
    *,
    classes: Classes | None = None,
    unknown: str = "error",
    deep: bool | None = None,
    size: int | Sequence[int] | None = None,
    channels: int | None = None,
    lazy: bool | None = None,
    on_error: str = "stop",
    check: bool = True,
    name: str | None = None,
) -> Data:
    """``path/CLASS/*.png`` or ``path/SPLIT/CLASS/*.png`` (jpg, bmp, gif, tif, webp, ppm).

    split: None takes train where there are splits, everything where there are none; "all" everything; "test" takes val
    where no test is, with a note. ``notes`` say what was taken, converted and left out.
    classes: the names in the order of their numbers, of which some may be missing here; None: the folders of all splits
    together, sorted, so that every split numbers them alike. unknown: what to do with folders that are not in
    ``classes``: "error", or "ood" to give their images the label -1.
    deep: whether images in folders below CLASS belong to the class (CLASS/PATIENT/*.png); None: where there are any,
    refuse and say what was found, since the wrong folder may have been named; False: leave them out.
    size, channels, lazy, on_error, check: see ``image_data``. Where more than half of the files cannot be read, the
    folder is refused.
    """
    one_of("unknown", unknown, ON_UNKNOWN)
    known = None if classes is None else class_names(classes)
    root = scan(path)
    parts, split_notes = splits_of(root)
    tops = parts or {"all": root}
    check_levels(root, list(tops.values()), known, deep)
    found = {s: _images(top, deep) for s, top in tops.items()}
    taken, notes = _choose(path, {s: sum(map(len, found[s].values())) for s in parts}, split)
    chosen = list(tops) if taken in (None, "all") else [taken]
    here = {
        n: sorted(p for s in chosen for p in found[s].get(n, ())) for n in sorted({n for s in chosen for n in found[s]})
    }
    if known is None and len(here) == 1 and taken in (None, "all", "train"):
        raise DataError(tops[chosen[0]].path, f"holds one class only, {next(iter(here))!r}: two at least are needed")
    names = tuple(sorted({n for by_class in found.values() for n in by_class}) if known is None else known)
    strange = [n for n in here if n not in names]
    if strange and unknown == "error":
        outside = f"has class folders that are not in classes: {listed(strange, 5)}; "
        ood = Argument("unknown", "ood"), " reads their images as of no class (label -1)"
        raise DataError(path, Message(outside, *ood))
    numbered = [*enumerate(names), *((UNKNOWN, n) for n in strange)]
    files = [file for _, n in numbered for file in here.get(n, ())]
    if not files:
        raise DataError(tops[chosen[0]].path, "holds no images")
    labels = torch.tensor([label for label, n in numbered for _ in here.get(n, ())])
    how: dict[str, Any] = {"channels": channels, "lazy": lazy, "on_error": on_error, "check": check}
    data = image_data(name or path.resolve().name, files, labels, names, size=size, **how)
    if len(data.bad) * 2 > len(files):
        raise BadFiles(path, data.bad, len(files), "more than half of them: is this the right folder?")
    kept = given(classes=classes, name=name, **how) | {"size": list(data.shape[1:]), "channels": data.shape[0]}
    kept |= given(deep=deep, unknown=unknown)
    usual = {"on_error": "stop", "check": True, "unknown": "error"}
    options = {key: value for key, value in kept.items() if usual.get(key) != value}
    class_notes = [] if known is not None else _class_notes(names, {s: set(found[s]) for s in parts})
    said = (*notes, *split_notes, *class_notes, *_strange_notes(strange, here, names), *_lost_notes(data, here))
    rest = _rest_notes(root, [tops[s] for s in chosen], deep)
    return replace(data, spec=DataSpec(str(path), taken, options=options), notes=(*said, *data.notes, *rest))


def places365(
    root: Path, split: str | None, *, size: Sequence[int] | None = None, channels: int = 3, lazy: bool | None = None
) -> Data:
    """``places365_small/{train,val}/CLASS/*`` (or ``places365_standard``, ``places365``), in colour."""
    return _named(PLACES365, root, split, size=size, channels=channels, lazy=lazy)


def imagenet(
    root: Path, split: str | None, *, size: Sequence[int] | None = None, channels: int = 3, lazy: bool | None = None
) -> Data:
    """``imagenet/{train,val}/WNID/*`` (or ``ILSVRC2012``), in colour; classes are the WordNet numbers."""
    return _named(IMAGENET, root, split, size=size, channels=channels, lazy=lazy)


def _named(published: Published, root: Path, split: str | None, **options: Any) -> Data:
    (path,) = published.find(root, published.split(split))
    data = folder(path.parent, path.name, check=False, name=published.name, **options)
    assert data.spec is not None
    own = {key: value for key, value in data.spec.options.items() if key in options}
    return replace(data, spec=replace(data.spec, options=own))


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


def _images(top: Folder, deep: bool | None) -> dict[str, list[Path]]:
    """The images of every class folder that has any, by class."""
    found = {}
    for folder in top.filled:
        images = [image for below in (folder.walk() if deep else [folder]) for image in below.images]
        if images:
            found[folder.name] = images
    return found


def _choose(path: Path, counts: dict[str, int], split: str | None) -> tuple[str | None, list[str]]:
    """The split to take (None: there are none), and notes on it. counts: images by split."""
    if not counts:
        if split not in (None, "all"):
            why = f"has no folder {split!r}, only classes; leave split out to read them all"
            raise UnknownSplit(path, split, (), why)
        return None, []
    lacking = split is not None and split_of(split) == "test" and "test" not in counts and "val" in counts
    taken, notes = choose(path if path.name else path.resolve(), counts, "val" if lacking else split)
    return taken, [*notes, *(["there is no split 'test': 'val' was taken for it"] if lacking else [])]


def _class_notes(names: Sequence[str], splits: dict[str, set[str]]) -> list[str]:
    """How many classes there are, which of them are in some splits only, which names may mean the same class."""
    notes = [list_classes(names)]
    partly = [n for n in names if splits and not all(n in held for held in splits.values())]
    if partly:
        where = [f"{n} ({', '.join(s for s in SPLITS if n in splits.get(s, ()))})" for n in partly]
        notes.append(f"classes in some splits only: {listed(where, 5)}")
    alike = Counter(_plain(n) for n in names)
    for plain in sorted(plain for plain, times in alike.items() if times > 1):
        same = [n for n in names if _plain(n) == plain]
        notes.append(f"{' and '.join(map(repr, same))} count as different classes: are they one?")
    return notes


def _strange_notes(strange: Sequence[str], here: dict[str, list[Path]], names: Sequence[str]) -> list[str]:
    if not strange:
        return []
    kinds, images = count(len(strange), "class"), sum(len(here[n]) for n in strange)
    notes = [f"{images:,} samples of {kinds} that the run does not know: {listed(strange, 5)}"]
    known = {_plain(n): n for n in names}
    return notes + [f"{n!r} is unknown, but {known[_plain(n)]!r} is known" for n in strange if _plain(n) in known]


def _lost_notes(data: Data, here: dict[str, list[Path]]) -> list[str]:
    """Classes of which no image could be read."""
    left = set(data.labels.tolist()) if data.bad else set(range(len(data.classes)))
    lost = [n for label, n in enumerate(data.classes) if n in here and label not in left]
    return [f"no image could be read of the classes {listed(lost, 5)}"] if lost else []


def _rest_notes(root: Folder, chosen: Sequence[Folder], deep: bool | None) -> list[str]:
    """What lies there and was not read. chosen: the folders of the splits that were, or the root itself."""
    notes = []
    if loose := sum(len(images) for images in {f.path: f.images for f in (root, *chosen)}.values()):
        notes.append(f"{count(loose, 'image')} beside the class folders left out")
    read = [folder for top in chosen for folder in top.filled]
    below = sum(folder.total - len(folder.images) for folder in read)
    if below and deep:
        notes.append(f"{count(below, 'image')} in folders below the classes read too")
    elif below:
        notes.append(f"{count(below, 'image')} in folders below the classes left out")
    empty = [f.path.relative_to(root.path).as_posix() for top in chosen for f in top.folders if not f.total]
    if empty:
        notes.append(f"folders without images left out: {listed(empty, 5)}")
    others = sum((f.others for top in chosen for folder in top.filled for f in folder.walk()), Counter[str]())
    if others:
        n = sum(others.values())
        are = "that is no image" if n == 1 else "that are no images"
        notes.append(f"{count(n, 'file')} {are} left out: {endings(others)}")
    if links := [link for folder in root.walk() for link in folder.links]:
        notes.append(f"links to folders not followed: {listed([link.name for link in links], 5)}")
    return notes


def _plain(name: str) -> str:
    """A name without case and spaces."""
    return "".join(name.split()).casefold()
