import csv

import numpy as np
import pytest
import torch

from credro.data import DataError, DataNotFound, load
from tests.data.layouts import chw, images, write_image

COLUMNS = ["", "patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split"]


def table(path, columns, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def write_wilds(root, n=20, change=lambda rows: None, skip=()):
    """As published by WILDS: a numbered table, patients of three digits, patches in a folder for each node."""
    folder = root / "camelyon17_v1.0"
    x = images(n, 6, 6)
    rows = [[i, f"{i % 7:03}", i % 2, 10 * i, 7 * i, (i // 3) % 2, i % 10, i % 5, 0] for i in range(n)]
    for i, (_, patient, node, a, b, *_rest) in enumerate(rows):
        place = f"patient_{patient}_node_{node}"
        if i not in skip:
            write_image(folder / "patches" / place / f"patch_{place}_x_{a}_y_{b}.png", x[i])
    change(rows)
    table(folder / "metadata.csv", COLUMNS, rows)
    return x, rows


def test_wilds_layout(tmp_path):
    x, rows = write_wilds(tmp_path)
    for split, centers in (("train", (0, 1, 3)), ("test", (2, 4)), ("all", (0, 1, 2, 3, 4))):
        data = load("camelyon17", split=split, root=tmp_path)
        keep = [i for i, row in enumerate(rows) if row[7] in centers]
        assert not data.in_memory
        assert data.shape == (3, 6, 6)
        assert len(data) == len(keep)
        np.testing.assert_array_equal(data.batch(torch.arange(len(data))).numpy(), chw(x)[keep])
        assert data.labels.tolist() == [rows[i][5] for i in keep]
        assert data.classes == ("normal", "tumor")
        assert [data.group_names[g] for g in data.groups.tolist()] == [f"center {rows[i][7]}" for i in keep]
    assert len(load("camelyon17", root=tmp_path)) == 12


def test_patients_keep_their_numbers(tmp_path):
    _, rows = write_wilds(tmp_path)
    for split in ("train", "test"):
        data = load("camelyon17", split=split, root=tmp_path, group="patient")
        keep = [row for row in rows if (row[7] in (2, 4)) == (split == "test")]
        assert [data.group_names[g] for g in data.groups.tolist()] == [row[1] for row in keep]
        assert data.group_names == tuple(f"{i:03}" for i in range(7))


def test_own_centres_size_and_memory(tmp_path):
    write_wilds(tmp_path)
    data = load("camelyon17", root=tmp_path, centers=(4,), size=(3, 3), lazy=False)
    assert data.in_memory
    assert data.shape == (3, 3, 3)
    assert set(data.groups.tolist()) == {4}


def test_table_that_lost_its_zeros(tmp_path):
    """A spreadsheet turns patient 004 into 4; the files are still called 004."""

    def strip(rows):
        for row in rows:
            row[1] = str(int(row[1]))

    write_wilds(tmp_path, change=strip)
    assert load("camelyon17", root=tmp_path).batch(torch.tensor([0])).shape == (1, 3, 6, 6)


@pytest.mark.parametrize("column", ["center", "centre"])
def test_images_with_a_table(tmp_path, column):
    x = images(10, 6, 6)
    rows = [[f"pics/{i}.png", i % 2, i % 5, f"p{i // 2}"] for i in range(10)]
    for i, row in enumerate(rows):
        write_image(tmp_path / "camelyon17" / row[0], x[i])
    table(tmp_path / "camelyon17/metadata.csv", ["path", "label", column, "patient"], rows)
    data = load("camelyon17", split="test", root=tmp_path)
    keep = [2, 4, 7, 9]
    np.testing.assert_array_equal(data.batch(torch.arange(4)).numpy(), chw(x)[keep])
    assert data.groups.tolist() == [2, 4, 2, 4]
    assert load("camelyon17", root=tmp_path, group="patient").group_names == ("p0", "p1", "p2", "p3", "p4")
    with pytest.raises(ValueError, match=r"group must be a column of .*; got 'slide'"):
        load("camelyon17", root=tmp_path, group="slide")


def spoiled(column, value):
    def change(rows):
        rows[3][column] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoiled(5, 2), r"label 2 of sample 3 is outside 0\.\.1"),
        (spoiled(5, "yes"), "column 'tumor' of row 4 must be a whole number, got 'yes'"),
        (spoiled(7, 5), "center 5 is not one of"),
        (spoiled(7, ""), "column 'center' of row 4"),
        (lambda rows: rows[3].__delitem__(slice(5, None)), "column 'tumor' of row 4"),
        (lambda rows: rows.clear(), "holds no samples"),
        (lambda rows: rows.__setitem__(slice(None), rows[2::5]), "no samples of the centres 0, 1, 3"),
    ],
)
def test_mislabelled_or_empty(tmp_path, change, message):
    write_wilds(tmp_path, change=change)
    with pytest.raises(DataError, match=message):
        load("camelyon17", root=tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x81garbage", b"patient,node\n1,\x9d\n"])
def test_unreadable_table(tmp_path, content):
    write_wilds(tmp_path)
    (tmp_path / "camelyon17_v1.0/metadata.csv").write_bytes(content)
    with pytest.raises(DataError, match=r"metadata\.csv: not a readable table"):
        load("camelyon17", root=tmp_path)


def test_broken_patch_is_named(tmp_path):
    write_wilds(tmp_path)
    data = load("camelyon17", root=tmp_path)
    for broken in (data.paths[0].read_bytes()[:40], b""):
        data.paths[0].write_bytes(broken)
        with pytest.raises(DataError, match=r"patch_patient_000_node_0_x_0_y_0\.png: not a complete image"):
            data.batch(torch.arange(2))


def test_missing_images(tmp_path):
    write_wilds(tmp_path, skip=(5, 6))
    with pytest.raises(
        DataError, match=r"2 of 12 images are missing, the first is .*patch_patient_005_node_1_x_50_y_35"
    ):
        load("camelyon17", root=tmp_path)


def test_wrong_columns_and_missing_set(tmp_path):
    with pytest.raises(DataNotFound, match=r"camelyon17_v1\.0/metadata\.csv"):
        load("camelyon17", root=tmp_path)
    table(tmp_path / "camelyon17/metadata.csv", ["file", "label"], [["x", 1]])
    with pytest.raises(
        DataError, match=r"must have the columns patient, .* or path, label, center; it has file, label"
    ):
        load("camelyon17", root=tmp_path)
