"""Cells, categories, headers and IDs of people's own tables: what is taken for what, and what is refused by name."""

import numpy as np
import pandas as pd
import pytest
import torch

from credro.data import DataError, load
from tests.own_data.files import columns, said, write

RNG = np.random.default_rng(0)
N = 120

# --- cells


@pytest.mark.parametrize("mark", ["", "?", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "none",
                                  "-", "--", ".", "#N/A", " ? ", "  "])  # fmt: skip
@pytest.mark.parametrize("between", [",", ";"])
def test_known_marks_of_missing_values(tmp_path, mark, between):
    a, town = [1.5, mark, 3.5, 4.5], ["Rome", "Oslo", mark, "Oslo"]
    path = write(tmp_path / "t.csv", [["a", "town", "y"], *columns(a, town, [0, 1, 0, 1])], between)
    data = load(path)
    assert data.columns == ("a", "town=Oslo", "town=Rome", "town=(other)")
    expected = [[1.5, 0, 1, 0], [np.nan, 1, 0, 0], [3.5, 0, 0, 0], [4.5, 1, 0, 0]]
    np.testing.assert_array_equal(data.samples.numpy(), np.float32(expected))
    assert said(data, "missing") == [
        "missing: 2 values, in a (1), town (1); the training mean stands in for numbers, "
        "a category has none of its values"
    ]
    with pytest.raises(DataError, match=r"line 3, column 'a': value is missing \(1 in all\).*missing='keep'"):
        load(path, missing="error")


