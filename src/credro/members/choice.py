"""What the five choices of a method have in common: a kind, options, and a form for each member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from credro._names import ArgumentError, did_you_mean, one_of
from credro._records import check_types

C = TypeVar("C", bound="Choice")

RESOLVED = {"resolved": True}
"""Metadata of a field that is no option: ``Choice.member`` sets it."""


@dataclass(frozen=True)
class Choice:
    """A start, risk, head, stop or read-out. Its fields are its options; ``kind`` is its name in the table of its like.

    A choice describes a whole ensemble. ``member(i, M)`` is what it comes to for member i of M, counted from 0: a
    choice of the same sort, in which every schedule is resolved. Two members with equal resolved choices are trained
    alike.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the options' types; those that have more to check do so after this."""
        check_types(self)

    def member(self: C, i: int, members: int) -> C:
        """What it comes to for member ``i`` of ``members``."""
        return self

    def traits(self) -> dict[str, Any]:
        """What sets a member apart, for its record: of a resolved choice."""
        return {}

    def identity(self) -> dict[str, Any]:
        """Of a resolved choice: what decides how its member is trained."""
        return self.config()

    def config(self) -> dict[str, Any]:
        """Kind and options, as JSON keeps them; of a resolved choice, what it was resolved to as well."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": self.kind, **{f.name: values[f.name] for f in fields(self) if not _unset(f, values[f.name])}}

    def options(self) -> dict[str, Any]:
        """What a user may set, and what it is set to."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata.get("resolved")}


def choose(what: str, kinds: Mapping[str, type[C]], given: Any, base: type[C]) -> C:
    """A choice that is given as such, by its kind (``"biased"``) or as ``Choice.config`` wrote it."""
    if isinstance(given, base):
        return given
    if isinstance(given, str):
        return kinds[one_of(what, given, kinds)]()
    if isinstance(given, Mapping) and isinstance(given.get("kind"), str):
        return with_options(
            kinds[one_of(f"{what}.kind", given["kind"], kinds)](), {k: v for k, v in given.items() if k != "kind"}, what
        )
    raise ArgumentError(what, f"{what} must be one of {', '.join(kinds)}, or a {base.__name__}, got {given!r}")


def with_options(choice: C, given: Mapping[str, Any], what: str) -> C:
    """The choice with some of its options changed. what: which of the five, for errors."""
    known = list(choice.options())
    for name in given:
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise ArgumentError(
                name,
                f"{what} {choice.kind!r} has no option {name!r}{did_you_mean(name, known)}; its options: {allowed}",
            )
    return replace(choice, **given) if given else choice


def _unset(field: Field[Any], value: Any) -> bool:
    return bool(field.metadata.get("resolved")) and value is None
