"""Other files, read as a run's data was read: nothing is guessed anew, nothing is a KeyError."""

import numpy as np
import pandas as pd
import pytest
import torch

from credro.data import DataError, UnknownSplit, load
from credro.data.readers.like import npz_like, table_like
from credro.data.spec import Column, DataSpec
from tests.own_data.files import columns, said, write

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "id": RNG.permutation(N),
        "age": RNG.integers(20, 80, N),
        "town": np.array(["Rome", "Oslo", "Bern"])[np.arange(N) % 3],
        "doors": np.array(["2", "3", "5more"])[np.arange(N) % 3],
        "smokes": np.arange(N) % 2 == 0,
        "y": np.arange(N) % 2 + 1,
    }
)


def trained(tmp_path, **options):
    FRAME.to_csv(tmp_path / "train.csv", index=False)
    return load(tmp_path / "train.csv", **options)


def other(tmp_path, frame):
    frame.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


@pytest.mark.parametrize("labelled", [True, False])
def test_the_same_rows_in_any_order_of_columns(tmp_path, labelled):
    train = trained(tmp_path)
    shuffled = FRAME[["smokes", "y", "town", "age", "doors"]].assign(note="of no interest", more=1.5)
    data = table_like(other(tmp_path, shuffled), train.spec, classes=train.classes, labelled=labelled)
    assert data.columns == train.columns
    assert torch.equal(data.samples, train.samples)
    assert data.classes == ("1", "2")
    assert data.labels.tolist() == (train.labels.tolist() if labelled else [0] * N)


def test_one_row_is_read_as_many_are(tmp_path):
    """A single row has nothing to tell numbers from categories, headers from samples, or constants from the rest."""
    train = trained(tmp_path)
    for i in (0, 1, 2):
        row = FRAME.drop(columns="y").iloc[i : i + 1]
        data = table_like(other(tmp_path, row), train.spec, classes=train.classes, labelled=False)
        assert torch.equal(data.samples[0], train.samples[i])


def test_new_values_go_to_other_and_are_counted(tmp_path):
    train = trained(tmp_path)
    frame = FRAME.head(9).copy()
    frame["town"] = ["Rome", "Paris", "Paris", "Graz", "?", "Oslo", "Bern", "Bern", ""]
    data = table_like(other(tmp_path, frame), train.spec, classes=train.classes)
    at = data.columns.index("town=Bern")
    names = ["Bern", "Oslo", "Rome", "(other)"]
    assert data.columns[at : at + 4] == tuple(f"town={n}" for n in names)
    oracle = [[float(t == n) for n in names[:3]] + [float(t in ("Paris", "Graz"))] for t in frame["town"]]
    assert data.samples[:, at : at + 4].tolist() == oracle
    assert said(data, "values that were not seen") == ["values that were not seen in training: town (3: Graz, Paris)"]
    assert said(data, "missing")[0].startswith("missing: 2 values, in town (2)")
    old = tuple(Column(c.name, c.values, other=False) for c in train.spec.columns)  # a run of version 0.1
    data = table_like(other(tmp_path, frame), DataSpec("", columns=old, label="y"), classes=train.classes)
    assert "town=(other)" not in data.columns
    at = data.columns.index("town=Bern")
    assert data.samples[:, at : at + 3].tolist() == [row[:3] for row in oracle]
    assert said(data, "values that were not seen")


def test_categories_of_numbers_stay_categories(tmp_path):
    """Where a file lacks the word among the numbers, or a cell, pandas would read 2 as 2.0."""
    train = trained(tmp_path)
    frame = FRAME[FRAME["doors"] != "5more"].copy()
    frame["doors"] = frame["doors"].astype(float)
    frame.loc[0, "doors"] = np.nan
    for kind in ("csv", "parquet"):
        path = tmp_path / f"new.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        if kind == "csv":
            path.write_text(path.read_text().replace(".0,", ","))
        data = table_like(path, train.spec, classes=train.classes)
        at = data.columns.index("doors=2")
        expected = [[float(d == 2), float(d == 3), 0, 0] for d in frame["doors"]]
        assert data.samples[:, at : at + 4].tolist() == expected


