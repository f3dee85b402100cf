import numpy as np
import pytest
import torch

from credro.data import DataError, DataNotFound, UnknownSplit, load
from tests.data.layouts import chw, images, rng


def save(tmp_path, **arrays):
    path = tmp_path / "own.npz"
    np.savez(path, **arrays)
    return path


def test_table_with_everything(tmp_path):
    x = rng().normal(size=(6, 3))
    path = save(
        tmp_path,
        x=x,
        y=np.array([2, 0, 1, 1, 0, 2], np.uint8),
        group=np.array(["p2", "p1", "p2", "p3", "p1", "p1"]),
        classes=np.array(["a", "b", "c"]),
        columns=np.array(["u", "v", "w"]),
        split=np.array(["train", "test", "train", "train", "test", "train"]),
    )
    assert load(path).labels.tolist() == [2, 1, 1, 2]  # the training samples
    data = load(path, split="all")
    assert data.name == "own"
    assert data.samples.dtype == torch.float32
    np.testing.assert_array_equal(data.samples.numpy(), x.astype(np.float32))
    assert data.labels.tolist() == [2, 0, 1, 1, 0, 2]
    assert data.labels.dtype == torch.int64
    assert data.classes == ("a", "b", "c")
    assert data.columns == ("u", "v", "w")
    assert [data.group_names[g] for g in data.groups.tolist()] == ["p2", "p1", "p2", "p3", "p1", "p1"]
    test = load(path, split="test")
    np.testing.assert_array_equal(test.samples.numpy(), x.astype(np.float32)[[1, 4]])
    assert test.group_names == data.group_names
    assert len(load(path, split="all")) == 6
    with pytest.raises(UnknownSplit, match="must be one of 'train', 'test', 'all', got 'val'"):
        load(path, split="val")


@pytest.mark.parametrize("c", [1, 3])
def test_images_in_any_layout(tmp_path, c):
    x = images(5, 8, 9, 3)[..., :c]
    y = np.arange(5)
    for stored in (x, chw(x)):
        data = load(save(tmp_path, x=stored, y=y))
        assert data.samples.dtype == torch.uint8
        assert data.shape == (c, 8, 9)
        np.testing.assert_array_equal(data.samples.numpy(), chw(x))


def test_grey_without_channels(tmp_path):
    x = images(5, 8, 9, 1)
    assert load(save(tmp_path, x=x, y=np.arange(5))).shape == (1, 8, 9)


def test_layout_that_the_shape_does_not_tell(tmp_path):
    x = images(4, 3, 7, 3)
    path = save(tmp_path, x=x, y=np.arange(4))
    with pytest.raises(DataError, match="layout='chw' or 'hwc'"):
        load(path)
    np.testing.assert_array_equal(load(path, layout="chw").samples.numpy(), x)
    np.testing.assert_array_equal(load(path, layout="hwc").samples.numpy(), chw(x))


def test_bytes_in_a_table_are_numbers_not_pixels(tmp_path):
    x = np.array([[255, 3], [0, 1]], np.uint8)
    data = load(save(tmp_path, x=x, y=np.array([0, 1])))
    assert data[0][0].tolist() == [255.0, 3.0]


def test_other_names(tmp_path):
    path = save(
        tmp_path,
        wine_x=np.ones((3, 2)),
        wine_y=np.arange(3),
        site=np.array([1, 0, 1]),
        sites=np.array(["rome", "oslo"]),
    )
    data = load(path, x="wine_x", y="wine_y", group="site")
    assert data.groups.tolist() == [1, 0, 1]
    assert data.group_names == ("rome", "oslo")
    with pytest.raises(DataError, match=r"has no array 'x' .*; it has wine_x, wine_y, site, sites"):
        load(path)
    with pytest.raises(DataError, match="has no array 'town'"):
        load(path, x="wine_x", y="wine_y", group="town")


