import sys

import numpy as np
import pandas as pd
import pytest
import torch

from credro.data import DataError, load

FRAME = pd.DataFrame(
    {
        "age": [30, 41, 52, 63],
        "town": ["Rome", "Oslo", "Rome", "Bern"],
        "height": [1.7, 1.8, 1.6, 1.9],
        "smokes": [True, False, True, True],
        "hospital": ["b", "a", "b", "a"],
        "Target": ["ill", "well", "well", "ill"],
    }
)


def write(tmp_path, frame, kind="csv"):
    path = tmp_path / f"own.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_features_labels_groups(tmp_path, kind):
    data = load(write(tmp_path, FRAME, kind), group="hospital")
    oracle = pd.get_dummies(FRAME.drop(columns=["hospital", "Target"]), columns=["town"], prefix_sep="=")
    oracle["town=(other)"] = 0
    oracle = oracle[["age", "town=Bern", "town=Oslo", "town=Rome", "town=(other)", "height", "smokes"]]
    assert data.columns == tuple(oracle.columns)
    assert data.shape == (7,)
    assert data.samples.dtype == torch.float32
    np.testing.assert_array_equal(data.samples.numpy(), oracle.to_numpy(dtype=np.float32))
    assert data.classes == ("ill", "well")
    assert data.labels.tolist() == [0, 1, 1, 0]
    assert [data.group_names[g] for g in data.groups.tolist()] == list(FRAME["hospital"])


def test_label_column(tmp_path):
    frame = FRAME.rename(columns={"Target": "outcome"})
    path = write(tmp_path, frame)
    with pytest.raises(
        ValueError, match=r"label must be given: .* its columns are age, town, height, smokes, hospital, outcome"
    ):
        load(path)
    with pytest.raises(ValueError, match=r"label must be a column of .*; got 'result'"):
        load(path, label="result")
    assert load(path, label="outcome").classes == ("ill", "well")
    values = load(path, label="height")
    assert values.classes == ()
    assert values.labels.tolist() == pytest.approx([1.7, 1.8, 1.6, 1.9])
    assert len(values.columns) == 1 + 4 + 1 + 3 + 3


def test_two_files_can_be_made_alike(tmp_path):
    few = write(tmp_path, FRAME.iloc[:2])
    data = load(
        few, drop=("hospital",), categories={"town": ["Bern", "Oslo", "Rome"]}, classes=("well", "ill", "unknown")
    )
    assert data.columns == ("age", "town=Bern", "town=Oslo", "town=Rome", "town=(other)", "height", "smokes")
    assert data.labels.tolist() == [1, 0]
    with pytest.raises(DataError, match=r"column 'town' has values that are not in categories: \['Rome'\]"):
        load(few, categories={"town": ["Bern", "Oslo"]})


def test_split_column(tmp_path):
    path = write(tmp_path, FRAME.assign(split=["train", "train", "train", "test"]))
    train, test = load(path, split="train"), load(path, split="test")
    assert (len(train), len(test)) == (3, 1)
    assert train.columns == test.columns  # the categories are those of the whole file
    assert not any("split" in column for column in train.columns)
    assert len(load(path)) == 3  # what is not for training is not trained on unless it is asked for
    assert len(load(path, split="all")) == 4
    with pytest.raises(ValueError, match="does not say which samples"):
        load(write(tmp_path, FRAME), split="test")


