"""Tables as people have them: in the layouts of well-known files, with the faults that such files have."""

import itertools

import numpy as np
import pandas as pd
import pytest

from credro.data import DataError, UnknownSplit, load
from tests.own_data.files import columns, said, write

RNG = np.random.default_rng(0)
N = 120


# --- splits

MARKS = ["train"] * 70 + ["Validation"] * 20 + ["TEST"] * 30


def marked(tmp_path, column, words, **more):
    frame = pd.DataFrame({"a": np.arange(len(words)) + 0.5, "y": np.arange(len(words)) % 3 + 3, column: words, **more})
    frame.to_csv(tmp_path / "wine.csv", index=False)
    return tmp_path / "wine.csv"


@pytest.mark.parametrize("column", ["split", "Split", "partition"])
def test_a_table_with_splits_gives_the_training_rows_and_says_so(tmp_path, column):
    path = marked(tmp_path, column, MARKS)
    train = load(path)
    assert train.samples[:, 0].tolist() == [i + 0.5 for i in range(70)]
    assert train.columns == ("a",)
    assert train.notes[0] == "wine.csv: split 'train' of train (70), val (20), test (30) samples"
    assert train.spec.split == "train"
    for asked in ("val", "validation", "Validation", "dev"):
        assert load(path, split=asked).samples[:, 0].tolist() == [i + 0.5 for i in range(70, 90)]
    assert load(path, split="test").spec.split == "test"
    everything = load(path, split="all")
    assert (len(everything), everything.spec.split) == (120, "all")
    with pytest.raises(
        UnknownSplit, match=r"^split .* must be one of 'train', 'val', 'test', 'all', got 'extra'"
    ) as caught:
        load(path, split="extra")
    assert caught.value.allowed == ("train", "val", "test", "all")


def test_every_split_numbers_classes_and_categories_alike(tmp_path):
    town = np.array(["Rome"] * 70 + ["Oslo"] * 50)
    frame = pd.DataFrame({"a": RNG.normal(size=120), "town": town, "split": MARKS})
    frame["y"] = np.where(np.arange(120) < 70, [7, 2] * 60, 5)
    frame.to_csv(tmp_path / "t.csv", index=False)
    train, test = load(tmp_path / "t.csv"), load(tmp_path / "t.csv", split="test")
    assert train.classes == test.classes == ("2", "5", "7")
    assert set(test.labels.tolist()) == {1}
    assert train.columns == test.columns


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (["a"] * 30 + ["b"] * 10, r"a \(30\), b \(10\)"),
        ([0] * 10 + [10] * 5 + [2] * 25, r"0 \(10\), 2 \(25\), 10 \(5\)"),
    ],
)
def test_marks_that_do_not_say_what_to_train_on_are_refused(tmp_path, words, listed):
    path = marked(tmp_path, "split", words)
    with pytest.raises(UnknownSplit, match=rf"^split .* must be given.*{listed}.*split='all'") as caught:
        load(path)
    assert caught.value.split is None
    assert len(load(path, split="all")) == 40
    assert len(load(path, split=str(words[0]))) == words.count(words[0])


def test_words_that_are_no_splits_are_a_feature(tmp_path):
    for words in (["test", "dev"] * 20, ["train", "bus"] * 20, ["train"] * 40):
        data = load(marked(tmp_path, "travels by", words))
        assert len(data) == 40
        assert data.spec.split is None
    frame = pd.DataFrame({"a": RNG.normal(size=40), "set": ["train", "test"] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert load(tmp_path / "t.csv", label="set").classes == ("test", "train")  # the label is the label


def test_a_row_without_a_mark_is_refused(tmp_path):
    with pytest.raises(DataError, match="column 'split' does not mark line 5"):
        load(marked(tmp_path, "split", ["train", "test", "train", None, "test"]))


# --- classes


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        ([1, 2, 2, 1], ("1", "2"), [0, 1, 1, 0]),
        ([2, 4, 4, 2], ("2", "4"), [0, 1, 1, 0]),
        ([10, 9, -1, 9], ("-1", "9", "10"), [2, 1, 0, 1]),
        (["True", "False", "True", "True"], ("False", "True"), [1, 0, 1, 1]),
        (["b", "a", "b", "c"], ("a", "b", "c"), [1, 0, 1, 2]),
        (["+", "-", "+", "-"], ("+", "-"), [0, 1, 0, 1]),  # a minus is a class here, not a missing value
        (["none", "mild", "none", "mild"], ("mild", "none"), [1, 0, 1, 0]),
        (["1.0", "2.0", "1.0", "2.0"], ("1", "2"), [0, 1, 0, 1]),
    ],
)
def test_the_classes_are_the_labels_that_occur(tmp_path, labels, classes, numbers):
    data = load(write(tmp_path / "t.csv", [["a", "y"], *columns([1.5, 2.5, 0.5, 9], labels)]))
    assert data.classes == classes
    assert data.labels.tolist() == numbers
    assert said(data, "label 'y'")[0] == f"label 'y': {len(classes)} classes: {', '.join(classes)}"


