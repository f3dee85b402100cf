"""Arrays as people have them: MedMNIST, Keras, a marked split, one label for several things."""

import numpy as np
import pytest
import torch

from credro.data import DataError, UnknownSplit, load
from credro.data.readers import _stored as stored

RNG = np.random.default_rng(0)
COUNTS = {"train": 30, "val": 8, "test": 12}


def save(tmp_path, **arrays):
    path = tmp_path / "pneumonia.npz"
    np.savez(path, **arrays)
    return path


def pixels(n):
    return RNG.integers(0, 256, size=(n, 6, 6), dtype=np.uint8)


def test_an_array_of_marks(tmp_path):
    x, y = pixels(50), RNG.integers(1, 3, 50)
    words = np.repeat(["train", "val", "test"], [30, 8, 12])
    path = save(tmp_path, x=x, y=y, split=words)
    train = load(path)
    np.testing.assert_array_equal(train.samples[:, 0].numpy(), x[:30])
    assert train.notes[0] == "pneumonia.npz: split 'train' of train (30), val (8), test (12) samples"
    assert train.notes[1] == "labels 'y': 2 classes: 1, 2"
    assert train.classes == ("1", "2")
    assert train.labels.tolist() == (y[:30] - 1).tolist()
    assert train.spec.split == "train"
    np.testing.assert_array_equal(load(path, split="validation").samples[:, 0].numpy(), x[30:38])
    assert len(load(path, split="all")) == 50
    assert load(save(tmp_path, x=x, y=y)).spec.split is None
    for marks in (words.astype("S"), np.char.upper(words)):
        assert len(load(save(tmp_path, x=x, y=y, Split=marks), split="test")) == 12
    with pytest.raises(UnknownSplit, match=r"^split .* must be given.*0 \(30\), 1 \(20\)"):
        load(save(tmp_path, x=x, y=y, split=np.repeat([0, 1], [30, 20])))


NAMES = [
    ("train_images", "train_labels", "val_images", "val_labels", "test_images", "test_labels"),  # MedMNIST
    ("x_train", "y_train", "x_val", "y_val", "x_test", "y_test"),  # Keras
    ("X_train", "Y_train", "X_valid", "Y_valid", "X_test", "Y_test"),
    ("images_train", "targets_train", "images_dev", "targets_dev", "images_test", "targets_test"),
    ("training.data", "training.label", "validation.data", "validation.label", "testing.data", "testing.label"),
    ("xtrain", "ytrain", "xval", "yval", "xtest", "ytest"),
    ("trainX", "trainY", "valX", "valY", "testX", "testY"),
]


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0])
@pytest.mark.parametrize("column", [True, False])
def test_an_array_for_each_split(tmp_path, names, column):
    x = {split: pixels(n) for split, n in COUNTS.items()}
    y = {split: RNG.integers(3, 6, size=(n, 1) if column else n) for split, n in COUNTS.items()}
    y["test"][:] = 9  # a class that occurs in this split alone
    arrays = dict(zip(names, [a for s in COUNTS for a in (x[s], y[s])], strict=True))
    path = save(tmp_path, **arrays)
    for split in COUNTS:
        data = load(path, split=None if split == "train" else split)
        np.testing.assert_array_equal(data.samples[:, 0].numpy(), x[split])
        assert [data.classes[i] for i in data.labels.tolist()] == [str(v) for v in y[split].ravel()]
        assert data.classes == ("3", "4", "5", "9")
        assert data.spec.split == split
        assert data.notes[0] == f"pneumonia.npz: split {split!r} of train (30), val (8), test (12) samples"
    whole = load(path, split="all")
    np.testing.assert_array_equal(whole.samples[:, 0].numpy(), np.concatenate(list(x.values())))
    assert [whole.classes[i] for i in whole.labels.tolist()] == [str(v) for s in COUNTS for v in y[s].ravel()]
    with pytest.raises(UnknownSplit, match="must be one of 'train', 'val', 'test', 'all', got 'extra'"):
        load(path, split="extra")


def test_only_what_is_asked_for_is_read(tmp_path, monkeypatch):
    path = save(tmp_path, x_train=pixels(9), y_train=np.arange(9) % 2, x_test=pixels(4), y_test=np.arange(4) % 2)
    read = []
    whole = stored.read_arrays
    monkeypatch.setattr("credro.data.readers.arrays.read_arrays", lambda p, n: read.extend(n) or whole(p, n))
    assert len(load(path, split="test")) == 4
    assert sorted(read) == ["x_test", "y_test", "y_train"]


