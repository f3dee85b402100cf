"""Tables: the same numbers in every format."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credro.experiments._table import Number, Table, best_in_columns

TABLE = Table(
    "t",
    "A & B_1",
    ("method", "x", "time"),
    best_in_columns(
        [["DE", Number(1.25, 0.5, 2.0), Number(3.0)], ["100%", Number(2.0), Number(math.nan)], ["c", "–", Number(1.0)]],
        lowest=(2,),
    ),
    "note",
)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6))
def test_mean_and_standard_deviation_are_numpys(values):
    number = Number.of(values)
    assert number.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert number.std == pytest.approx(np.std(values, ddof=1), abs=1e-6)


def test_one_run_has_no_standard_deviation_and_none_has_no_mean():
    assert Number.of([3.0]) == Number(3.0)
    assert Number.of([3.0]).text() == "3.0"
    assert Number.of([-0.04, 0.02]).text() == "0.0 ± 0.0"
    assert Number.of([math.nan]).text() == "–"


def test_best_is_the_largest_or_the_smallest():
    assert [row[1].best for row in TABLE.rows if isinstance(row[1], Number)] == [False, True]
    assert [row[2].best for row in TABLE.rows] == [False, False, True]


def test_markdown_has_the_paper_in_brackets_and_the_best_in_bold():
    lines = TABLE.markdown().splitlines()
    assert lines[2] == "| DE | 1.2 ± 0.5 (2) | 3.0 |"
    assert lines[3] == "| 100% | **2.0** | – |"
    assert {line.count("|") for line in lines} == {4}


def test_csv_reads_back():
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert float(rows[0]["x"]) == 1.25
    assert float(rows[0]["x std"]) == 0.5
    assert float(rows[0]["x paper"]) == 2.0
    assert rows[1]["time"] == ""
    assert rows[2]["x"] == "–"


def test_latex_escapes_and_has_one_cell_per_column():
    text = TABLE.latex()
    assert r"A \& B\_1" in text
    assert r"100\%" in text
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in body.strip().splitlines()] == [2, 2, 2]


def test_four_files(tmp_path):
    TABLE.write(tmp_path)
    assert {p.suffix for p in tmp_path.iterdir()} == {".md", ".csv", ".tex", ".json"}
    kept = json.loads((tmp_path / "t.json").read_text())
    assert kept["rows"][0][1]["mean"] == 1.25
    assert kept["rows"][1][2]["mean"] is None