def test_unknown_classes_are_counted_and_not_refused(tmp_path):
    train = trained(tmp_path)
    frame = FRAME.head(10).assign(y=[1, 2, 3, 3, 1, 2, 7, 1, 1, 3])
    data = table_like(other(tmp_path, frame), train.spec, classes=train.classes)
    assert data.labels.tolist() == [0, 1, -1, -1, 0, 1, -1, 0, 0, -1]
    assert "4 samples of 2 classes that the run does not know: 3, 7" in data.notes
    data = table_like(other(tmp_path, frame.assign(y="new")), train.spec, classes=train.classes)
    assert set(data.labels.tolist()) == {-1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.drop(columns=["age", "town"]),
            r"has no columns 'age', 'town', which the run was trained on; it has",
        ),
        (
            lambda f: f.assign(age=["abc", *["x"] * 2, *range(57)]),
            r"'age' was numbers in training, but 3 of 60 .*line 2",
        ),
        (lambda f: f.assign(age="?").assign(y=[None, *[1] * 59]), r"label 'y': that of line 2 is missing"),
        (lambda f: f.assign(age=np.inf), "'age': value is infinite"),
        (lambda f: f.head(0), "holds no rows"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, message):
    train = trained(tmp_path)
    with pytest.raises(DataError, match=message):
        table_like(other(tmp_path, change(FRAME)), train.spec, classes=train.classes)


def test_the_label_may_have_another_name(tmp_path):
    train = trained(tmp_path)
    path = other(tmp_path, FRAME.rename(columns={"y": "outcome"}))
    with pytest.raises(ValueError, match=r"label must be a column of .*; got 'y'"):
        table_like(path, train.spec, classes=train.classes)
    data = table_like(path, train.spec, classes=train.classes, label="outcome")
    assert torch.equal(data.labels, train.labels)


def test_marks_of_missing_values_are_those_of_the_run(tmp_path):
    FRAME.assign(age=["x", *range(20, 79)]).to_csv(tmp_path / "train.csv", index=False)
    spec = load(tmp_path / "train.csv", missing="x").spec
    data = table_like(other(tmp_path, FRAME.assign(age=["x", *range(59)])), spec, classes=("1", "2"))
    assert data.samples.isnan().nonzero().tolist() == [[0, 0]]


def test_splits_of_other_files(tmp_path):
    train = trained(tmp_path)
    path = other(tmp_path, FRAME.assign(split=["train"] * 30 + ["val"] * 10 + ["test"] * 20))
    read = {"classes": train.classes}
    assert torch.equal(table_like(path, train.spec, **read).samples, train.samples[40:])  # never train, unasked
    assert len(table_like(path, train.spec, **read, split="validation")) == 10
    assert len(table_like(path, train.spec, **read, labelled=False)) == 60
    assert (
        table_like(path, train.spec, **read).notes[0]
        == "new.csv: split 'test' of train (30), val (10), test (20) samples"
    )
    path = other(tmp_path, FRAME.assign(split=["train", "a"] * 30))
    with pytest.raises(UnknownSplit, match="must be given"):
        table_like(path, train.spec, **read)
    with pytest.raises(UnknownSplit, match=r"^split 'test' of .*does not say which samples"):
        table_like(other(tmp_path, FRAME), train.spec, **read, split="test")


def test_a_line_is_named_also_within_a_split(tmp_path):
    train = trained(tmp_path)
    frame = FRAME.assign(age=[*range(50), "oops", *range(9)], split=["train"] * 40 + ["test"] * 20)
    with pytest.raises(DataError, match="'oops' in line 52"):
        table_like(other(tmp_path, frame), train.spec, classes=train.classes)
    frame["age"] = 1.5
    assert len(table_like(other(tmp_path, frame), train.spec, classes=train.classes)) == 20


def headerless(tmp_path, label):
    a, b, c = RNG.normal(size=40).round(3), np.array(["A11", "A12"] * 20), RNG.integers(0, 9, 40)
    y = np.array([1, 2] * 20)
    parts = [a, b, c]
    parts.insert(label, y)
    train = load(write(tmp_path / "train.data", columns(*parts)), label=str(label))
    return train, parts


@pytest.mark.parametrize("label", [0, 1, 3])
def test_columns_without_names_go_by_their_place(tmp_path, label):
    train, parts = headerless(tmp_path, label)
    rows = columns(*parts)[5:]
    data = table_like(write(tmp_path / "new.data", rows), train.spec, classes=train.classes)
    assert torch.equal(data.samples, train.samples[5:])
    assert torch.equal(data.labels, train.labels[5:])
    for count in (1, 35):  # without the label: what stood behind it moves up
        left = [row[:label] + row[label + 1 :] for row in rows[:count]]
        path = write(tmp_path / "new.data", left)
        data = table_like(path, train.spec, classes=train.classes, labelled=False)
        assert torch.equal(data.samples, train.samples[5 : 5 + count])
        with pytest.raises(DataError, match=r"has 3 columns, and the run's data had 4 without a header"):
            table_like(path, train.spec, classes=train.classes)
    with_header = write(tmp_path / "new.data", [["p", "q", "r", "s"], *rows])
    assert torch.equal(table_like(with_header, train.spec, classes=train.classes).samples, train.samples[5:])