@pytest.mark.parametrize(
    ("name", "between", "decimal"),
    [("t.csv", ";", "."), ("t.csv", ";", ","), ("t.tsv", "\t", "."), ("t.csv", "\t", ",")],
)
def test_other_separators_and_decimal_commas(tmp_path, name, between, decimal):
    """What Excel writes in half of Europe gives the same samples as commas and points."""
    frame = pd.DataFrame(
        {"age": [1.5, -2.25, 3.0], "town": ["x, y", "z", "z"], "n": [1, 2, 3], "label": ["a", "b", "a"]}
    )
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.to_csv(tmp_path / name, index=False, sep=between, decimal=decimal, encoding="utf-8-sig")
    plain, other = load(tmp_path / "plain.csv"), load(tmp_path / name)
    assert plain.columns == other.columns == ("age", "town=x, y", "town=z", "town=(other)", "n")
    assert torch.equal(plain.samples, other.samples)
    assert plain.samples[:, 0].tolist() == [1.5, -2.25, 3.0]
    assert other.classes == ("a", "b")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_values(tmp_path, kind):
    frame = FRAME.copy()
    frame.loc[2, "height"] = np.nan
    path = write(tmp_path, frame, kind)
    where = {"csv": "line 4", "parquet": r"row 2 \(counted from 0\)"}[kind]
    with pytest.raises(DataError, match=rf"{where}, column 'height': value is missing \(1 in all\).*missing='keep'"):
        load(path, missing="error")
    for option in ({}, {"missing": "keep"}):
        data = load(path, **option)
        assert data.samples.isnan().nonzero().tolist() == [[2, 5]]
        assert data.notes[-1].startswith("missing: 1 value, in height (1)")
    frame = FRAME.copy()
    frame.loc[1, "town"] = None
    path = write(tmp_path, frame, kind)
    with pytest.raises(DataError, match="column 'town': value is missing"):
        load(path, missing="error")
    data = load(path, drop=("hospital",))
    assert data.columns == ("age", "town=Bern", "town=Rome", "town=(other)", "height", "smokes")
    assert data.samples[1, 1:4].tolist() == [0, 0, 0]


@pytest.mark.parametrize("column", ["Target", "hospital"])
def test_missing_label_or_group_never_passes(tmp_path, column):
    frame = FRAME.copy()
    frame.loc[3, column] = None
    with pytest.raises(
        DataError, match=f"'{column}': that of line 5 is missing|line 5, column '{column}': the group is"
    ):
        load(write(tmp_path, frame), group="hospital", missing="keep")


def test_names_and_times_are_no_categories(tmp_path):
    many = pd.DataFrame({"name": [f"n{i % 149}" for i in range(150)], "v": np.linspace(0, 1, 150), "y": [0, 1] * 75})
    path = write(tmp_path, many)
    with pytest.raises(DataError, match="column 'name' is text with 149 different values"):
        load(path)
    assert load(path, drop=("name",)).columns == ("v",)
    assert load(write(tmp_path, many.assign(name=[f"n{i}" for i in range(150)]))).columns == ("v",)  # an ID
    times = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "v": [1, 2], "y": [0, 1]})
    with pytest.raises(DataError, match="column 'when' holds times"):
        load(write(tmp_path, times, "parquet"))


def test_wrong_options(tmp_path):
    path = write(tmp_path, FRAME)
    with pytest.raises(ValueError, match=r"group must be a column of .*; got 'ward'"):
        load(path, group="ward")
    with pytest.raises(ValueError, match=r"drop must be a column of .*; got 'ward'"):
        load(path, drop=("ward",))


@pytest.mark.parametrize("first", [0, 1])
def test_row_numbers_are_no_feature(tmp_path, first):
    """``frame.to_csv(path)`` writes the index as a column without a name."""
    path = tmp_path / "own.csv"
    FRAME.set_axis(range(first, first + 4)).to_csv(path)
    assert load(path, drop=("town", "hospital")).columns == ("age", "height", "smokes")
    FRAME.set_axis([5, 3, 9, 2]).to_csv(path)  # these are not: they stay
    assert load(path, drop=("town", "hospital")).columns == ("Unnamed: 0", "age", "height", "smokes")


def test_empty_and_broken(tmp_path):
    with pytest.raises(DataError, match="holds no rows"):
        load(write(tmp_path, FRAME.iloc[:0]))
    with pytest.raises(DataError, match="has no features beside Target"):
        load(write(tmp_path, FRAME[["Target"]]))
    path = tmp_path / "own.csv"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="not a readable table"):
        load(path)
    path.write_text("a,b,y\n1,2,0\n1,2,3,4,5\n")
    with pytest.raises(DataError, match="not a readable table"):
        load(path)
    path.write_text("a,b,y\n1,2,0\n1,")  # cut within a row
    with pytest.raises(DataError, match="label 'y': that of line 3 is missing"):
        load(path)
    path.write_bytes(b"a,y\n\xff\xfe\x00,0\n")
    with pytest.raises(DataError, match="not a readable table"):
        load(path)
    path = write(tmp_path, FRAME, "parquet")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="not a readable table"):
        load(path)


def test_without_pandas_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path, FRAME)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pandas is needed here: pip install 'credro\[data\]'"):
        load(path)
