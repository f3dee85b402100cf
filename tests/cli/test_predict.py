import csv
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

import credro
from credro.data import load


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def truth(place):
    """What the first five test digits should give, by way of the library."""
    return credro.load(place / "credro").predict(load("digits", split="test").samples[:5])


def test_arrays_as_csv(place, cli, truth):
    shown = cli("predict", place / "credro", place / "new.npz")
    assert (shown.code, shown.err) == (0, "")
    table = rows(shown.out)
    assert [r["sample"] for r in table] == ["0", "1", "2", "3", "4"]
    assert [int(r["label"]) for r in table] == truth.mean.argmax(1).tolist()
    for column, values in {"eu": truth.epistemic, "au": truth.aleatoric, "tu": truth.total}.items():
        np.testing.assert_allclose([float(r[column]) for r in table], values, rtol=1e-4, atol=1e-7)
    low, high = truth.probs.amin(0), truth.probs.amax(0)
    for i, row in enumerate(table):
        label = int(row["label"])
        assert float(row["lower"]) == pytest.approx(float(low[i, label]), rel=1e-4)
        assert float(row["upper"]) == pytest.approx(float(high[i, label]), rel=1e-4)
        assert float(row["lower"]) <= float(row["probability"]) <= float(row["upper"])
        assert row["abstain"] == ""
        assert row["label"] in row["possible"].split("|")


def test_json_has_all_intervals_and_what_remains_possible(place, cli, truth):
    table = json.loads(cli("predict", place / "credro", place / "new.npz", "--format", "json").out)
    low, high = truth.probs.amin(0), truth.probs.amax(0)
    for i, row in enumerate(table):
        np.testing.assert_allclose([c["lower"] for c in row["classes"].values()], low[i], rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose([c["upper"] for c in row["classes"].values()], high[i], rtol=1e-4, atol=1e-9)
        # with slack 1 - sum(l) for all, a class is out when another one's lower is above its upper
        assert {c for c, v in row["classes"].items() if v["upper"] >= max(low[i])} >= set(row["possible"])


def test_a_folder_and_files_of_images(place, cli, truth):
    table = rows(cli("predict", place / "credro", place / "images").out)
    assert [r["sample"].removeprefix(f"{place}/") for r in table] == [
        "images/deep/even/0.png",
        "images/deep/even/2.png",
        "images/deep/odd/1.png",
        "images/deep/odd/3.png",
        "images/large.jpg",
    ]
    for row, i in zip(table, [0, 2, 1, 3], strict=False):  # PNGs of 8x8 come through unchanged
        assert float(row["eu"]) == pytest.approx(float(truth.epistemic[i]), rel=1e-4)
    image = Image.open(place / "images" / "large.jpg").convert("L").resize((8, 8), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(image))[None, None]
    expected = credro.load(place / "credro").predict(pixels)
    assert float(table[-1]["eu"]) == pytest.approx(float(expected.epistemic[0]), rel=1e-3)
    one = rows(cli("predict", place / "credro", place / "images" / "large.jpg").out)
    assert (one[0]["sample"], one[0]["label"]) == (table[-1]["sample"], table[-1]["label"])
    assert float(one[0]["eu"]) == pytest.approx(float(table[-1]["eu"]), rel=1e-4)


def test_tables_with_and_without_labels_in_any_order_of_columns(place, cli):
    with_labels = cli("predict", place / "table", place / "labelled.csv")
    without = cli("predict", place / "table", place / "unlabelled.csv")
    assert with_labels.out == without.out
    true = [row["outcome"] for row in rows((place / "labelled.csv").read_text())]
    right = [row["label"] == t for row, t in zip(rows(without.out), true, strict=True)]
    assert sum(right) >= 6  # it has learned something: the columns are not confused


def test_a_named_set_in_batches_and_a_file(place, cli, tmp_path):
    out = tmp_path / "deep" / "labels.csv"
    shown = cli("predict", place / "credro", "digits", "--split", "test", "--batch-size", 64, "--out", out)
    assert (shown.out, shown.err) == ("", f"wrote {out}\n")
    table = rows(out.read_text())
    test = load("digits", split="test")
    labels = credro.load(place / "credro").predict(test, cache=False).label
    assert [int(r["label"]) for r in table] == labels.tolist()
    assert list(out.parent.iterdir()) == [out]


def test_several_inputs_are_told_apart(place, cli):
    table = rows(cli("predict", place / "credro", place / "new.npz", place / "images", "digits").out)
    assert table[0]["sample"].endswith("0.png")
    assert {"new:0", "digits:499"} <= {r["sample"] for r in table}


def test_another_method_of_the_same_rule(place, cli):
    table = rows(cli("predict", place / "credro", place / "new.npz", "--method", "en-dro").out)
    assert all(r["possible"] == r["label"] for r in table)  # one distribution, one most probable class
    assert cli("predict", place / "credro", place / "new.npz", "--method", "de").code == 1


def test_abstention_by_a_threshold(place, cli, truth):
    middle = float(truth.epistemic.median())
    table = rows(cli("predict", place / "credro", place / "new.npz", "--abstain-above", middle).out)
    assert [r["abstain"] == "yes" for r in table] == (truth.epistemic > middle).tolist()


def test_abstention_by_a_shown_error(place, cli):
    common = ("predict", place / "credro", place / "new.npz", "--held-out", place / "held.npz", "--format", "json")
    shown = cli(*common, "--max-error", 0.5)
    ensemble, held = credro.load(place / "credro"), load("digits", split="test").subset(range(5, 500))
    found = ensemble.predict(held, cache=False)
    chosen = credro.threshold(found.epistemic, found.label == held.labels, 0.5)
    assert chosen.note in shown.err
    table = json.loads(shown.out)
    assert [r["abstain"] for r in table] == [r["eu"] >= chosen.threshold for r in table]
    never = cli(*common, "--max-error", 0.0001)
    assert "no threshold" in never.err
    assert all(r["abstain"] for r in json.loads(never.out))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{}/none", "x.png"], 1, "is not a run"),
        (["{}/credro", "none.png"], 1, "none.png was not found"),
        (["{}/credro", "{}/credro/config.json"], 1, "must be a folder, an image, .npz"),
        (["{}/credro", "{}/credro"], 1, "holds no images"),
        (["{}/table", "{}/images"], 1, "is an image, but the run takes samples of shape (5,)"),
        (["{}/table", "{}/new.npz"], 1, "the ensemble takes (5,)"),
        (["{}/table", "{}/lacking.csv"], 1, "has no column 'size'"),
        (["{}/credro", "{}/new.npz", "--method", "bayes"], 2, "--method must be one of de"),
        (["{}/credro", "{}/new.npz", "--format", "xml"], 2, "--format must be one of csv, json"),
        (["{}/credro", "{}/new.npz", "--max-error", "0.1"], 2, "--max-error and --held-out go together"),
        (["{}/credro", "{}/new.npz", "--max-error", "2", "--held-out", "x"], 2, "--max-error must lie in (0, 1)"),
        (["{}/credro", "{}/new.npz", "--max-error", "0.1", "--abstain-above", "1"], 2, "give one"),
        (
            ["{}/credro", "{}/new.npz", "--max-error", "0.1", "--held-out", "digits", "--held-out-split", "train"],
            1,
            "the run was trained on these samples",
        ),
    ],
)
def test_errors_are_one_line(place, cli, arguments, code, message):
    shown = cli("predict", *(a.format(place) for a in arguments))
    assert shown.code == code
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