def with_bad(tmp_path, bad, count=1, rows=100):
    bmi = [f"{v:.1f}" for v in RNG.uniform(18, 40, size=rows)]
    bmi[40 : 40 + count] = [bad] * count
    return write(
        tmp_path / "t.csv", [["age", "bmi", "y"], *columns(RNG.integers(20, 80, rows), bmi, [0, 1] * (rows // 2))]
    )


@pytest.mark.parametrize("count", [1, 10, 30])
def test_a_bad_cell_is_an_error_and_not_a_hundred_columns(tmp_path, count):
    path = with_bad(tmp_path, "abc", count)
    with pytest.raises(DataError, match=rf"'bmi' is numbers, but {count} of 100 cells.*'abc' in line 42") as caught:
        load(path)
    for remedy in ("missing='abc'", "drop=('bmi',)", "categories=('bmi',)"):
        assert remedy in str(caught.value)
    assert str(caught.value).count("in line") == min(count, 5)
    data = load(path, missing="abc")
    assert data.columns == ("age", "bmi")
    assert data.samples.isnan().sum(0).tolist() == [0, count]
    assert load(path, drop="bmi").columns == ("age",)
    assert load(path, missing=("abc", "x")).samples.isnan().sum() == count


def test_the_line_is_the_one_an_editor_shows(tmp_path):
    """Blank lines and cells with line breaks count as lines, not as rows."""
    rows = ['"a\nb",1,0', "c,2,1", "", '"d\n\ne",3,0', *(f"c,{i},1" for i in range(30)), "c,oops,1"]
    (tmp_path / "t.csv").write_text("\n".join(["t,v,y", *rows]) + "\n")
    lines = (tmp_path / "t.csv").read_text().split("\n")
    with pytest.raises(DataError, match=f"'oops' in line {lines.index('c,oops,1') + 1};"):
        load(tmp_path / "t.csv", drop="t")


def test_numbers_can_be_marks(tmp_path):
    frame = pd.DataFrame({"a": [1.0, -9.0, 3.0, 4.0], "b": [-9, 1, 2, 3], "y": [0, 1, 0, 1]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        for mark in (-9, "-9", ("-9",)):
            assert load(path, missing=mark).samples.isnan().nonzero().tolist() == [[0, 1], [1, 0]]


def test_what_is_asked_of_missing_values_and_not_done_is_refused(tmp_path):
    for asked in ("drop", "mean", (), True):
        with pytest.raises(ValueError, match="missing must be"):
            load(with_bad(tmp_path, ""), missing=asked)


@pytest.mark.parametrize("cell", ['"1,234"', "$5", "12%", "12 %", '"1,234.50"', "€ 7", '"3,5"'])
def test_numbers_as_people_write_them_are_named(tmp_path, cell):
    rows = columns([cell] * 50 + ["7"] * 50, RNG.normal(size=100), [0, 1] * 50)
    path = write(tmp_path / "t.csv", [["price", "a", "y"], *rows])
    with pytest.raises(DataError, match="column 'price': 50 of 100 cells are written with commas or signs") as caught:
        load(path)
    assert cell.strip('"') in str(caught.value)
    assert "line 2" in str(caught.value)
    assert "price=7" in load(path, categories="price").columns


@pytest.mark.parametrize("cell", ["2020-01-02", "2020-01-02 13:00", "31.12.2020", "1/2/20", "13:45"])
def test_times_are_named(tmp_path, cell):
    path = write(tmp_path / "t.csv", [["when", "a", "y"], *columns([cell] * 20, RNG.normal(size=20), [0, 1] * 10)])
    with pytest.raises(DataError, match=r"column 'when' holds times, .* in line 2.*drop=\('when',\)"):
        load(path)


def test_infinite_values_are_refused(tmp_path):
    path = write(tmp_path / "t.csv", [["a", "y"], [1, 0], ["inf", 1], [2, 0]])
    with pytest.raises(DataError, match="line 3, column 'a': value is infinite"):
        load(path)


def test_truth_values_are_numbers_also_where_some_are_missing(tmp_path):
    path = write(tmp_path / "t.csv", [["a", "y"], ["True", 0], ["?", 1], ["FALSE", 0], ["true", 1]])
    data = load(path)
    assert data.columns == ("a",)
    np.testing.assert_array_equal(data.samples[:, 0].numpy(), [1, np.nan, 0, 1])


# --- categories


def test_categories_of_numbers(tmp_path):
    codes = ["01", "1", "7", "01"] * 10
    frame = pd.DataFrame({"zip": codes, "a": RNG.normal(size=40), "y": [0, 1] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert load(tmp_path / "t.csv").columns == ("zip", "a")
    data = load(tmp_path / "t.csv", categories=("zip",))
    assert data.columns == ("zip=01", "zip=1", "zip=7", "zip=(other)", "a")
    oracle = np.array([[c == "01", c == "1", c == "7", False] for c in codes], np.float32)
    np.testing.assert_array_equal(data.samples[:, :4].numpy(), oracle)
    given = load(tmp_path / "t.csv", categories={"zip": ("7", "01", "1", "9")})
    assert given.columns[:5] == ("zip=7", "zip=01", "zip=1", "zip=9", "zip=(other)")
    column = given.spec.columns[0]
    assert (column.name, column.values, column.features) == ("zip", ("7", "01", "1", "9"), given.columns[:5])


def test_how_it_was_read_is_kept(tmp_path):
    frame = pd.DataFrame({"id": range(40), "a": RNG.normal(size=40), "c": ["u", "v"] * 20, "y": [1, 2] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    spec = load(tmp_path / "t.csv", label="y", drop="id", missing=("x",), classes=range(4)).spec
    assert (spec.label, spec.split, spec.source) == ("y", None, str(tmp_path / "t.csv"))
    assert [(c.name, c.values) for c in spec.columns] == [("a", None), ("c", ("u", "v"))]
    assert spec.options == {"drop": ["id"], "missing": ["x"], "classes": [0, 1, 2, 3]}
    again = type(spec).from_json(spec.to_json())
    assert again == spec
    assert load(tmp_path / "t.csv", label=again.label, **again.options).columns == ("a", "c=u", "c=v", "c=(other)")


# --- headers, IDs, constants


def test_ids_constants_and_row_numbers_are_left_out_and_named(tmp_path):
    frame = pd.DataFrame(
        {
            "PatientID": RNG.permutation(10**7)[:N] + 10**8,
            "name": [f"p{i}" for i in range(N)],
            "row": RNG.permutation(N) + 5,
            "visit": RNG.permutation(N) + 1000,
            "same": 3,
            "word": "x",
            "empty": np.nan,
            "age": RNG.integers(20, 80, N),
            "weight": np.arange(N) / 7,  # all differ, and that is what measurements do
            "y": RNG.integers(0, 2, N),
        }
    )
    frame.to_csv(tmp_path / "t.csv")  # with the index
    data = load(tmp_path / "t.csv")
    assert data.columns == ("age", "weight")
    left_out = ["Unnamed: 0", "PatientID", "name", "row", "visit", "same", "word", "empty"]
    assert [note.split("'")[1] for note in said(data, "column") if "left out" in note] == left_out
    kept = load(tmp_path / "t.csv", keep=("PatientID", "row", "same"))
    assert kept.columns == ("PatientID", "row", "same", "age", "weight")
    np.testing.assert_array_equal(kept.samples[:, 1].numpy(), frame["row"].to_numpy(np.float32))
    with pytest.raises(ValueError, match="keep must be a column"):
        load(tmp_path / "t.csv", keep=("rows",))


def test_row_numbers_of_a_part_are_row_numbers(tmp_path):
    """The rows that somebody's train_test_split took keep the numbers they had."""
    frame = pd.DataFrame(
        {"bottle": range(200), "a": RNG.normal(size=200), "n": RNG.integers(0, 300, 200), "y": [0, 1] * 100}
    )
    frame.sample(120, random_state=0).to_csv(tmp_path / "most.csv")
    assert load(tmp_path / "most.csv").columns == ("a", "n")
    frame.drop(columns="bottle").sample(30, random_state=0).to_csv(tmp_path / "few.csv")
    assert load(tmp_path / "few.csv").columns == ("a", "n")


def test_what_may_be_an_id_is_said(tmp_path):
    frame = pd.DataFrame({"patient_id": np.repeat(np.arange(60), 2), "a": RNG.normal(size=N), "y": [0, 1] * 60})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "column 'patient_id' is used as a number, but may be an ID" in " ".join(load(tmp_path / "t.csv").notes)


def test_a_column_that_tells_the_label_is_named(tmp_path):
    y = RNG.integers(0, 3, N)
    frame = pd.DataFrame({"a": RNG.normal(size=N), "code": y * 7 + 1, "word": np.array(["u", "v", "w"])[y],
                          "near": np.where(np.arange(N) == 50, (y + 1) % 3, y), "y": y})  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = [note for note in load(tmp_path / "t.csv").notes if "tells the label exactly" in note]
    assert [note.split("'")[1] for note in told] == ["code", "word"]


@pytest.mark.parametrize("between", [",", ";", "\t", " "])
def test_without_a_header_no_row_is_lost(tmp_path, between):
    a, b, y = RNG.normal(size=60).round(3), RNG.choice(["A11", "A12"], 60), RNG.integers(1, 3, 60)
    path = write(tmp_path / "t.data", columns(a, b, y), between)
    data = load(path, label="2")
    assert len(data) == 60
    assert data.columns == ("0", "1=A11", "1=A12", "1=(other)")
    np.testing.assert_allclose(data.samples[:, 0].numpy(), a, rtol=1e-6)
    assert data.labels.tolist() == (y - 1).tolist()
    assert data.notes[0] == "no header: columns are called 0 to 2"
    for last in ("last", "-1", -1, 2):
        assert load(path, label=last).spec.label == "2"
    assert data.spec.width == 3


def test_header_can_be_said(tmp_path):
    path = write(tmp_path / "t.csv", [[2019, 2020, 2021], [1.5, 2, 0], [2.5, 3, 1], [3.5, 1, 1]])
    assert len(load(path, label="last")) == 4  # all numbers: the file cannot tell, and the note says what was taken
    data = load(path, label="2021", header=True)
    assert (len(data), data.columns) == (3, ("2019", "2020"))
    assert len(load(write(tmp_path / "u.csv", [["a", "b"], ["c", "b"]]), label="1", header=False, classes=["b"])) == 2


def test_a_header_of_numbers(tmp_path):
    """0, 1, 2, ... is what pandas writes; names such as years above words that recur are asked about."""
    frame = pd.DataFrame(RNG.normal(size=(50, 4)))
    frame[4] = RNG.integers(0, 2, 50)
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load(tmp_path / "t.csv", label="4")
    assert (len(data), data.columns) == (50, ("0", "1", "2", "3"))
    frame.rename(columns={4: "y"}).replace({"y": {0: "no", 1: "yes"}}).to_csv(tmp_path / "t.csv")
    assert load(tmp_path / "t.csv").classes == ("no", "yes")
    rows = columns(RNG.normal(size=50), RNG.normal(size=50), ["red", "blue"] * 25)
    with pytest.raises(ValueError, match=r"header must be given.*header=True.*header=False"):
        load(write(tmp_path / "t.csv", [[2019, 2020, "colour"], *rows]), label="last")


@pytest.mark.parametrize("header", [True, False])
def test_words_alone(tmp_path, header):
    """A table of letters, as mushrooms are: its first row is a header where its cells never occur again."""
    rows = [[RNG.choice(list("ep")), RNG.choice(list("bxf")), RNG.choice(list("nw"))] for _ in range(100)]
    path = write(tmp_path / "t.csv", [*([["edible", "cap", "smell"]] if header else []), *rows])
    data = load(path, label="edible" if header else "0")
    assert len(data) == 100
    assert data.labels.tolist() == [int(row[0] == "p") for row in rows]


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(DataError, match="two columns called 'a'"):
        load(write(tmp_path / "t.csv", [["a", "a", "y"], [1, 2, 0], [3, 4, 1]]))


def test_a_long_column_of_both_kinds_is_read_whole(tmp_path):
    """pandas reads long files in pieces, and may find numbers in one and text in another."""
    cells = np.array(["07", "8"])[RNG.integers(0, 2, 400_000)].astype(object)
    cells[300_000:] = "7more"
    frame = pd.DataFrame(
        {"a": cells, "b": "x" * 30, "c": RNG.integers(0, 2, 400_000), "y": RNG.integers(0, 2, 400_000)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load(tmp_path / "t.csv")
    assert data.columns == ("a=07", "a=7more", "a=8", "a=(other)", "c")
    assert data.samples[:, :4].sum(0).tolist() == [(cells == v).sum() for v in ("07", "7more", "8", "")]
    assert torch.equal(data.samples[:, 4], torch.tensor(frame["c"].to_numpy(np.float32)))


def test_types_that_parquet_keeps(tmp_path):
    """Whole numbers that may be missing, categories, an index that was a column."""
    frame = pd.DataFrame({"who": range(100, 130), "n": pd.array([1, None, 3] * 10, "Int64"), "y": [4, 2, 2] * 10,
                          "town": pd.Categorical(["Rome", "Oslo", None] * 10)}).set_index("who")  # fmt: skip
    frame["y"] = frame["y"].astype("Int64")
    frame.to_parquet(tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet")
    assert data.columns == ("n", "town=Oslo", "town=Rome", "town=(other)")
    assert data.classes == ("2", "4")
    np.testing.assert_array_equal(data.samples[:3].numpy(), [[1, 0, 1, 0], [np.nan, 1, 0, 0], [3, 0, 0, 0]])
    assert any("'who' is left out: it counts the rows (100 to 129)" in note for note in data.notes)
    frame.loc[107, "y"] = pd.NA
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"label 'y': that of row 7 \(counted from 0\) is missing"):
        load(tmp_path / "t.parquet")