def test_a_split_without_labels_is_said(tmp_path):
    path = save(tmp_path, x_train=pixels(9), y_train=np.arange(9) % 2, x_test=pixels(4))
    data = load(path)
    assert len(data) == 9
    assert "'x_test' has no labels beside it and is left out" in data.notes
    with pytest.raises(UnknownSplit):
        load(path, split="test")


def test_usual_names_without_splits(tmp_path):
    x, y = pixels(6), np.arange(6) % 2
    for names in (("images", "labels"), ("X", "y"), ("data", "target")):
        data = load(save(tmp_path, **dict(zip(names, (x, y), strict=True))))
        assert data.labels.tolist() == y.tolist()
        assert f"samples are the array {names[0]!r}" in data.notes
    with pytest.raises(DataError, match=r"holds 'images' and 'data', which may both be x: name one with x="):
        load(save(tmp_path, images=x, data=x, y=y))
    with pytest.raises(DataError, match="holds 'x' and also 'x_test': which are meant"):
        load(save(tmp_path, x=x, y=y, x_test=x, y_test=y))
    assert len(load(save(tmp_path, x=x, y=y, x_test=x[:2], y_test=y[:2]), x="x", y="y")) == 6
    with pytest.raises(DataError, match=r"has no array 'y' \(y=\.\.\.\); it has x, z"):
        load(save(tmp_path, x=x, z=y))


def test_several_labels_at_once_are_refused(tmp_path):
    """ChestMNIST: 14 findings, any number of which a patient has."""
    y = RNG.integers(0, 2, size=(30, 14))
    with pytest.raises(DataError, match="labels are multi-label: 14 columns of 0 and 1"):
        load(save(tmp_path, train_images=pixels(30), train_labels=y))
    with pytest.raises(DataError, match="30 samples, but labels 'y' of shape"):
        load(save(tmp_path, x=pixels(30), y=y + 0.5))


def test_one_hot_labels(tmp_path):
    y = RNG.integers(0, 4, 30)
    data = load(save(tmp_path, x=pixels(30), y=np.eye(5)[y]))
    assert data.labels.tolist() == y.tolist()
    assert data.classes == ("0", "1", "2", "3", "4")
    assert any("one-hot" in note for note in data.notes)


def test_labels_and_samples_of_a_split_must_agree(tmp_path):
    with pytest.raises(DataError, match="9 samples in 'x_train', but 8 labels"):
        load(save(tmp_path, x_train=pixels(9), y_train=np.arange(8) % 2))
    with pytest.raises(DataError, match="samples of different shapes"):
        load(
            save(tmp_path, x_train=pixels(9), y_train=np.arange(9) % 2, x_test=pixels(2)[:, 1:], y_test=[0, 1]),
            split="all",
        )


def test_groups_of_splits(tmp_path):
    path = save(tmp_path, x_train=pixels(4), y_train=[0, 1, 0, 1], group_train=["b", "a", "b", "a"],
                x_test=pixels(2), y_test=[0, 1], group_test=["c", "a"])  # fmt: skip
    train, test = load(path), load(path, split="test")
    assert [train.group_names[g] for g in train.groups.tolist()] == ["b", "a", "b", "a"]
    assert [test.group_names[g] for g in test.groups.tolist()] == ["c", "a"]


def test_missing_values_of_an_array(tmp_path):
    x = np.array([[1, np.nan], [-9, 3], [4, 5], [6, np.nan]])
    path = save(tmp_path, x=x, y=[0, 1, 0, 1], columns=["a", "b"], split=["train", "train", "train", "test"])
    data = load(path)
    assert data.notes[-1] == "missing: 1 value, in b (1); the training mean stands in for numbers"
    assert load(path, missing=-9).samples.isnan().tolist() == [[False, True], [True, False], [False, False]]
    with pytest.raises(DataError, match=r"row 0 .*, column 'b' is missing \(2 in all\)"):
        load(path, missing="error")


def test_how_it_was_read_is_kept(tmp_path):
    path = save(tmp_path, images=np.ones((4, 2)) * np.arange(4)[:, None], kind=[1, 2, 1, 2], columns=["a", "b"])
    spec = load(path, y="kind", missing=(-9,), classes=("1", "2", "3")).spec
    assert (spec.label, spec.options) == ("kind", {"y": "kind", "missing": [-9], "classes": ["1", "2", "3"]})
    assert [c.name for c in spec.columns] == ["a", "b"]
    assert load(path, **spec.options).classes == ("1", "2", "3")


def test_bytes_stay_bytes(tmp_path):
    assert load(save(tmp_path, train_images=pixels(4), train_labels=[0, 1, 0, 1])).samples.dtype == torch.uint8
