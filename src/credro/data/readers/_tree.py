"""A folder and what lies below it, and which of its levels is splits, which is classes.

Where that is not clear it is refused, with what was found and what was probably meant.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from credro._names import Argument, Message, joined
from credro.data.errors import DataError
from credro.data.readers._marks import split_of
from credro.data.readers._words import count, listed
from credro.data.readers.images import SUFFIXES

EXPECTED = "expected CLASS/image.png or SPLIT/CLASS/image.png"

SYSTEM = ("thumbs.db", "desktop.ini")
"""Files that systems put beside images; hidden ones (.DS_Store) are passed over too."""

LINKS = 2
"""Links to folders are followed so many levels down, to splits and classes, but not inside of a class."""

LINES = 12


@dataclass(frozen=True)
class Folder:
    """One folder. images: those directly in it, by name; others: how many files of each ending that are no images;
    folders: those in it, by name; links: links to folders that are not followed, to one above it among them.
    """

    path: Path
    images: tuple[Path, ...]
    others: Counter[str]
    folders: tuple[Folder, ...]
    links: tuple[Path, ...]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.name

    @cached_property
    def total(self) -> int:
        """How many images are in it and below."""
        return len(self.images) + sum(folder.total for folder in self.folders)

    @cached_property
    def filled(self) -> tuple[Folder, ...]:
        """The folders in it with images in them or below."""
        return tuple(folder for folder in self.folders if folder.total)

    def walk(self) -> Iterator[Folder]:
        """It and all below."""
        yield self
        for folder in self.folders:
            yield from folder.walk()


def scan(path: Path) -> Folder:
    """The whole of a folder. Hidden files and folders are passed over; no link leads in a circle."""
    return _scan(path, ())


def _scan(path: Path, above: tuple[str, ...]) -> Folder:
    images: list[Path] = []
    others: Counter[str] = Counter()
    folders: list[Folder] = []
    links: list[Path] = []
    chain = (*above, os.path.realpath(path))
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(path, f"cannot be opened ({error.strerror})") from error
    for entry in entries:
        here = Path(entry.path)
        if entry.name.startswith(".") or entry.name == "__MACOSX":
            continue
        if entry.is_dir():
            if entry.is_symlink() and (len(above) >= LINKS or os.path.realpath(here) in chain):
                links.append(here)
            else:
                folders.append(_scan(here, chain))
        elif entry.name.lower().endswith(SUFFIXES):
            images.append(here)
        elif entry.name.lower() not in SYSTEM:
            others[here.suffix.lower() or "without ending"] += 1
    return Folder(path, tuple(images), others, tuple(folders), tuple(links))


def drawn(folder: Folder, depth: int = 3) -> str:
    """A small tree with the number of images in each folder, in lines."""
    lines = list(_lines(folder, 0, depth))
    more = [f"  ... and {len(lines) - LINES} more folders"] if len(lines) > LINES else []
    return "\n".join(lines[:LINES] + more)


def _lines(folder: Folder, level: int, depth: int) -> Iterator[str]:
    held = f"{count(len(folder.images), 'image')}" if folder.images else "no images itself"
    below = f", {count(folder.total - len(folder.images), 'image')} below" if folder.filled else ""
    yield f"{'  ' * (level + 1)}{folder.name}/: {held}{below}"
    if level + 1 < depth:
        for child in folder.filled:
            yield from _lines(child, level + 1, depth)


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
    lines: list[str] = [
        "the class folders hold folders with images, and which of them are the classes is not clear:",
        drawn(top),
    ]
    if len(shared) * 2 >= len(below):
        lines.append(f"if {listed(shared, 5)} are the classes, name a folder that holds them, such as {nested[0].path}")
    elif len(nested) == 1 and len(nested[0].filled) > 1 and not nested[0].images:
        lines.append(f"if the classes are in {nested[0].name}, you mean {nested[0].path}")
    of_these = f"if {_names(top.filled)} are the classes, "
    lines.append(Message(of_these, Argument("deep", True), " reads all images below them"))
    if direct:
        lines.append(Message(Argument("deep", False), " reads only the images directly in them"))
    return joined("\n", lines)


def _parent(path: Path) -> str:
    """A hint at the folder above, where folders beside this one hold images too."""
    here = path.resolve()
    beside = (p for p in _entries(here.parent, folders=True) if p != here)
    images = (file for folder in beside for file in _entries(folder, folders=False) if file.suffix.lower() in SUFFIXES)
    above = path.parent if path.parent.name else here.parent
    return f"; did you mean {above}?" if next(images, None) else ""


def _entries(path: Path, folders: bool) -> list[Path]:
    """Some of the folders, or of the files, in a folder; none where it cannot be opened."""
    try:
        some = [e for e in islice(os.scandir(path), 200) if (e.is_dir() if folders else e.is_file())]
    except OSError:
        return []
    return [Path(e.path) for e in some if not e.name.startswith(".")]


def endings(others: Counter[str]) -> str:
    """``12 .txt, 2 .xml``."""
    return listed([f"{n:,} {ending}" for ending, n in others.most_common()], 5)


def _names(folders: Sequence[Folder]) -> str:
    return listed([folder.name for folder in folders], 5)
