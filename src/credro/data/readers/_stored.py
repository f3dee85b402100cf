"""Which arrays of a ``.npz`` hold samples, labels and groups: by plain names, or by a name for each split."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credro._names import Argument, Message, Open
from credro.data.base import Array
from credro.data.errors import DataError
from credro.data.readers._marks import SPLITS, split_of

WORDS = {
    "x": ("x", "image", "images", "img", "imgs", "data", "features", "inputs", "samples"),
    "y": ("y", "label", "labels", "target", "targets"),
    "group": ("group", "groups"),
}
"""What arrays are called that hold samples, labels and groups: alone, or with a word for a split before or after."""

GLUED = re.compile(r"(x|y)(train|valid|val|dev|test)|(train|valid|val|dev|test)(x|y)")
"""The same without anything between, as in xtrain."""


@dataclass(frozen=True)
class Stored:
    """The names of the arrays by split; the one under "" is for all samples."""

    x: dict[str, str]
    y: dict[str, str] = field(default_factory=dict)
    group: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def by_split(self) -> bool:
        """Whether each split has arrays of its own."""
        return "" not in self.x


def find(
    path: Path, names: Sequence[str], x: str | None, y: str | None, group: str | None, *, labelled: bool = True
) -> Stored:
    """Which arrays are which; an error where that cannot be told. x, y, group: names that the user gave."""
    for option, key in (("x", x), ("y", y if labelled else None), ("group", group)):
        if key is not None and key not in names:
            raise _lacks(path, option, key, names)
    roles = _roles(path, names)
    samples = {s: n for s, n in roles["x"].items() if s and (s in roles["y"] or not labelled)}
    plain = x or ("x" if "x" in names else roles["x"].get(""))
    if x is None and y is None and samples:
        if plain is not None and (roles["y"].get("") or not labelled):
            both = f"holds {plain!r} and also {', '.join(map(repr, samples.values()))}: which are meant? "
            raise DataError(path, Message(both, Argument("x", plain), " takes one array"))
        order = [s for s in SPLITS if s in samples]
        only = [f"{n!r} has no labels beside it and is left out" for s, n in roles["x"].items() if s not in samples]
        groups = {s: roles["group"][s] for s in order if s in roles["group"]}
        labels = {s: roles["y"][s] for s in order if s in roles["y"]}
        return Stored({s: samples[s] for s in order}, labels, groups if len(groups) == len(order) else {}, tuple(only))
    if plain is None:
        raise _lacks(path, "x", "x", names)
    target = y or ("y" if "y" in names else roles["y"].get(""))
    if target is None and labelled:
        raise _lacks(path, "y", "y", names)
    grouped = group or ("group" if "group" in names else None)
    renamed = [f"samples are the array {plain!r}"] if x is None and plain != "x" else []
    return Stored(
        {"": plain}, {"": target} if target and labelled else {}, {"": grouped} if grouped else {}, tuple(renamed)
    )


def _roles(path: Path, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """For each role the array of each split ("": of none)."""
    roles: dict[str, dict[str, str]] = {role: {} for role in WORDS}
    for name in names:
        role, split = _role(name)
        if role is None:
            continue
        if split in roles[role] and role != "group" and {name, roles[role][split]}.isdisjoint({"x", "y"}):
            both = f"{roles[role][split]!r} and {name!r}"
            raise DataError(
                path, Message(f"holds {both}, which may both be {role}: name one with ", Argument(role, name))
            )
        if roles[role].get(split) not in ("x", "y"):
            roles[role][split] = name
    return roles


def _role(name: str) -> tuple[str | None, str]:
    """What an array of this name holds, and of which split: ``x_train`` is ("x", "train"), ``labels`` ("y", "")."""
    word = name.lower()
    if glued := GLUED.fullmatch(word):
        before, first, second, after = glued.groups()
        return before or after, split_of(first or second) or ""
    parts = [part for part in re.split(r"[_\-./ ]+", word) if part]
    if len(parts) not in (1, 2):
        return None, ""
    splits = [split for part in parts if (split := split_of(part)) is not None]
    rest = [part for part in parts if split_of(part) is None]
    if len(rest) != 1 or len(splits) != len(parts) - 1:
        return None, ""
    role = next((role for role, words in WORDS.items() if rest[0] in words), None)
    return role, splits[0] if splits else ""


def _lacks(path: Path, option: str, key: str, names: Sequence[str]) -> DataError:
    array = Argument(option, Open())
    return DataError(path, Message(f"has no array {key!r} (", array, f"); it has {', '.join(names)}"))


def array_names(path: Path) -> list[str]:
    """The names of the arrays of a ``.npz``."""
    with _opened(path) as file:
        return list(file.files)


def read_arrays(path: Path, names: Collection[str] | None = None) -> dict[str, Array]:
    """The arrays of a ``.npz`` by name, some or all; an error that names the file where it is not a complete one."""
    with _opened(path) as file:
        try:
            return {key: file[key] for key in file.files if names is None or key in names}
        except Exception as error:  # a broken file may raise anything; a stored pickle is refused as a ValueError
            raise _broken(path, error) from error


def _opened(path: Path) -> Any:
    try:
        file = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise _broken(path, error) from error
    if not hasattr(file, "files"):
        raise _broken(path, "it is one array")
    return file


def _broken(path: Path, error: Exception | str) -> DataError:
    return DataError(path, f"not a complete .npz of plain arrays ({error})")
