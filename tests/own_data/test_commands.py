"""People's own data through the command line: what a new user does, and what used to go wrong in silence."""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import credro
from credro.cli.app import run

RNG = np.random.default_rng(0)
QUICK = ["--members", "2", "--executor", "sequential", "--threads", "1"]
SPLITS = np.array(["train"] * 60 + ["val"] * 40 + ["test"] * 100)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a MedMNIST-like array, a table with splits, and runs trained on them as a new user would."""
    here = tmp_path_factory.mktemp("own")
    noise = RNG.integers(0, 256, size=(200, 8, 8), dtype=np.uint8)  # nothing to learn, everything to remember
    np.savez(here / "xray.npz", x=noise, y=RNG.integers(1, 3, size=200), split=SPLITS)
    frame = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["a", "b", "c"])
    frame["quality"], frame["split"] = RNG.integers(3, 6, size=200), SPLITS
    frame.to_csv(here / "wine.csv", index=False)
    fit = ["--epochs", "60", "--lr", "0.01", "--set", "optimizer=adamw", "--no-early-stop"]
    assert run(["train", "--data", f"{here}/xray.npz", "--net", "mlp", *fit, *QUICK, "--out", f"{here}/xray"]) == 0
    table = ["--data", f"{here}/wine.csv", "--label", "quality"]
    assert run(["train", *table, *fit, *QUICK, "--out", f"{here}/wine"]) == 0
    return here


@pytest.mark.parametrize(("name", "file", "classes"), [("xray", "xray.npz", 2), ("wine", "wine.csv", 3)])
def test_training_takes_the_training_split(place, name, file, classes):
    ens = credro.load(place / name)
    assert ens.run.config().data.samples == 60
    assert len(ens.classes) == classes
    assert ens.spec.split == "train"
    whole = credro.data.load(place / file, split="all", **({"label": "quality"} if file == "wine.csv" else {}))
    _, used = ens.unseen(whole)
    assert (used.trained, used.samples) == (60, 200)


def test_the_first_line_says_so(place, cli, tmp_path):
    shown = cli("train", "--data", place / "xray.npz", "--net", "mlp", *QUICK, "--epochs", 2, "--out", tmp_path / "r")
    assert shown.code == 0
    assert "split 'train'" in shown.err.splitlines()[0]
    assert "60" in shown.err.splitlines()[0]
    assert "2 classes: 1, 2" in shown.err
    _, used = credro.load(tmp_path / "r").unseen(credro.data.load(place / "xray.npz", split="all"))
    assert used.trained + used.watched == 60  # what training stops by is a part of train
    assert used.watched == 9
    named = ["--held-out", "val", "--out", tmp_path / "named"]
    assert cli("train", "--data", place / "xray.npz", "--net", "mlp", *QUICK, "--epochs", 2, *named).code == 0
    _, used = credro.load(tmp_path / "named").unseen(credro.data.load(place / "xray.npz", split="all"))
    assert (used.trained, used.watched) == (60, 40)


@pytest.mark.parametrize("name", ["xray", "wine"])
def test_what_is_evaluated_was_not_trained_on(place, cli, tmp_path, name):
    shown = cli("evaluate", place / name, "--json", tmp_path / "e.json", "--methods", "credro")
    assert shown.code == 0
    [result] = json.loads((tmp_path / "e.json").read_text())
    assert result["samples"] == 100  # the test split
    assert result["results"][0]["accuracy"] < 0.75  # labels are noise: only what was trained on can be known
    seen = cli("evaluate", place / name, "--split", "train")
    assert seen.code == 1
    assert "60 of 60 samples were trained on" in seen.err
    everything = cli("evaluate", place / name, "--split", "all", "--json", tmp_path / "all.json")
    assert everything.code == 0
    assert "60 of 200 samples were trained on" in everything.err
    assert json.loads((tmp_path / "all.json").read_text())[0]["samples"] == 140


def test_a_copy_under_another_name_is_still_seen(place, cli, tmp_path):
    """By content: another file, another format, another order, no splits."""
    arrays = np.load(place / "xray.npz")
    order = RNG.permutation(60)
    np.savez(tmp_path / "fresh.npz", x=arrays["x"][:60][order].astype(np.float32) / 255, y=arrays["y"][:60][order])
    shown = cli("evaluate", place / "xray", "--data", tmp_path / "fresh.npz")
    assert shown.code == 1
    assert "60 of 60 samples were trained on" in shown.err
    for i in order[:40]:
        path = tmp_path / "photos" / str(arrays["y"][i]) / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(arrays["x"][i]).save(path)
    shown = cli("evaluate", place / "xray", "--data", tmp_path / "photos")
    assert shown.code == 1
    assert "40 of 40 samples were trained on" in shown.err


def test_no_promise_is_made_on_trained_samples(place, cli, tmp_path):
    asked = ["predict", place / "xray", place / "xray.npz", "--max-error", 0.1, "--held-out", place / "xray.npz"]
    shown = cli(*asked, "--held-out-split", "train", "--out", tmp_path / "a.csv")
    assert shown.code == 1
    assert "60 of 60 samples were trained on" in shown.err
    shown = cli(*asked, "--held-out-split", "all", "--out", tmp_path / "a.csv")
    assert "60 of 200 samples were trained on" in shown.err
    assert shown.code == 3  # noise has no threshold
    honest = cli(*asked, "--held-out-split", "val", "--out", tmp_path / "a.csv")
    assert honest.code == 3  # nothing of val was used, and it says what it is worth
    assert "40" in honest.err
    assert "left out" not in honest.err


def test_labels_keep_their_names(place, cli):
    shown = cli("predict", place / "xray", place / "xray.npz", "--split", "test")
    assert {row["label"] for row in csv.DictReader(io.StringIO(shown.out))} <= {"1", "2"}


def test_data_show_is_the_plan(place, cli):
    shown = cli("data", "show", place / "wine.csv", "--label", "quality")
    assert shown.code == 0
    assert "split 'train'" in shown.out
    assert "3 classes: 3, 4, 5" in shown.out
    plan = json.loads(cli("data", "show", place / "wine.csv", "--label", "quality", "--json").out)
    assert plan["read"]["label"] == "quality"
    assert [c["name"] for c in plan["read"]["columns"]] == ["a", "b", "c"]
    assert plan["samples"] == 60


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two classes of phone photos: dark and light, one lying on its side, one broken, one in CMYK."""
    here = tmp_path_factory.mktemp("photos")
    for kind, low in (("dark", 0), ("light", 128)):
        for i in range(12):
            pixels = RNG.integers(low, low + 120, size=(24, 32, 3), dtype=np.uint8)
            image, options = Image.fromarray(pixels), {}
            if i == 1:
                image = image.convert("CMYK")
            if i == 2:
                options["exif"] = Image.Exif()
                options["exif"][0x0112] = 6
                image = image.transpose(Image.Transpose.ROTATE_90)
            (here / "all" / kind).mkdir(parents=True, exist_ok=True)
            image.save(here / "all" / kind / f"{i}.jpg", quality=95, **options)
    (here / "new").mkdir()
    Image.fromarray(RNG.integers(0, 255, size=(40, 20, 3), dtype=np.uint8)).save(here / "new" / "good.jpg")
    for i in range(3):
        (here / "new" / f"bad{i}.jpg").write_bytes(b"\xff\xd8 no photo")
    train = ["train", "--data", f"{here}/all", "--size", "16", "--net", "cnn", "--epochs", "3", *QUICK]
    assert run([*train, "--out", f"{here}/run"]) == 0
    return here


