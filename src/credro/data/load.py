"""One call for every set, by name or by path. It reads what is on disk and never downloads."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from credro.data.base import Data
from credro.data.errors import DataNotFound
from credro.data.readers import FILES, READERS
from credro.data.readers.folders import folder
from credro.data.spec import DataSpec


def data_root(root: str | Path | None = None) -> Path:
    """Where sets are kept: ``root``, else the environment variable CREDRO_DATA, else the cache folder."""
    given = root or os.environ.get("CREDRO_DATA")
    if given:
        return Path(given).expanduser()
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
        read = READERS[name_or_path]
        where = data_root(root)
    else:
        where = _own_path(name_or_path, root)
        read = folder if where.is_dir() else _file_reader(where)
    _check_options(str(name_or_path), read, options)
    data = read(where, split, **options)
    spec = data.spec or DataSpec(str(name_or_path), split, options={k: v for k, v in options.items() if v is not None})
    return replace(data, spec=replace(spec, source=str(name_or_path)))


def options_of(name_or_path: str | Path) -> list[str]:
    """The names of the options with which a set can be read."""
    own = isinstance(name_or_path, Path) or name_or_path not in READERS
    path = Path(name_or_path)
    read = READERS[str(name_or_path)] if not own else folder if path.is_dir() else _file_reader(path)
    return _options(read)


def _own_path(given: str | Path, root: str | Path | None) -> Path:
    path = Path(given).expanduser()
    places = [path] if path.is_absolute() else [path, data_root(root) / path]
    for place in places:
        if place.exists():
            return place
    if isinstance(given, str) and len(path.parts) == 1 and path.suffix not in FILES:
        close = difflib.get_close_matches(given.lower(), READERS, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"no set and no file is called {given!r}{hint} The names are {', '.join(READERS)}")
    raise DataNotFound(f"{str(given)!r} was not found; looked for: {', '.join(map(str, places))}")


def _file_reader(path: Path) -> Callable[..., Data]:
    suffix = path.suffix.lower()
    if suffix not in FILES:
        raise ValueError(f"{path} must be a folder of images or end in {', '.join(FILES)}")
    return FILES[suffix]


def _check_options(name: str, read: Callable[..., Data], options: dict[str, Any]) -> None:
    allowed = _options(read)
    for option in options:
        if option not in allowed:
            raise TypeError(f"{name!r} has no option {option!r}; it has {', '.join(allowed) or 'none'}")


def _options(read: Callable[..., Data]) -> list[str]:
    return [p.name for p in inspect.signature(read).parameters.values() if p.kind is p.KEYWORD_ONLY]
