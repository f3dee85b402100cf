"""HTML that cannot be broken by a class called ``<script>``: what is not markup already is escaped, always."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

VOID = frozenset({"br", "circle", "col", "img", "input", "line", "path", "polygon", "rect"})


class Html(str):
    """Markup; any other string is text and gets escaped."""

    __slots__ = ()


def el(name: str, *children: object, **attributes: object) -> Html:
    """An element: ``el("td", 3, class_="number")``. An attribute that is None or False is left out, True stands alone.

    A trailing underscore is dropped (``class_``, ``for_``), any other becomes a hyphen (``aria_label``).
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{given}>" if name in ("br", "col", "img", "input") else f"<{name}{given}/>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Html:
    """Several parts as one; None is nothing."""
    texts = (part if isinstance(part, Html) else escape(str(part), quote=False) for part in parts if part is not None)
    return Html(between.join(texts))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value), quote=True)}"'
