"""Other samples for a trained run, read as its own were: the same shape, columns, categories and classes.

The command line and Python read through here, so a photo has one uncertainty, however it is handed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from credro._names import ArgumentError, did_you_mean
from credro.data.adapt import as_data_of
from credro.data.base import Data
from credro.data.conform import conform
from credro.data.corruptions import corrupt_data
from credro.data.errors import DataError, DataNotFound, UnknownSplit
from credro.data.load import load, options_of
from credro.data.readers import FILES, READERS
from credro.data.readers.folders import split_folders
from credro.data.readers.images import SUFFIXES, pil_data, read_images
from credro.data.readers.like import HELD_OUT, npz_like, table_like
from credro.data.readers.texts import texts_like
from credro.data.spec import Column, DataSpec
from credro.data.splits import limit

TABLES = tuple(suffix for suffix in FILES if suffix != ".npz")


@dataclass(frozen=True)
class Wanted:
    """What a run takes: samples of ``shape``, labels of ``classes``, read as ``spec`` says; None: nobody noted how."""

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    spec: DataSpec
    texts: bool = False  # samples are texts

    @property
    def takes_images(self) -> bool:
        """Whether an image file can be a sample."""
        return len(self.shape) == 3 and self.shape[0] in (1, 3)


def spec_of_facts(facts: dict[str, Any]) -> DataSpec:
    """How the data of a run of version 0.1 was read, as far as it noted it."""
    found: dict[str, list[str] | None] = {}
    for feature in facts.get("columns") or []:
        name, sign, value = feature.partition("=")
        if sign:
            found.setdefault(name, [])
            values = found[name]
            if values is not None:
                values.append(value)
        else:
            found[name] = None
    columns = tuple(Column(n, None if v is None else tuple(v), other=False) for n, v in found.items())
    return DataSpec(facts.get("data") or "", facts.get("split"), facts.get("label"), columns)


def read_labelled(
    wanted: Wanted,
    source: str | Path | None = None,
    split: str | None = None,
    root: Path | None = None,
    *,
    label: str | None = None,
    first: int | None = None,
    on_error: str = "stop",
) -> Data:
    """Labelled samples to measure a run on; without a ``source``, of the one it was trained on.

    split: None takes test, else val, else the whole of what has no splits. label: the column of another table.
    Samples of classes that the run does not know have the label -1. first: only so many, by a seeded shuffle.
    """
    given = source or wanted.spec.source
    if not given:
        raise ArgumentError("source", "the run does not say what it was trained on: name the data")
    name = str(given)
    if wanted.texts:
        data = texts_like(
            _text_file(name, root), wanted.spec, classes=wanted.classes, split=split, label=label, labelled=True
        )
    elif name in READERS:
        data = some_split(name, split, root, _size(name, wanted))
    else:
        path, options = _existing(Path(given), root), wanted.spec.options
        if path.is_dir():
            folder = {"size": wanted.shape[1:], "channels": wanted.shape[0], "on_error": on_error}
            known = {"classes": wanted.classes, "unknown": "ood", "deep": options.get("deep")}
            data = some_split(path, split, root, {**folder, **known})
        else:
            like = table_like if path.suffix.lower() in TABLES else npz_like
            data = like(path, wanted.spec, classes=wanted.classes, split=split, label=label, labelled=True)
    return conform_to(some(as_data_of(data, wanted.classes), first), wanted.shape)


def read_samples(
    wanted: Wanted,
    inputs: Sequence[Any],
    split: str | None = None,
    root: Path | None = None,
    *,
    label: str | None = None,
    on_error: str = "stop",
) -> list[Data]:
    """Samples to predict: images (files, folders, Pillow's) together, every array, table and named set by itself.

    Labels, where there are any, are not read. on_error: "skip" leaves unreadable images out, in ``Data.bad``.
    """
    images: list[Path] = []
    held: list[Any] = []  # images of Pillow
    sets: list[Data] = []
    for given in inputs:
        if wanted.texts and isinstance(given, str | Path):
            known = {"classes": wanted.classes, "split": split, "label": label}
            sets.append(texts_like(_text_file(given, root), wanted.spec, labelled=False, **known))  # type: ignore[arg-type]
            continue
        if not isinstance(given, str | Path):
            held.append(given)
            continue
        if str(given) in READERS:
            sets.append(some_split(str(given), split, root, _size(str(given), wanted)))
            continue
        path = _existing(Path(given), root)
        if path.is_dir():
            images += _images_below(_part(path, split))
        elif path.suffix.lower() in SUFFIXES:
            images.append(path)
        elif path.suffix.lower() in TABLES:
            sets.append(table_like(path, wanted.spec, classes=wanted.classes, split=split, label=label, labelled=False))
        elif path.suffix.lower() == ".npz":
            sets.append(npz_like(path, wanted.spec, classes=wanted.classes, split=split, labelled=False))
        else:
            allowed = "a folder, an image, .npz, .csv, .tsv, .parquet or the name of a set"
            raise ArgumentError("inputs", f"{path} must be {allowed}")
    if (images or held) and not wanted.takes_images:
        given = images[0] if images else type(held[0]).__name__
        takes = "texts" if wanted.texts else f"samples of shape {wanted.shape}"
        raise ArgumentError("inputs", f"{given} is an image, but the run takes {takes}")
    if held:
        sets.insert(0, pil_data(held, wanted.shape))
    if images:
        sets.insert(0, read_images(images, wanted.shape, on_error)[0])
    return [conform_to(data, wanted.shape) for data in sets]


def read_ood(
    wanted: Wanted,
    name: str,
    known: Data,
    root: Path | None = None,
    *,
    first: int | None = None,
    on_error: str = "stop",
) -> tuple[str, Data]:
    """An OOD set and what to call it: a set, any file or folder, or ``corrupt:NAME:SEVERITY`` of the ID samples.

    ``TITLE=DATA`` names it, where no file is called so.
    """
    title, sign, rest = name.partition("=")
    if sign and title and not Path(name).exists() and name not in READERS:
        return title, read_ood(wanted, rest, known, root, first=first, on_error=on_error)[1]
    if name.startswith("corrupt:"):
        if wanted.texts:
            raise ArgumentError("ood", f"ood {name!r} is for images, and the run takes texts")
        kind, _, severity = name.removeprefix("corrupt:").partition(":")
        if not severity.isdigit():
            raise ArgumentError("ood", f"ood corrupt:NAME:SEVERITY needs a severity from 1 to 5, got {name!r}")
        return f"{kind}:{severity}", corrupt_data(known, kind, int(severity))
    if name in READERS and not wanted.texts:
        return name, conform_to(some(some_split(name, None, root, _size(name, wanted)), first), wanted.shape)
    parts = split_folders(Path(name)) if Path(name).is_dir() else {}
    place = next((str(parts[s]) for s in HELD_OUT if s in parts), name)
    return Path(name).stem, some(read_samples(wanted, [place], None, root, on_error=on_error)[0], first)


def read_ood_sets(
    wanted: Wanted, names: Sequence[str], known: Data, root: Path | None, *, first: int | None, on_error: str = "stop"
) -> dict[str, Data]:
    """Every OOD set that was named, by a short title where that says which."""
    found: dict[str, Data] = {}
    for given in dict.fromkeys(names):
        title, data = read_ood(wanted, given, known, root, first=first, on_error=on_error)
        found[given if title in found else title] = data
    return found


def some_split(source: str | Path, split: str | None, root: Path | None, options: dict[str, Any]) -> Data:
    """The split asked for, else test, else val, else all of what has no splits."""
    for choice in HELD_OUT if split is None else ():
        try:
            return load(source, split=choice, root=root, **options)
        except UnknownSplit:
            continue
    return load(source, split=split, root=root, **options)


def conform_to(data: Data, shape: tuple[int, ...]) -> Data:
    """``data`` in the shape an ensemble takes: images are resized and coloured, anything else must fit already."""
    if data.shape == shape:
        return data
    if data.texts is not None or not shape:
        held = "texts" if data.texts is not None else f"samples of shape {data.shape}"
        takes = f"samples of shape {shape}" if shape else "texts"
        raise ArgumentError("data", f"{data.name!r} holds {held}, and the ensemble takes {takes}")
    if len(data.shape) != 3 or len(shape) != 3:
        raise ArgumentError("data", f"{data.name!r} has samples of shape {data.shape}, the ensemble takes {shape}")
    return conform(data, shape)


def some(data: Data, first: int | None) -> Data:
    """The first so many of a seeded shuffle; None: all."""
    return data if first is None or first >= len(data) else data.subset(limit(len(data), first, 0))


def _size(name: str, wanted: Wanted) -> dict[str, Any]:
    """The option with which a named set of image files is read in the run's size."""
    return {"size": wanted.shape[1:]} if wanted.takes_images and "size" in options_of(name) else {}


def _existing(path: Path, root: Path | None) -> Path:
    places = [path, *([] if path.is_absolute() or root is None else [root / path])]
    for place in places:
        if place.exists():
            return place
    nothing = f"{path} was not found: it is no file, no folder and no name of a set"
    raise DataNotFound(path, places, nothing + did_you_mean(path, READERS))


def _text_file(given: str | Path, root: Path | None) -> Path:
    """A file that can hold texts."""
    try:
        path = _existing(Path(given), root)
    except OSError as error:
        if isinstance(error, DataNotFound) and len(str(given).split()) < 3:
            raise
        line = "texts are read from files: a table, or a .txt file with one text a line"
        raise ArgumentError("inputs", f"{str(given)!r} is no file: {line}") from error
    if path.suffix.lower() not in TABLES:
        raise ArgumentError(
            "inputs", f"{path} must be a table ({', '.join(TABLES)}) or a .txt file: the run takes texts"
        )
    return path


def _part(path: Path, split: str | None) -> Path:
    if split is None:
        return path
    parts = split_folders(path)
    if split not in parts:
        raise UnknownSplit(str(path), split, tuple(parts))
    return parts[split]


def _images_below(path: Path) -> list[Path]:
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
    if not found:
        raise DataError(path, f"holds no images (looked for {' '.join(SUFFIXES)})")
    return found
