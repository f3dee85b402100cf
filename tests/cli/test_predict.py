import csv
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

import credro
from credro.cli._rows import write_csv
from credro.data import load
from tests.training.common import trained


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


def test_another_method_of_the_same_training(place, cli):
    table = rows(cli("predict", place / "credro", place / "new.npz", "--method", "en-dro").out)
    assert all(r["possible"] == r["label"] for r in table)  # one distribution, one most probable class
    assert cli("predict", place / "credro", place / "new.npz", "--method", "de").code == 1


def test_abstention_by_a_threshold(place, cli, truth):
    middle = float(truth.epistemic.median())
    table = rows(cli("predict", place / "credro", place / "new.npz", "--abstain-above", middle).out)
    assert [r["abstain"] == "yes" for r in table] == (truth.epistemic > middle).tolist()


def test_abstention_by_total_uncertainty(place, cli, truth):
    middle = float(truth.total.median())
    common = ("predict", place / "credro", place / "new.npz", "--abstain-above", middle)
    table = rows(cli(*common, "--score", "total").out)
    assert [r["abstain"] == "yes" for r in table] == (truth.total > middle).tolist()
    unsure = rows(cli(*common[:-1], 0.3, "--score", "confidence").out)
    assert [r["abstain"] == "yes" for r in unsure] == (1 - truth.mean.amax(1) > 0.3).tolist()


@pytest.mark.parametrize(("score", "most"), [("total", 0.14), ("epistemic", 0.185), ("confidence", 0.14)])
def test_abstention_by_a_shown_error(place, cli, score, most):
    """Total uncertainty is what errors are looked for with, unless another score is named."""
    common = ("predict", place / "credro", place / "new.npz", "--held-out", place / "held.npz", "--format", "json")
    shown = cli(*common, "--max-error", most, *([] if score == "total" else ["--score", score]))
    assert shown.code == 0
    ensemble, held = credro.load(place / "credro"), load("digits", split="test").subset(range(5, 500))
    found = ensemble.predict(held, cache=False)
    values = {"total": found.total, "epistemic": found.epistemic, "confidence": 1 - found.mean.amax(1)}[score]
    chosen = credro.threshold(values, found.label == held.labels, most, score=score)
    assert chosen.found
    assert chosen.threshold < np.inf
    assert chosen.note in shown.err
    table = json.loads(shown.out)
    new = [r["tu"] if score == "total" else r["eu"] if score == "epistemic" else 1 - r["probability"] for r in table]
    assert [r["abstain"] for r in table] == [value >= chosen.threshold for value in new]


def test_no_threshold_is_exit_code_3_with_what_would_help(place, cli):
    """All rows are there, all abstain, and the remedy can be typed."""
    common = ("predict", place / "credro", place / "new.npz", "--held-out", place / "held.npz")
    never = cli(*common, "--max-error", 0.0001)
    assert never.code == 3
    assert "no threshold" in never.err
    assert "even without an error, 29,956 samples are needed, got 495" in never.err
    assert "every row abstains" in never.err
    assert [r["abstain"] for r in rows(never.out)] == ["yes"] * 5
    reachable = re.search(r"every row abstains; --max-error ([\d.]+) can be shown", never.err).group(1)
    assert cli(*common, "--max-error", reachable).code == 0


def test_held_out_samples_must_be_unseen(place, cli, tmp_path):
    """By content, under another name: trained samples are left out with a count, and nothing but them is refused."""
    test, train = load("digits", split="test").subset(range(5, 300)), load("digits", split="train").subset(range(400))
    ensemble = credro.load(place / "credro")
    found, _ = ensemble.overlap(train)
    for name, parts in {"mixed": (test, train), "old": (train,)}.items():
        x, y = (torch.cat([getattr(p, kind) for p in parts]) for kind in ("samples", "labels"))
        np.savez(tmp_path / f"{name}.npz", x=x[:, 0].numpy(), y=y.numpy())
    common = ("predict", place / "credro", place / "new.npz", "--max-error", 0.5)
    shown = cli(*common, "--held-out", tmp_path / "mixed.npz")
    assert (
        f"{found.trained} of 695 samples were trained on, {found.calibrated} of 695 samples were calibrated"
        in shown.err
    )
    assert "295 of 295 accepted" in shown.err
    refused = cli(*common, "--held-out", tmp_path / "old.npz")
    assert (refused.code, refused.out) == (1, "")
    assert "what is measured on them says nothing of new samples" in refused.err


def test_all_columns(place, cli, truth):
    shown = cli("predict", place / "credro", place / "new.npz", "--columns", "all")
    table = rows(shown.out)
    assert list(table[0])[:10] == list(rows(cli("predict", place / "credro", place / "new.npz").out)[0])
    assert list(table[0])[10:13] == ["p:0", "lower:0", "upper:0"]
    low, high = truth.probs.amin(0), truth.probs.amax(0)
    for kind, values in {"p": truth.mean, "lower": low, "upper": high}.items():
        got = np.array([[r[f"{kind}:{k}"] for k in range(10)] for r in table], dtype=np.float32)
        np.testing.assert_allclose(got, values, rtol=1e-5, atol=1e-8)