def test_classes_can_be_given(tmp_path):
    path = write(tmp_path / "t.csv", [["a", "y"], *columns([1.5, 2.5, 0.5, 9], [3, 0, 3, 1])])
    for given in (5, range(5), ("0", "1", "2", "3", "4")):
        data = load(path, classes=given)
        assert data.classes == ("0", "1", "2", "3", "4")
        assert data.labels.tolist() == [3, 0, 3, 1]
        assert "no sample of 2, 4" in said(data, "label 'y'")[0]
    assert load(path, classes=("3", "1", "0")).labels.tolist() == [0, 2, 0, 1]  # names that are numbers: by name
    named = load(path, classes=("a", "b", "c", "d"))
    assert named.labels.tolist() == [3, 0, 3, 1]
    assert "0 is a, 1 is b, 3 is d" in " ".join(named.notes)
    with pytest.raises(DataError, match=r"label 'y': '3' of line 2 is not one of the 2 classes: 0, 1 \(2 such"):
        load(path, classes=2)
    with pytest.raises(TypeError, match="classes must be"):
        load(path, classes="abc")


def test_one_class_is_refused(tmp_path):
    path = write(tmp_path / "t.csv", [["a", "y"], [1, 1], [2, 1]])
    with pytest.raises(DataError, match=r"all 2 samples have label 1.*classes="):
        load(path)
    assert load(path, classes=("0", "1")).labels.tolist() == [1, 1]


def test_values_to_predict_are_told_from_classes(tmp_path):
    x = RNG.normal(size=200).round(3)
    prices = RNG.integers(10_000, 99_999, size=200)
    path = write(tmp_path / "t.csv", [["a", "price"], *columns(x, prices)])
    with pytest.raises(DataError, match=r"'price': \d+ different ones in 200 samples, from \d+ to \d+.*'regress'"):
        load(path, label="price")
    values = load(path, label="price", task="regress")
    np.testing.assert_array_equal(values.labels.numpy(), prices.astype(np.float32))
    assert values.classes == ()
    assert len(load(path, label="price", task="classify").classes) == len(set(prices.tolist()))
    whole = write(tmp_path / "w.csv", [["a", "y"], *columns(x, [f"{v}.0" for v in RNG.integers(3, 9, 200)])])
    quality = load(whole)
    assert quality.classes == ("3", "4", "5", "6", "7", "8")
    assert "taken for classes; task='regress'" in " ".join(quality.notes)
    assert load(whole, task="regress").classes == ()
    assert "values from" in said(load(write(tmp_path / "v.csv", [["a", "y"], *columns(x, x)])), "label 'y'")[0]


def test_a_wrong_label_is_named(tmp_path):
    rows = columns(RNG.normal(size=100), [1, 2] * 50)
    rows[40][1] = "?"
    with pytest.raises(DataError, match=r"label 'y': that of line 42 is missing \(1 in all\)"):
        load(write(tmp_path / "t.csv", [["a", "y"], *rows]), missing="keep")
    rows[40][1] = "l"
    with pytest.raises(DataError, match="'l' in line 42"):
        load(write(tmp_path / "t.csv", [["a", "y"], *rows]))
    assert load(tmp_path / "t.csv", task="classify").classes == ("1", "2", "l")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["target", "class", "a"], "has 2 columns that may be it, target, class"),
        (["a", "b", "outcome"], "columns are a, b, outcome; perhaps label='outcome'"),
        (["diagnosis", "a", "b"], "perhaps label='diagnosis'"),
    ],
)
def test_an_unclear_label_is_asked_for(tmp_path, names, message):
    with pytest.raises(ValueError, match=f"label must be given.*{message}"):
        load(write(tmp_path / "t.csv", [names, [1, 2, 3], [4, 5, 6]]))


