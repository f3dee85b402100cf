"""JSON to frozen dataclasses and back. What is read is checked field by field; an error names file and field."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from credro._names import ArgumentError

R = TypeVar("R", bound="Record")

PLAIN: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "an object",
    tuple: "a list",
    type(None): "null",
}


class RecordError(ValueError):
    """A file of a run, or of results, does not hold what it must. file, field: where; problem: what is wrong there."""

    def __init__(self, file: str | Path, field: str, problem: str) -> None:
        """``field``: the way to it, ``recipe.lr``; empty: the whole file."""
        super().__init__(f"{file}: {field + ' ' if field else ''}{problem}")
        self.file, self.field, self.problem = str(file), field, problem

    def __reduce__(self) -> Any:
        """To travel from a worker process."""
        return type(self), (self.file, self.field, self.problem)


class Record:
    """A frozen dataclass that is kept as JSON. Fields that are at their default may be missing in a file."""

    brief: ClassVar[bool] = False  # whether fields that are None are left out of the JSON

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: tuples become lists, records objects."""
        out: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not (self.brief and value is None):
                out[field.name] = _plain(value)
        return out

    @classmethod
    def from_json(cls: type[R], plain: Any, file: str | Path = "JSON", field: str = "") -> R:
        """The record that ``to_json`` wrote. file, field: where it was read, for errors."""
        if not isinstance(plain, dict):
            raise RecordError(file, field, f"must be an object, got {_shown(plain)}")
        hints, known = _hints(cls), {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if strange := [key for key in plain if key not in known]:
            raise RecordError(file, _way(field, strange[0]), "is no field that this version knows")
        given: dict[str, Any] = {}
        for name, f in known.items():
            if name in plain:
                given[name] = checked(plain[name], hints[name], file, _way(field, name))
            elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                raise RecordError(file, _way(field, name), "is missing")
        try:
            return cls(**given)
        except (ValueError, TypeError) as error:
            raise RecordError(file, field, str(error)) from error


def read_json(path: str | Path) -> Any:
    """The content of a JSON file. One that is none is a ``RecordError``."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(path, "", f"is no JSON ({error})") from error


def checked(value: Any, kind: Any, file: str | Path, field: str) -> Any:
    """``value`` as the type ``kind``: lists become tuples, objects records. Raises ``RecordError`` where it is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _either(value, inner, file, field)
    if origin is tuple:
        return _tuple(value, inner, file, field)
    if origin in (dict, Mapping):
        if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
            raise RecordError(file, field, f"must be an object, got {_shown(value)}")
        return {k: checked(v, inner[1], file, _way(field, k)) for k, v in value.items()}
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.from_json(value, file, field)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind in (int, float) and isinstance(value, bool)):
        raise RecordError(file, field, f"must be {PLAIN.get(kind, kind)}, got {_shown(value)}")
    return value


def check_types(record: Any) -> None:
    """Raise where a field of a dataclass that Python code made is not of its type: ``lr must be a number, got 'a'``."""
    hints = _hints(record.__class__)
    for field in dataclasses.fields(record):
        try:
            checked(_plain(getattr(record, field.name)), hints[field.name], "", field.name)
        except RecordError as wrong:
            raise ArgumentError(wrong.field, f"{wrong.field} {wrong.problem}") from None


def _either(value: Any, kinds: tuple[Any, ...], file: str | Path, field: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    rest = [k for k in kinds if k is not type(None)]
    for i, kind in enumerate(rest):
        try:
            return checked(value, kind, file, field)
        except RecordError:
            if i == len(rest) - 1:
                raise
    raise RecordError(file, field, f"must be null, got {_shown(value)}")


def _tuple(value: Any, inner: tuple[Any, ...], file: str | Path, field: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise RecordError(file, field, f"must be a list, got {_shown(value)}")
    each = [inner[0]] * len(value) if len(inner) == 2 and inner[1] is Ellipsis else list(inner)
    if len(each) != len(value):
        raise RecordError(file, field, f"must have {len(each)} entries, got {len(value)}")
    return tuple(checked(v, k, file, f"{field}[{i}]") for i, (v, k) in enumerate(zip(value, each, strict=True)))


@lru_cache(maxsize=64)
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _way(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _shown(value: Any, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."