def test_broken_images_are_all_named_or_left_out(photos, cli):
    stopped = cli("predict", photos / "run", photos / "new")
    assert stopped.code == 1
    assert all(f"bad{i}.jpg" in stopped.err for i in range(3))  # in one go
    shown = cli("predict", photos / "run", photos / "new", "--on-error", "skip", "--columns", "all")
    assert shown.code == 0
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert len(rows) == 4
    [good] = [row for row in rows if row["label"]]
    assert good["sample"].endswith("good.jpg")
    assert sum(bool(row["error"]) for row in rows) == 3
    assert float(good["lower:dark"]) <= float(good["p:dark"]) <= float(good["upper:dark"])


def test_python_and_the_command_see_the_same_photo(photos, cli):
    path = photos / "all" / "dark" / "2.jpg"  # the one on its side
    [row] = csv.DictReader(io.StringIO(cli("predict", photos / "run", path).out))
    ens = credro.load(photos / "run")
    for x in (str(path), path, [path], Image.open(path), [Image.open(path)]):
        pred = ens.predict(x)
        assert float(pred.epistemic[0]) == pytest.approx(float(row["eu"]), rel=1e-5)
    both = ens.predict([path, photos / "new" / "good.jpg"])
    assert len(both) == 2
    assert both.samples[1].endswith("good.jpg")


