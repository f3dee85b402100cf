"""Tables drawn at random, written by hand and read back: every cell is where it was, also in other files."""

import numpy as np
import pytest
import torch

from credro.data import load
from credro.data.readers.like import table_like
from tests.own_data.files import columns

MARKS = ("?", "", "NA", "-")
KINDS = {
    "measured": lambda draw, n: [f"{v:.3f}" for v in draw.normal(size=n) * draw.choice([1, 1000])],
    "counted": lambda draw, n: draw.integers(-5, 50, n).astype(str).tolist(),
    "words": lambda draw, n: draw.choice(["red", "green", "blue x", "A11"], n).tolist(),
    "truth": lambda draw, n: draw.choice(["True", "False"], n).tolist(),
    "both": lambda draw, n: draw.choice(["2", "3", "5more"], n).tolist(),
    "binary": lambda draw, n: draw.integers(0, 2, n).astype(str).tolist(),
}


def draw_column(draw, n):
    cells = KINDS[draw.choice(list(KINDS))](draw, n)
    if draw.random() < 0.4:
        for i in np.flatnonzero(draw.random(n) < 0.1):
            cells[i] = str(draw.choice(MARKS))
    return cells


def expected(column, cell):
    """The features of a cell, by the plainest reading of it."""
    if column.values is not None:
        return [float(cell == value) for value in column.values] + [0.0]
    if cell in MARKS:
        return [float("nan")]
    return [float({"True": 1, "False": 0}.get(cell, cell))]


@pytest.mark.parametrize("seed", range(60))
def test_any_table_comes_out_as_it_was_written(tmp_path, seed):
    draw = np.random.default_rng(seed)
    n, between, header = int(draw.choice([40, 90])), str(draw.choice([",", ";", "\t"])), bool(draw.random() < 0.5)
    parts = [draw_column(draw, n) for _ in range(draw.integers(1, 6))]
    truth = draw.choice([["1", "2"], ["yes", "no"], ["4", "10"]][draw.integers(3)], n).tolist()
    names = [*(f"c{i}" for i in range(len(parts))), "y"] if header else [str(i) for i in range(len(parts) + 1)]
    rows = columns(*parts, truth)

    def write(name, rows):
        lines = [between.join(row) for row in ([names, *rows] if header else rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    data = load(write("train.csv", rows), label="last", keep=names[:-1])
    assert [data.classes[i] for i in data.labels.tolist()] == truth
    cells = [[v for c, cell in zip(data.spec.columns, row, strict=False) for v in expected(c, cell)] for row in rows]
    np.testing.assert_array_equal(data.samples.numpy(), np.float32(cells))

    some = draw.permutation(n)[: draw.integers(1, n)]
    other = table_like(write("new.csv", [rows[i] for i in some]), data.spec, classes=data.classes)
    np.testing.assert_array_equal(other.samples.numpy(), data.samples[some].numpy())
    assert torch.equal(other.labels, data.labels[some])
