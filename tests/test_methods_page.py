"""docs/methods.md says what the code does: every method, every option, every default."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path

import pytest
from benchmarks import costs

from credro._names import ArgumentError
from credro.methods import CHOICES, METHODS, TRAINING, Method, label, make, options

PAGE = (Path(__file__).parent.parent / "docs" / "methods.md").read_text()
TEN = tuple(METHODS)  # as it is before any page of the documentation adds to it
SECTIONS = {m.group(1): m.group(2) for m in re.finditer(r"^## `([\w-]+)`: (.*?)(?=^## |\Z)", PAGE, re.M | re.S)}


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose header begins with ``first``; none if there is no such table."""
    table = re.search(rf"^\| {first} \|.*\n\|[-|]+\|\n((?:\|.*\n)*)", text, re.M)
    lines = table.group(1).splitlines() if table else []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_method_has_a_section_and_no_other_has() -> None:
    assert tuple(SECTIONS) == TEN


@pytest.mark.parametrize("name", TEN)
def test_options_and_defaults_are_those_of_the_code(name: str) -> None:
    said = {cells[0].strip("`"): ast.literal_eval(cells[1].strip("`")) for cells in rows(SECTIONS[name], "option")}
    assert said == options(name)
    assert list(said) == list(options(name))
    assert [type(v) for v in said.values()] == [type(v) for v in options(name).values()]
    assert ("No options." in SECTIONS[name]) == (not said)
    assert all(cells[2] for cells in rows(SECTIONS[name], "option"))


@pytest.mark.parametrize("name", TEN)
def test_a_section_names_the_five_choices_picture_and_source(name: str) -> None:
    text, method, entry = SECTIONS[name], make(name), METHODS[name]
    said = re.search(r"\*\*Training\*\* \((.*?)\)", text).group(1)
    assert said == ", ".join(f"{what} `{getattr(method, what).kind}`" for what in TRAINING)
    assert f"**Read-out** (`{method.readout.kind}`)" in text
    assert f"images/method-{name}.png" in text
    assert "**Use it**" in text
    assert "**Do not**" in text
    assert "**Traps.**" in text
    author, year = re.fullmatch(r"(\w+) et al\., (\d{4})", entry.reference).groups()
    source = text.strip().split("\n\n")[-1]
    assert source.startswith(author)
    assert year in source


def test_the_first_table_is_the_table_of_methods() -> None:
    said = {
        re.match(r"\[`([\w-]+)`\]", cells[0]).group(1): [c.strip("`") for c in cells[1:6]]
        for cells in rows(PAGE, "method")
    }
    assert said == {name: [getattr(make(name), what).kind for what in CHOICES] for name in TEN}
    header = re.search(r"^\| method \|(.*)\|$", PAGE, re.M).group(1).replace("-", "")
    assert [cell.strip() for cell in header.split("|")][:5] == list(CHOICES)


def test_combinations_that_are_said_to_be_refused_are_and_no_others() -> None:
    """Those of start, head and read-out, which a method alone can tell; risk and stop go with everything."""
    said = " ".join(cells[0] for cells in rows(PAGE.split("## Any other combination")[1], "combination"))
    heads = list(CHOICES["head"][0])
    apart = {
        (head, readout)
        for head, named in re.findall(r"head `(\w+)` with read-out ((?:`\w+`(?: or )?)+)", said)
        for readout in re.findall(r"\w+", named.replace(" or ", " "))
    }
    for readout in re.findall(r"read-out `(\w+)` with any other head", said):
        apart |= {(head, readout) for head in heads if head != "interval"}
    unbiased = set(re.findall(r"start `biased` with head `(\w+)`", said))
    for start, risk, head, stop, readout in product(*(kinds for kinds, _ in CHOICES.values())):
        expected = (head, readout) in apart or (start == "biased" and head in unbiased)
        try:
            Method(start, risk, head, stop, readout)
            refused = False
        except ArgumentError:
            refused = True
        assert refused == expected, (start, risk, head, stop, readout)


def test_costs_are_in_the_benchmarks_own_columns() -> None:
    assert costs.HEADER in PAGE
    lines = PAGE.split(costs.HEADER + "\n")[1].split("\n\n")[0].splitlines()
    if lines != ["<!-- costs -->"]:  # the rows have been filled in
        names = [line.strip("| ").split(" | ")[0] for line in lines if line.startswith("|")]
        assert names == [label(name) for name in TEN]


def test_a_cost_is_printed_beside_that_of_a_deep_ensemble() -> None:
    value, ratio = costs.beside([3.0, 8.0, 4.0], [1.0, 2.0, 4.0])
    assert (value, ratio) == (4.0, 3.0)
    row = {"method": "credro", "training": (2.5, 1.25), "networks": (0.5, 1), "with_readout": (0.75, 1.5),
           "memory": (80.2, 1), "disk": (1.5, 2)}  # fmt: skip
    assert costs.line(row) == "| CreDRO | 2.50 (1.25) | 0.500 (1.00) | 0.750 (1.50) | 80 (1.00) | 1.50 (2.00) |"
    assert costs.line(row).count("|") == costs.HEADER.splitlines()[0].count("|")


@pytest.mark.slow
def test_costs_can_be_measured() -> None:
    found = {row["method"]: row for row in costs.run(count=128, tested=8, few=4, rounds=1)}
    assert tuple(found) == TEN
    assert all(value > 0 and ratio > 0 for row in found.values() for value, ratio in list(row.values())[1:])
    assert all(ratio == 1 for _, ratio in list(found["de"].values())[1:])
    # What is known beforehand: variational layers keep two numbers for each one, and are drawn twenty times.
    assert found["crebnn"]["disk"][1] == pytest.approx(2, rel=0.05)
    assert found["crebnn"]["networks"][1] > 5
    assert found["credro"]["disk"] == found["de"]["disk"]