def test_numbered_groups_sort_by_value(tmp_path):
    path = save(tmp_path, x=np.ones((4, 1)), y=np.array([0, 1, 0, 1]), group=np.array([1234567, 9, 10, 9]))
    data = load(path)
    assert data.group_names == ("9", "10", "1234567")
    assert data.groups.tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize(
    ("y", "options", "labels", "classes"),
    [
        (np.array([0, 2, 2]), {}, [0, 1, 1], ("0", "2")),  # no class is invented
        (np.array([0, 2, 2]), {"classes": 3}, [0, 2, 2], ("0", "1", "2")),
        (np.array([2011, 2012, 2011]), {}, [0, 1, 0], ("2011", "2012")),
        (np.array(["b", "a", "b"]), {}, [1, 0, 1], ("a", "b")),
        (np.array(["b", "a", "b"]), {"classes": ("b", "c", "a")}, [0, 2, 0], ("b", "c", "a")),
        (np.array([-1, 1, -10]), {}, [1, 2, 0], ("-10", "-1", "1")),
        (np.array([True, False, True]), {}, [1, 0, 1], ("False", "True")),
        (np.array([[1], [0], [1]]), {}, [1, 0, 1], ("0", "1")),
        (np.array([1.0, 0.0, 1.0]), {"task": "classify"}, [1, 0, 1], ("0", "1")),
        (np.array([1.0, 0.0, 2.5]), {}, [1.0, 0.0, 2.5], ()),
        (np.array([2011, 2012, 2011]), {"task": "regress"}, [2011.0, 2012.0, 2011.0], ()),
    ],
)
def test_labels(tmp_path, y, options, labels, classes):
    data = load(save(tmp_path, x=np.ones((3, 2)), y=y), **options)
    assert data.labels.tolist() == labels
    assert data.classes == classes
    assert data.labels.dtype == (torch.int64 if classes else torch.float32)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"y": np.array([0, 1])}, {}, "3 samples, but labels 'y' of shape"),
        (
            {"y": np.array([0, 1, 3]), "classes": np.array(["a", "b"])},
            {},
            r"'3' of row 2 .* is not one of the 2 classes: a, b",
        ),
        (
            {"y": np.array(["a", "b", "c"])},
            {"classes": ("a", "b")},
            r"'c' of row 2 .* is not one of the 2 classes: a, b \(1 such labels in all\)",
        ),
        ({"y": np.array([1, 1, 1])}, {}, "all 3 samples have label 1"),
        ({"y": np.array([0.5, np.nan, 1])}, {}, "that of row 1 .* is missing"),
        ({"y": np.array(["a", "b", "c"])}, {"task": "regress"}, "cannot be regressed on"),
        ({"x": np.zeros((0, 2)), "y": np.zeros(0)}, {}, "holds no samples"),
        ({"x": np.ones(3)}, {}, "2 to 4 dimensions"),
        ({"x": np.array([["a"], ["b"], ["c"]])}, {}, "x must be numbers"),
        ({"group": np.zeros(2)}, {}, "3 samples, but groups of shape"),
        ({"columns": np.array(["a"])}, {}, "2 features, but 1 names"),
        ({"split": np.array(["a"])}, {"split": "a"}, "3 samples, but 1 entries in 'split'"),
        (
            {"x": np.array([[1, 2], [3, np.nan], [5, 6]])},
            {"missing": "error"},
            "row 1 .*, column '1' is missing .1 in all.; missing='keep'",
        ),
        ({"y": np.array([0, np.nan, 1])}, {"task": "classify"}, "that of row 1 .* is missing"),
        ({"group": np.array([0, 1, np.nan])}, {}, "group of row 2 is nan"),
        (
            {"group": np.array(["a", "b", "a"]), "groups": np.array(["x", "y"])},
            {},
            "groups must be whole numbers, got <U1",
        ),
        ({"x": np.array([0, np.nan, 1]).reshape(3, 1, 1)}, {}, "image 1 holds values that are not finite"),
        ({"x": np.array([[1, 2], [np.inf, 4], [5, 6]])}, {"missing": "keep"}, "row 1 .*, column '0' is infinite"),
    ],
)
def test_wrong_content(tmp_path, arrays, options, message):
    path = save(tmp_path, **{"x": np.ones((3, 2)), "y": np.arange(3), **arrays})
    with pytest.raises(DataError, match=message) as caught:
        load(path, **options)
    assert str(path) in str(caught.value)


def test_missing_values_can_be_kept(tmp_path):
    path = save(tmp_path, x=np.array([[1, np.nan], [2, 3]]), y=np.array([0, 1]))
    for option in ({}, {"missing": "keep"}):
        assert load(path, **option).samples.isnan().tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"missing": "drop"}, "missing must be 'error', 'keep', or texts .*, got 'drop'"),
        ({"task": "guess"}, "task must be 'classify', 'regress' or None, got 'guess'"),
        ({"layout": "nhwc"}, "layout must be 'hwc', 'chw' or None, got 'nhwc'"),
        ({"split": "train"}, "does not say which samples belong to which split"),
    ],
)
def test_wrong_options(tmp_path, option, message):
    with pytest.raises(ValueError, match=message):
        load(save(tmp_path, x=np.ones((3, 2)), y=np.arange(3)), **option)


def test_broken_files(tmp_path):
    path = save(tmp_path, x=np.ones((30, 2)), y=np.arange(30))
    whole = path.read_bytes()
    for broken in (whole[:-50], whole[:100], b"", b"nothing of the kind"):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"not a complete \.npz"):
            load(path)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(DataError, match=r"not a complete \.npz"):
        load(path)
    path.unlink()
    with pytest.raises(DataNotFound, match=r"own\.npz' was not found"):
        load(path)


def test_stored_objects_are_refused(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, x=np.array([{}, {}], dtype=object), y=np.arange(2))
    with pytest.raises(DataError, match="plain arrays"):
        load(path)