def test_an_ood_set_gets_the_name_it_is_given(photos, cli, tmp_path):
    Image.fromarray(RNG.integers(0, 255, size=(16, 16, 3), dtype=np.uint8)).save(tmp_path / "t.png")
    Image.fromarray(RNG.integers(0, 255, size=(16, 16, 3), dtype=np.uint8)).save(tmp_path / "u.png")
    known = tmp_path / "known"
    for kind, low in (("dark", 0), ("light", 128), ("striped", 60)):
        (known / kind).mkdir(parents=True)
        for i in range(6):
            pixels = RNG.integers(low, low + 120, size=(16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(known / kind / f"{i}.png")
    shown = cli("evaluate", photos / "run", "--data", known, "--ood", f"textures={tmp_path}", "--methods", "credro")
    assert shown.code == 0, shown.err
    assert "textures" in shown.out
    assert re.search(r"AUROC +unknown|unknown +AUROC", shown.out)  # the striped ones, and no refusal of all
    assert "6 samples" in shown.err


def test_force_starts_anew_and_removes_nothing_but_a_run(place, cli, tmp_path):
    again = [
        "train",
        "--data",
        place / "wine.csv",
        "--label",
        "quality",
        *QUICK,
        "--no-early-stop",
        "--out",
        tmp_path / "w",
    ]
    assert cli(*again, "--epochs", 1).code == 0
    assert cli(*again, "--epochs", 2).code == 1
    assert cli(*again, "--epochs", 2, "--force").code == 0
    assert credro.load(tmp_path / "w").run.config().recipe.epochs == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    shown = cli(*again[:-1], tmp_path / "thesis", "--force")
    assert shown.code == 2
    assert (tmp_path / "thesis" / "chapter.txt").exists()


def test_a_part_is_kept_aside_for_evaluation(place, cli, tmp_path):
    frame = pd.DataFrame({"a": RNG.normal(size=120), "who": np.repeat(np.arange(30), 4)})
    frame["y"] = (frame["a"] > 0).astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    shown = cli("train", "--data", tmp_path / "t.csv", "--label", "y", "--group", "who", "--test", 0.25, *QUICK,
                "--epochs", 5, "--out", tmp_path / "run")  # fmt: skip
    assert shown.code == 0, shown.err
    ens = credro.load(tmp_path / "run")
    whole = credro.data.load(tmp_path / "t.csv", label="y", group="who")
    rest, used = ens.unseen(whole)
    assert 24 <= len(rest) <= 36
    inside = set(whole.groups.tolist()) - set(rest.groups.tolist())
    assert inside.isdisjoint(rest.groups.tolist())  # no group on both sides
    assert used.watched > 0
    evaluated = cli("evaluate", tmp_path / "run", "--json", "-")
    assert json.loads(evaluated.out)[0]["samples"] == len(rest)


def test_regression_on_the_command_line(cli, tmp_path):
    x = RNG.normal(size=300)
    pd.DataFrame({"x": x, "price": (3 * x + RNG.normal(size=300) * 0.1).round(2)}).to_csv(
        tmp_path / "p.csv", index=False
    )
    train = ["train", "--data", tmp_path / "p.csv", "--label", "price", "--task", "regress", "--test", 0.3, *QUICK]
    shown = cli(*train, "--epochs", 60, "--out", tmp_path / "run")
    assert shown.code == 0, shown.err
    evaluated = cli("evaluate", tmp_path / "run")
    assert evaluated.code == 0, evaluated.err
    assert "RMSE" in evaluated.out
    shown = cli("predict", tmp_path / "run", tmp_path / "p.csv", "--label", "price")
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    predicted, truth = np.array([float(r["mean"]) for r in rows]), pd.read_csv(tmp_path / "p.csv")["price"]
    assert np.corrcoef(predicted, truth)[0, 1] > 0.95
    assert all(float(r["lower"]) < float(r["mean"]) < float(r["upper"]) for r in rows)