def test_cells_are_safe_and_come_back_as_they_were(tmp_path):
    """Names with commas, bars, quotes and formulas; numbers in single precision; rows of files that cannot be read."""
    odd = ["a,b", 'say "x"', "=1+1", "-1", "p|q", "new\nline"]
    value = float(np.float32(1) / np.float32(3))
    made = [
        {"sample": "@home.png", "label": name, "eu": value, "abstain": None, "possible": [name, "other"]}
        for name in odd
    ]
    made.append({"sample": "bad.png", "error": "truncated"})
    file = io.StringIO()
    write_csv(file, iter(made), ["sample", "label", "eu", "abstain", "possible", "p:=x", "error"])
    table = rows(file.getvalue())
    assert [r["label"] for r in table[:-1]] == ["a,b", 'say "x"', "'=1+1", "-1", "p|q", "new\nline"]
    assert table[4]["possible"] == "p\\|q|other"
    assert {np.float32(r["eu"]) for r in table[:-1]} == {np.float32(value)}
    assert table[0]["sample"] == "'@home.png"
    assert table[-1] == {**dict.fromkeys(table[-1], ""), "sample": "bad.png", "error": "truncated"}


def test_images_that_cannot_be_read_are_rows_with_an_error(place, cli, tmp_path):
    """All bad files at once where it stops; where it skips, a row for each, after those of the others."""
    for name in ("b.png", "d.png"):
        (tmp_path / name).write_bytes(b"no image")
    for name in ("a.png", "c.png"):
        (tmp_path / name).write_bytes((place / "images" / "deep" / "even" / "0.png").read_bytes())
    stopped = cli("predict", place / "credro", tmp_path)
    assert (stopped.code, stopped.out) == (1, "")
    assert "b.png" in stopped.err
    assert "d.png" in stopped.err
    table = rows(cli("predict", place / "credro", tmp_path, "--on-error", "skip").out)
    assert [r["sample"].removeprefix(f"{tmp_path}/") for r in table] == ["a.png", "c.png", "b.png", "d.png"]
    assert [bool(r["error"]) for r in table] == [False, False, True, True]
    assert table[2] == {**dict.fromkeys(table[2], ""), "sample": table[2]["sample"], "error": table[2]["error"]}
    assert table[0]["label"] == table[1]["label"] != ""
    plain = json.loads(cli("predict", place / "credro", tmp_path, "--on-error", "skip", "--format", "json").out)
    assert [sorted(r) for r in plain[2:]] == [["error", "sample"]] * 2
    fine = rows(cli("predict", place / "credro", place / "images", "--on-error", "skip").out)
    assert {r["error"] for r in fine} == {""}  # the column is there whether it is needed or not


def test_a_regression(tmp_path, cli):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(120, 3, generator=draw)
    ensemble = trained(
        "mlp", (x, x[:, 0] * 2), tmp_path / "run", members=3, recipe=credro.Recipe(epochs=3, loss="gaussian_nll")
    )
    np.savez(tmp_path / "new.npz", x=x[:6].numpy())
    table = rows(cli("predict", tmp_path / "run", tmp_path / "new.npz", "--abstain-above", 0.5).out)
    assert list(table[0]) == ["sample", "mean", "std", "lower", "upper", "eu", "au", "tu", "abstain"]
    found = ensemble.predict_regression(x[:6])
    lower, upper = found.interval(0.9)
    expected = {"mean": found.mean, "std": found.std, "lower": lower, "upper": upper, "eu": found.epistemic}
    for column, values in expected.items():
        np.testing.assert_allclose([float(r[column]) for r in table], values, rtol=1e-5, atol=1e-6)
    assert [r["abstain"] == "yes" for r in table] == (found.epistemic > 0.5).tolist()
    wrong = cli(
        "predict", tmp_path / "run", tmp_path / "new.npz", "--max-error", 0.1, "--held-out", tmp_path / "new.npz"
    )
    assert (wrong.code, "the run is a regression" in wrong.err) == (1, True)


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
        (["{}/credro", "{}/new.npz", "--columns", "many"], 2, "--columns must be one of short, all"),
        (["{}/credro", "{}/new.npz", "--score", "total"], 2, "--score goes with --abstain-above or --max-error"),
        (
            ["{}/credro", "{}/new.npz", "--abstain-above", "1", "--score", "doubt"],
            2,
            "--score must be one of epistemic, total, confidence, got 'doubt'",
        ),
        (["{}/credro", "{}/new.npz", "--format", "xml"], 2, "--format must be one of csv, json"),
        (["{}/credro", "{}/new.npz", "--max-error", "0.1"], 2, "--max-error and --held-out go together"),
        (["{}/credro", "{}/new.npz", "--max-error", "2", "--held-out", "x"], 2, "--max-error must lie in (0, 1)"),
        (["{}/credro", "{}/new.npz", "--max-error", "0.1", "--abstain-above", "1"], 2, "give one"),
        (
            ["{}/credro", "{}/new.npz", "--max-error", "0.1", "--held-out", "digits", "--held-out-split", "train"],
            1,
            "1,197 of 1,297 samples were trained on",
        ),
    ],
)
def test_errors_are_one_line(place, cli, arguments, code, message):
    shown = cli("predict", *(a.format(place) for a in arguments))
    assert shown.code == code
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
