"""HTML from Jinja2 templates, which lie beside the code that fills them (``prediction/show.html.j2``).

Whatever is put into a template is escaped: a class called ``<script>`` stays a name. A missing value is an error.
Line breaks and indents in a template are for its readers: they are dropped beside a tag or an expression, and are one
space within a text. A space on a line stays as it is.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

BREAK = re.compile(r"\s*\n\s*")
BESIDE_TAGS = re.compile(r"^\s*\n\s*|\s*\n\s*$|(?<=>)\s*\n\s*|\s*\n\s*(?=<)")


def percent(fraction: float, digits: int = 1) -> str:
    """``0.1234`` as ``12.3 %``, which no line break tears apart; NaN is a dash. In templates ``x|percent(2)``."""
    return f"{100 * fraction:.{digits}f}\u00a0%" if fraction == fraction else "–"


def render(template: str, **values: Any) -> str:
    """The template at this path below the package, filled with ``values``."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension
    from jinja2.lexer import Token, TokenStream

    class Compact(Extension):
        """Leaves out the line breaks between elements, as if a template were one long line."""

        def filter_stream(self, stream: TokenStream) -> Any:
            """The same tokens: errors still name the template's own lines."""
            for token in stream:
                if token.type == "data":
                    token = Token(token.lineno, token.type, BREAK.sub(" ", BESIDE_TAGS.sub("", token.value)))
                yield token

    found = Environment(
        loader=PackageLoader("credro", ""), autoescape=True, undefined=StrictUndefined, extensions=[Compact]
    )
    found.filters["percent"] = percent
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return found
