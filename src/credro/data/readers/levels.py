"""Which level of a folder is splits, which is classes; refused where it is not clear, with what was probably meant."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path

from credro.data.errors import DataError
from credro.data.readers.common import split_of
from credro.data.readers.images import SUFFIXES, count
from credro.data.readers.labels import listed
from credro.data.readers.tree import Folder, drawn

EXPECTED = "expected CLASS/image.png or SPLIT/CLASS/image.png"


def splits_of(root: Folder) -> tuple[dict[str, Folder], tuple[str, ...]]:
    """The folders of the splits, by the name of the split, and notes; none where the folders are classes.

    A folder called train is a split if folders with images are in it. With images of its own it is a class among other
    classes (buses, cars, trains), or the unlabelled part of a set that has splits.
    """
    words = {folder.path: split_of(folder.name) for folder in root.filled}
    splits = [folder for folder in root.filled if words[folder.path] and folder.filled]
    flat = [folder for folder in root.filled if words[folder.path] and not folder.filled]
    others = [folder for folder in root.filled if not words[folder.path]]
    if splits and others:
        raise DataError(
            root.path,
            f"holds splits ({_names(splits)}) and beside them other folders with images ({_names(others)}): name one "
            f"of them, such as {splits[0].path}, or move the others away\n{drawn(root, 2)}",
        )
    if flat and not others and not splits:
        raise DataError(
            root.path,
            f"{_names(flat)}: images, but no class folders in them ({EXPECTED}): without classes there is nothing to "
            f"train for\n{drawn(root, 2)}",
        )
    parts: dict[str, Folder] = {}
    for folder in splits:
        split = str(words[folder.path])
        if split in parts:
            raise DataError(
                root.path, f"has two folders for the split {split!r}, {parts[split].name} and {folder.name}: keep one"
            )
        parts[split] = folder
    if not flat:
        return parts, ()
    if splits:
        return parts, (f"{_names(flat)}: no class folders in it, so no split with labels; left out",)
    return {}, (f"{_names(flat)}: taken for a class, since its images lie directly in it",)


def check_levels(root: Folder, tops: Sequence[Folder], classes: Collection[str] | None, deep: bool | None) -> None:
    """Refuse what does not look like a folder for each class in every one of ``tops`` (the splits, or the root).

    classes: those that the caller knows; None: they are to be found, and one alone is none.
    deep: see ``folders.folder``.
    """
    found = sorted({folder.name for top in tops for folder in top.filled})
    if not found:
        raise DataError(root.path, _nothing(root, tops))
    loose, held = _loose(root, tops), sum(folder.total for top in tops for folder in top.filled)
    if loose > held:
        raise DataError(
            root.path,
            f"holds {count(loose, 'image')} itself, more than the {held:,} in its folders ({listed(found)}): are they "
            f"the classes? Every image must lie in the folder of its class ({EXPECTED})",
        )
    if len(found) == 1 and (classes is None or found[0] not in classes):
        _refuse_one(root, next(top for top in tops if top.filled), classes)
    nested = [folder for top in tops for folder in top.filled if folder.filled]
    if nested and deep is None:
        raise DataError(root.path, _unclear(next(top for top in tops if any(f.filled for f in top.filled)), nested))


def _loose(root: Folder, tops: Sequence[Folder]) -> int:
    return sum(len(folder.images) for folder in {f.path: f for f in (root, *tops)}.values())


def _nothing(root: Folder, tops: Sequence[Folder]) -> str:
    """What to say of a folder that has no folders with images."""
    others = sum((folder.others for folder in root.walk()), Counter())
    instead = f"; found {endings(others)}" if others else ""
    if loose := _loose(root, tops):
        return f"holds {count(loose, 'image')} and no class folders ({EXPECTED}){_parent(root.path)}"
    empty = [folder for top in tops for folder in top.folders]
    if not empty:
        return f"holds no class folders ({EXPECTED}){instead}"
    looked = f"(looked for {' '.join(SUFFIXES)}{instead})"
    if len(empty) == 1:
        return f"its only folder, {empty[0].name!r}, holds no images {looked}"
    return f"its folders, {_names(empty)}, hold no images {looked}"


def _refuse_one(root: Folder, top: Folder, classes: Collection[str] | None) -> None:
    only = below = top.filled[0]
    while len(below.filled) == 1 and not below.images:
        below = below.filled[0]
    if len(below.filled) > 1:
        raise DataError(
            root.path,
            f"holds one folder only, {only.path.relative_to(root.path).as_posix()!r}: did you mean {below.path}?\n"
            f"{drawn(below, 2)}",
        )
    if classes is None:
        raise DataError(
            root.path,
            f"holds one class only, {only.name!r} ({count(only.total, 'image')}): two at least are needed"
            f"{_parent(root.path)}",
        )


def _unclear(top: Folder, nested: Sequence[Folder]) -> str:
    below = Counter(name for folder in nested for name in {child.name for child in folder.filled})
    shared = sorted(name for name, n in below.items() if n > 1)
    direct = any(folder.images for folder in top.filled)
    lines = ["the class folders hold folders with images, and which of them are the classes is not clear:", drawn(top)]
    if len(shared) * 2 >= len(below):
        lines.append(f"if {listed(shared, 5)} are the classes, name a folder that holds them, such as {nested[0].path}")
    elif len(nested) == 1 and len(nested[0].filled) > 1 and not nested[0].images:
        lines.append(f"if the classes are in {nested[0].name}, you mean {nested[0].path}")
    lines.append(f"if {_names(top.filled)} are the classes, deep=True reads all images below them")
    if direct:
        lines.append("deep=False reads only the images directly in them")
    return "\n".join(lines)


def _parent(path: Path) -> str:
    """A hint at the folder above, where folders beside this one hold images too."""
    here = path.resolve()
    beside = (p for p in _folders(here.parent) if p != here and any(f.suffix.lower() in SUFFIXES for f in _files(p)))
    above = path.parent if path.parent.name else here.parent
    return f"; did you mean {above}?" if next(beside, None) else ""


def _folders(path: Path) -> list[Path]:
    try:
        return [Path(e.path) for e in islice(os.scandir(path), 200) if e.is_dir() and not e.name.startswith(".")]
    except OSError:
        return []


def _files(path: Path) -> list[Path]:
    try:
        return [Path(e.path) for e in islice(os.scandir(path), 200) if e.is_file()]
    except OSError:
        return []


def endings(others: Counter[str]) -> str:
    """``12 .txt, 2 .xml``."""
    return listed([f"{n:,} {ending}" for ending, n in others.most_common()], 5)


def _names(folders: Sequence[Folder]) -> str:
    return listed([folder.name for folder in folders], 5)
