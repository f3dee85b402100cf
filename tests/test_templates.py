"""What every template relies on: names are escaped, layout is not part of the page, nothing is missing in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import credro
from credro._templates import _environment, percent, render

NASTY = "<script>'\"&"


def filled(template: str, **values: object) -> str:
    return _environment().from_string(template).render(values)


def test_values_are_escaped_in_text_and_in_attributes() -> None:
    found = filled('<p title="{{ x }}">{{ x }}</p>', x=NASTY)
    assert found == f'<p title="{(safe := "&lt;script&gt;&#39;&#34;&amp;")}">{safe}</p>'
    assert filled("{% macro m(x) %}<b>{{ x }}</b>{% endmacro %}{{ m(x) }}", x=NASTY) == f"<b>{safe}</b>"


def test_json_can_stand_inside_a_script() -> None:
    inside = filled("{{ x|tojson }}", x={"b": "</script><!--", "a": [1.5, None]})
    assert "<" not in inside
    assert json.loads(inside) == {"b": "</script><!--", "a": [1.5, None]}
    with pytest.raises(ValueError, match="JSON compliant"):
        filled("{{ x|tojson }}", x=float("nan"))


def test_line_breaks_are_for_the_readers_of_a_template() -> None:
    assert filled("<p>\n  {{ x }}\n  <b>one\n   two</b> {{ x }}\n</p>\n", x=1) == "<p>1<b>one two</b> 1</p>"
    assert filled("<p>{{ x }}</p>", x="a\n  b") == "<p>a\n  b</p>"  # a value stays as it is


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'y' is undefined"):
        filled("{{ y }}")


def test_every_template_is_understood() -> None:
    root = Path(credro.__file__).parent
    names = [path.relative_to(root).as_posix() for path in root.rglob("*.j2")]
    assert len(names) > 15
    for name in names:
        _environment().get_template(name)


def test_what_is_rendered_is_plain_text() -> None:
    """A notebook's own code may add to it: markup that escapes what is added would surprise."""
    found = render("training/jupyter.html.j2", done=1, total=2, text=NASTY, lines=["<i>"])
    assert type(found) is str
    assert "<div>&lt;i&gt;</div>" in found


@pytest.mark.parametrize(("value", "shown"), [(0.1234, "12.3\u00a0%"), (1, "100.0\u00a0%"), (float("nan"), "–")])
def test_per_cent(value: float, shown: str) -> None:
    assert percent(value) == shown
    assert filled("{{ x|percent }}", x=value) == shown
