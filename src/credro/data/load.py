"""One call for every set, by name or by path. It reads what is on disk and never downloads."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from credro._names import ArgumentError, did_you_mean, one_of
from credro.data.base import Data
from credro.data.errors import DataNotFound
from credro.data.readers import FILES, PUBLISHED, READERS
from credro.data.readers.folders import folder
from credro.data.spec import DataSpec, given


def data_root(root: str | Path | None = None) -> Path:
    """Where sets are kept: ``root``, else the environment variable CREDRO_DATA, else the cache folder."""
    named = root or os.environ.get("CREDRO_DATA")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "credro"


def load(name_or_path: str | Path, *, split: str | None = None, root: str | Path | None = None, **options: Any) -> Data:
    """Labelled samples of a named set, or of a user's own folder, ``.npz``, ``.csv`` or ``.parquet``.

    A name wins over a file of that name in the current folder (write ``./cifar10``, or a ``Path``, to mean the file).
    split: "train", "test" and what else the set has; None takes train, or the whole of what has no splits; "all" takes
        all samples of a file. What was taken is in ``notes``.
    root: the folder that holds the sets; see ``data_root``. A relative path is also looked for there.
    options: those of the reader, such as ``size=(32, 32)`` for image files or ``label="column"`` for tables.
    """
    if isinstance(name_or_path, str) and name_or_path in READERS:
        read, where = READERS[name_or_path], data_root(root)
        split = PUBLISHED[name_or_path].split(split)
    else:
        where = _own_path(name_or_path, root)
        read = folder if where.is_dir() else _file_reader(where)
    _check_options(str(name_or_path), read, options)
    data = read(where, split, **options)
    spec = data.spec or DataSpec(str(name_or_path), split, options=given(**options))
    return replace(data, spec=replace(spec, source=str(name_or_path)))


def options_of(name_or_path: str | Path) -> list[str]:
    """The names of the options with which a set can be read."""
    own = isinstance(name_or_path, Path) or name_or_path not in READERS
    path = Path(name_or_path)
    read = READERS[str(name_or_path)] if not own else folder if path.is_dir() else _file_reader(path)
    return _options(read)


def candidates(name: str, root: str | Path | None = None) -> list[Path]:
    """Where the files of a named set are looked for below ``root`` (see ``data_root``); none for an embedded one."""
    return PUBLISHED[one_of("name", name, PUBLISHED)].candidates(data_root(root))


def _own_path(asked: str | Path, root: str | Path | None) -> Path:
    path = Path(asked).expanduser()
    places = [path] if path.is_absolute() else [path, data_root(root) / path]
    for place in places:
        if place.exists():
            return place
    if isinstance(asked, str) and len(path.parts) == 1 and path.suffix not in FILES:
        hint = did_you_mean(asked.lower(), READERS)
        raise ArgumentError("name", f"no set and no file is called {asked!r}{hint}; the names are {', '.join(READERS)}")
    message = f"{str(asked)!r} was not found; looked for: {', '.join(map(str, places))}"
    raise DataNotFound(asked, places, message)


def _file_reader(path: Path) -> Callable[..., Data]:
    suffix = path.suffix.lower()
    if suffix not in FILES:
        raise ArgumentError("name", f"{path} must be a folder of images or end in {', '.join(FILES)}")
    return FILES[suffix]


def _check_options(name: str, read: Callable[..., Data], options: dict[str, Any]) -> None:
    allowed = _options(read)
    for option in options:
        if option not in allowed:
            raise TypeError(f"{name!r} has no option {option!r}; it has {', '.join(allowed) or 'none'}")


def _options(read: Callable[..., Data]) -> list[str]:
    return [p.name for p in inspect.signature(read).parameters.values() if p.kind is p.KEYWORD_ONLY]
