"""A folder and what lies below it: images, other files, folders; and how to tell the user what was found there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from credro.data.errors import DataError
from credro.data.readers.images import SUFFIXES, count

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