def test_nobody_noted_the_columns(tmp_path):
    """Members that were trained in Python, on arrays."""
    spec = DataSpec("")
    path = write(tmp_path / "new.csv", [["a", "b", "label", "split"], [1, 2.5, 0, "train"], [3, 4.5, 1, "test"]])
    data = table_like(path, spec, classes=("0", "1"))
    assert data.samples.tolist() == [[3, 4.5]]
    assert data.labels.tolist() == [1]


def test_values_to_predict(tmp_path):
    frame = FRAME.assign(y=RNG.normal(size=N).round(4))
    frame.to_csv(tmp_path / "train.csv", index=False)
    spec = load(tmp_path / "train.csv").spec
    data = table_like(other(tmp_path, frame.tail(7)), spec, classes=())
    np.testing.assert_allclose(data.labels.numpy(), frame["y"].tail(7), rtol=1e-6)
    data = table_like(other(tmp_path, frame.assign(y=5)), spec, classes=())
    assert data.labels.tolist() == [5.0] * N
    with pytest.raises(DataError, match="'abc' in line 2 is no number"):
        table_like(other(tmp_path, frame.assign(y="abc")), spec, classes=())


def save(tmp_path, name, **arrays):
    np.savez(tmp_path / name, **arrays)
    return tmp_path / name


def test_arrays(tmp_path):
    x, y = RNG.normal(size=(20, 3)).astype(np.float32), RNG.integers(1, 3, 20)
    train = load(save(tmp_path, "train.npz", x=x, y=y, columns=["a", "b", "c"]))
    read = {"classes": train.classes}
    swapped = save(tmp_path, "new.npz", X=x[:, [2, 0, 1]], labels=np.where(y == 1, 8, y), columns=["c", "a", "b"])
    data = npz_like(swapped, train.spec, **read)
    np.testing.assert_array_equal(data.samples.numpy(), x)
    assert data.labels.tolist() == np.where(y == 1, -1, 1).tolist()
    assert any("1 class that the run does not know: 8" in note for note in data.notes)
    bare = save(tmp_path, "bare.npz", x=x)
    np.testing.assert_array_equal(npz_like(bare, train.spec, **read, labelled=False).samples.numpy(), x)
    with pytest.raises(DataError, match=r"has no array 'y'"):
        npz_like(bare, train.spec, **read)
    with pytest.raises(DataError, match="has no feature 'b', which the run was trained on; it has a, d, c"):
        npz_like(save(tmp_path, "new.npz", x=x, y=y, columns=["a", "d", "c"]), train.spec, **read)
    with pytest.raises(DataError, match="has 2 features, and the run was trained on 3"):
        npz_like(save(tmp_path, "new.npz", x=x[:, 1:], y=y), train.spec, **read)


def test_arrays_of_splits(tmp_path):
    x, y = RNG.integers(0, 256, size=(20, 4, 4), dtype=np.uint8), np.arange(20) % 2
    path = save(tmp_path, "med.npz", train_images=x[:12], train_labels=y[:12, None], test_images=x[12:],
                test_labels=y[12:, None])  # fmt: skip
    train = load(path)
    data = npz_like(path, train.spec, classes=train.classes)
    np.testing.assert_array_equal(data.samples[:, 0].numpy(), x[12:])
    assert data.spec.split == "test"
    assert len(npz_like(path, train.spec, classes=train.classes, labelled=False)) == 20
    marked = save(tmp_path, "marked.npz", x=x, y=y, split=["train"] * 12 + ["val"] * 8)
    assert len(npz_like(marked, train.spec, classes=train.classes)) == 8
    other_names = save(tmp_path, "own.npz", pictures=x, kind=y)
    spec = load(other_names, x="pictures", y="kind").spec
    assert torch.equal(npz_like(other_names, spec, classes=("0", "1")).labels, torch.tensor(y))
    assert len(npz_like(path, spec, classes=("0", "1"))) == 8  # the usual names, where the run's are not there
