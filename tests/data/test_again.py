"""New samples for a trained run."""

import math

import numpy as np
import pytest
import torch

from credro.data import DataNotFound, UnknownSplit, load
from credro.data.again import Wanted, read_labelled, read_ood, read_samples
from credro.data.spec import DataSpec
from tests.data.layouts import images, write_image

ROWS = "age,town,weight,y\n30,Rome,60.5,a\n,Oslo,?,b\n50,,70.25,a\n41,Rome,NA,b\n"
NAN = math.nan
NUMBERS = [[30, 60.5], [NAN, NAN], [50, 70.25], [41, NAN]]
TOWNS = [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]]  # Oslo, Rome, (other); a missing town is none of them


def wanted(data):
    spec = DataSpec.from_json(data.spec.to_json())  # as a run keeps it
    return Wanted(data.shape, data.classes, spec)


def split_up(data):
    at = [data.columns.index(name) for name in ("age", "weight")]
    towns = [data.columns.index(f"town={name}") for name in ("Oslo", "Rome", "(other)")]
    return data.samples[:, at], data.samples[:, towns]


@pytest.mark.parametrize("missing", [None, "error", "keep"])
def test_missing_cells_of_new_rows_are_nan(tmp_path, missing):
    """Whether or not training had any, and also where it refused them: prediction has a mean for them."""
    whole = ROWS if missing is None else "age,town,weight,y\n30,Rome,60.5,a\n41,Oslo,61.5,b\n50,Rome,70.25,a\n"
    (tmp_path / "train.csv").write_text(whole)
    run = wanted(load(tmp_path / "train.csv", missing=missing))
    (tmp_path / "new.csv").write_text(ROWS)
    (tmp_path / "bare.csv").write_text("".join(line.rpartition(",")[0] + "\n" for line in ROWS.splitlines()))
    read = [
        read_labelled(run, tmp_path / "new.csv"),
        *read_samples(run, [tmp_path / "new.csv"]),
        *read_samples(run, [tmp_path / "bare.csv"]),
        read_ood(run, str(tmp_path / "new.csv"), load(tmp_path / "new.csv"))[1],
    ]
    for data in read:
        numbers, towns = split_up(data)
        torch.testing.assert_close(numbers, torch.tensor(NUMBERS), equal_nan=True)
        assert towns.tolist() == TOWNS
        assert any(note.startswith("missing: 4 values, in weight (2)") for note in data.notes)
    assert read[0].labels.tolist() == [0, 1, 0, 1]


def test_a_column_that_is_empty_in_new_rows(tmp_path):
    (tmp_path / "train.csv").write_text(ROWS)
    run = wanted(load(tmp_path / "train.csv"))
    (tmp_path / "new.csv").write_text("age,town,weight\n,,\n33,Bern,\n")
    (data,) = read_samples(run, [tmp_path / "new.csv"])
    numbers, towns = split_up(data)
    torch.testing.assert_close(numbers, torch.tensor([[NAN, NAN], [33, NAN]]), equal_nan=True)
    assert towns.tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("missing", [None, "error", -9])
def test_missing_values_of_new_arrays_are_nan(tmp_path, missing):
    np.savez(tmp_path / "train.npz", x=np.arange(8.0).reshape(4, 2), y=[0, 1, 0, 1])
    run = wanted(load(tmp_path / "train.npz", missing=missing))
    np.savez(tmp_path / "new.npz", x=[[1.0, np.nan], [-9.0, 2.0]], y=[1, 0])
    expected = torch.tensor([[1.0, NAN], [NAN if missing == -9 else -9.0, 2.0]])
    for data in (read_labelled(run, tmp_path / "new.npz"), *read_samples(run, [tmp_path / "new.npz"])):
        torch.testing.assert_close(data.samples, expected, equal_nan=True)


def test_missing_values_keep_their_identity(tmp_path):
    """NaN does not equal itself; a sample that lacks a value is still the same sample."""
    (tmp_path / "t.csv").write_text(ROWS)
    one, two = load(tmp_path / "t.csv"), load(tmp_path / "t.csv")
    assert one.samples.isnan().any()
    assert torch.equal(one.content(), two.content())
    assert one.fingerprint() == two.fingerprint()
    assert one.repeats()


def test_relative_paths_are_read_below_the_root(tmp_path):
    for i in range(2):
        write_image(tmp_path / "new" / f"{i}.png", images(1, 4, 4, seed=i)[0])
    run = Wanted((3, 4, 4), ("a", "b"), DataSpec(""))
    for given in (["new"], ["new/0.png", "new/1.png"]):
        (data,) = read_samples(run, given, root=tmp_path)
        assert torch.equal(data.batch(torch.arange(2)), read_samples(run, [tmp_path / "new"])[0].batch(torch.arange(2)))
    with pytest.raises(DataNotFound, match=r"no name of a set \(did you mean 'svhn'\?\)") as caught:
        read_samples(run, ["svnh"], root=tmp_path)
    assert caught.value.places[1] == tmp_path / "svnh"


def test_no_choice_hangs_on_the_words_of_an_error(tmp_path, monkeypatch):
    for part in ("train", "val"):
        for i, kind in enumerate(("cat", "dog")):
            write_image(tmp_path / part / kind / f"{i}.png", images(1, 4, 4, seed=i)[0])
    run = Wanted((3, 4, 4), ("cat", "dog"), DataSpec(str(tmp_path)))
    monkeypatch.setattr(UnknownSplit, "__str__", lambda self: "other words")
    monkeypatch.setattr("credro.data.readers.folders.split_of", lambda word: None)  # val does not stand in for test
    assert read_labelled(run).spec.split == "val"