# --- the layouts of well-known files


def test_german_credit(tmp_path):
    """White space between cells, codes, no header, labels 1 and 2."""
    rows = [[RNG.choice(["A11", "A12", "A13"]), RNG.integers(4, 72), RNG.choice(["A30", "A34"]), RNG.integers(250, 900),
             RNG.integers(1, 3)] for _ in range(N)]  # fmt: skip
    (tmp_path / "german.data").write_text("".join(" ".join(map(str, row)) + " \n" for row in rows))
    data = load(tmp_path / "german.data", label="last")
    frame = pd.DataFrame(rows)
    oracle = pd.get_dummies(frame[[0, 1, 2, 3]].infer_objects(), columns=[0, 2], prefix_sep="=")
    assert set(data.columns) - set(map(str, oracle.columns)) == {"0=(other)", "2=(other)"}
    for i, name in enumerate(data.columns):
        if not name.endswith("=(other)"):
            key = int(name) if name.isdigit() else name
            np.testing.assert_array_equal(data.samples[:, i].numpy(), oracle[key].to_numpy(np.float32))
    assert data.classes == ("1", "2")


def test_adult(tmp_path):
    """A comma and a space, question marks, no header."""
    work = RNG.choice(["Private", "State-gov", "?"], N)
    rows = columns(RNG.integers(17, 90, N), work, RNG.choice(["Male", "Female"], N), RNG.choice(["<=50K", ">50K"], N))
    data = load(write(tmp_path / "adult.data", rows, ", "), label="last")
    assert data.columns == ("0", "1=Private", "1=State-gov", "1=(other)", "2=Female", "2=Male", "2=(other)")
    assert data.samples[:, 1:4].sum().item() == (work != "?").sum()
    assert said(data, "missing")[0].startswith(f"missing: {(work == '?').sum()} values, in 1 ({(work == '?').sum()});")


def test_breast_cancer_wisconsin(tmp_path):
    """No header, a number that is an ID with repeats, question marks, labels 2 and 4."""
    rows = [[RNG.integers(60_000, 13_000_000), *RNG.integers(1, 11, 5), "?" if i % 40 == 7 else 3 + i % 2,
             RNG.choice([2, 4])] for i in range(N)]  # fmt: skip
    rows[9][0] = rows[8][0]
    data = load(write(tmp_path / "bcw.data", rows), label="7")
    assert data.classes == ("2", "4")
    assert len(data.columns) == 7
    assert data.samples.isnan().sum() == 3
    assert any("column '0' is used as a number, but may be an ID" in note for note in data.notes)


def test_cars(tmp_path):
    """Numbers and words in one column: 2, 3, 4, 5more."""
    parts = (["high", "low"], ["2", "3", "4", "5more"], ["2", "4", "more"], ["small", "big"])
    rows = [[*row, RNG.choice(["acc", "unacc"])] for row in itertools.product(*parts)]
    data = load(write(tmp_path / "car.data", rows), label="last")
    assert len(data) == 48
    assert data.columns[3:8] == ("1=2", "1=3", "1=4", "1=5more", "1=(other)")
    assert "column '1' is a category: 12 of 48 cells are no numbers (5more)" in data.notes


def test_the_notes_are_the_plan_in_order(tmp_path):
    frame = pd.DataFrame({"no": range(N), "a": RNG.normal(size=N), "c": RNG.choice(["u", "v"], N),
                          "set": ["train", "test"] * 60, "y": RNG.integers(3, 6, N)})  # fmt: skip
    frame.loc[4, "a"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert list(load(tmp_path / "t.csv").notes) == [
        "t.csv: split 'train' of train (60), test (60) samples",
        "label 'y': 3 classes: 3, 4, 5",
        "features: 1 number, 1 category (c)",
        "column 'no' is left out: it counts the rows (0 to 119); keep=('no',) takes it",
        "missing: 1 value, in a (1); the training mean stands in for numbers",
    ]


def test_decimal_commas_are_said(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(f"{i},{i}5;{i % 2}\n" for i in range(1, 10)))
    data = load(tmp_path / "t.csv", label="y")
    assert data.samples[0, 0] == pytest.approx(1.15)
    assert "decimal commas: 1,234 is taken for 1.234" in data.notes
