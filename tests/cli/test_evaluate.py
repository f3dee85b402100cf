import csv
import io
import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import credro
from credro.data import corrupt_data, load


def test_one_table_of_two_runs(place, cli):
    shown = cli("evaluate", place / "credro", place / "de", "--ood", "fashion-mini-letters", "--limit", 60)
    assert shown.code == 0
    rows = [line.split()[:3] for line in shown.out.splitlines() if line.startswith(("credro", "de"))]
    assert ["credro", "credro", "plain"] in rows
    assert ["credro", "en-dro", "calibrated"] in rows
    assert ["de", "crewra", "plain"] in rows
    assert ["de", "de", "calibrated"] not in rows
    assert "have not fitted the training data" in shown.err


def test_json_agrees_with_scikit_learn(place, cli, tmp_path):
    file = tmp_path / "deep" / "result.json"
    shown = cli("evaluate", place / "de", "--data", "digits", "--ood", "corrupt:fog:4", "--json", file)
    assert shown.code == 0
    [run] = json.loads(file.read_text())
    assert (run["name"], run["data"], run["samples"], run["ood"]) == ("de", "digits", 500, {"fog:4": 500})
    line = next(r for r in run["lines"] if r["method"] == "de")

    test = load("digits", split="test")
    ensemble = credro.load(place / "de")
    known, fog = ensemble.predict(test, cache=False), ensemble.predict(corrupt_data(test, "fog", 4), cache=False)
    assert line["accuracy"] == accuracy_score(test.labels, known.mean.argmax(1))
    mean = known.mean.numpy()
    assert line["nll"] == pytest.approx(log_loss(test.labels, mean / mean.sum(1, keepdims=True)), rel=1e-5)
    eu = np.concatenate([known.epistemic, fog.epistemic])
    assert line["ood"]["fog:4"]["auroc"] == pytest.approx(roc_auc_score(np.arange(1000) >= 500, eu))


def test_csv_and_json_to_standard_output_hold_nothing_else(place, cli):
    common = ("evaluate", place / "de", "--methods", "de,credro", "--limit", 40, "--ood", place / "images")
    [row] = csv.DictReader(io.StringIO(cli(*common, "--csv", "-").out))
    assert row["method"] == "de"
    assert 0 <= float(row["auroc:images"]) <= 1
    [run] = json.loads(cli(*common, "--json", "-").out)
    assert run["ood"] == {"images": 5}
    assert float(row["accuracy"]) == run["lines"][0]["accuracy"]


def test_strangers_of_one_name_are_told_apart(place, cli):
    ood = [place / "images" / "deep" / "even", place / "images" / "deep" / "odd" / ".." / "even"]
    shown = cli(
        "evaluate", place / "de", "--methods", "de", "--limit", 9, "--json", "-", "--ood", ood[0], "--ood", ood[1]
    )
    assert list(json.loads(shown.out)[0]["ood"]) == ["even", str(ood[1])]


def test_a_table_is_read_as_it_was_trained_on(place, cli):
    shown = cli("evaluate", place / "table", "--data", place / "labelled.csv", "--json", "-")
    [run] = json.loads(shown.out)
    assert run["samples"] == 8


def test_the_rest_of_a_file_is_what_the_run_has_not_seen(place, cli):
    shown = cli("evaluate", place / "table", "--json", "-")
    assert json.loads(shown.out)[0]["samples"] == 40
    assert "the 40 samples that the run has not seen" in shown.err


def test_other_classes_are_noted(place, cli):
    shown = cli("evaluate", place / "de", "--data", "fashion-mini-letters", "--limit", 9)
    assert "its classes (A, B, C, ...) are not the run's (0, 1, 2, ...)" in shown.err


def test_training_samples_are_noted(place, cli):
    assert "trained on these samples" in cli("evaluate", place / "credro", "--split", "train", "--limit", 50).err


def test_an_ensemble_of_ones_own(place, cli, tmp_path):
    draw = np.random.default_rng(1)
    probs, far, labels = (
        draw.dirichlet(np.ones(3), (4, 30)),
        draw.dirichlet(np.ones(3), (4, 20)),
        draw.integers(0, 3, 30),
    )
    for name, array in {"p": probs, "q": far, "y": labels}.items():
        np.save(tmp_path / f"{name}.npy", array)
    own = ("--probs", tmp_path / "p.npy", "--labels", tmp_path / "y.npy", "--ood-probs", f"far={tmp_path / 'q.npy'}")
    [run] = json.loads(cli("evaluate", *own, "--methods", "de,crewra", "--json", "-").out)
    assert [line["method"] for line in run["lines"]] == ["de", "crewra"]
    assert run["lines"][0]["accuracy"] == accuracy_score(labels, probs.mean(0).argmax(1))
    both = cli("evaluate", place / "de", *own, "--methods", "de", "--limit", 30).out
    assert [line.split()[0] for line in both.splitlines()[-2:]] == ["de", "p"]
    np.save(tmp_path / "names.npy", np.array(["a", "b", "c"] * 10))
    assert "labels must hold class numbers from 0" in cli("evaluate", *own[:3], tmp_path / "names.npy").err
    np.save(tmp_path / "bad.npy", far[:3])
    wrong = cli("evaluate", *own[:-1], f"far={tmp_path / 'bad.npy'}")
    assert wrong.code == 1
    assert "far must have shape" in wrong.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere"], 1, "nowhere is not a run"),
        ([], 2, "name a RUN"),
        (["{}/de", "--ood", "corrupt:fog"], 1, "needs a severity from 1 to 5"),
        (["{}/de", "--ood", "corrupt:smoke:1"], 1, "must be one of gaussian_noise"),
        (["{}/de", "--ood", "svnh"], 1, "no name of a set (did you mean 'svhn'?)"),
        (["{}/de", "--methods", "bayes"], 2, "--methods must be one of"),
        (["{}/de", "--methods", "credro"], 2, "none of them reads"),
        (["{}/de", "--probs", "p.npy"], 2, "--probs and --labels go together"),
        (["{}/de", "--data", "{}/lacking.csv"], 1, "lacking.csv"),
        (["{}/table", "--data", "{}/lacking.csv"], 1, "has no column 'size', which the run was trained on"),
        (["{}/table", "--data", "{}/unlabelled.csv"], 1, "--label must be a column of"),
        (["{}/de", "--data", "fashion-mini-letters", "--split", "train"], 1, "split of 'fashion-mini-letters'"),
        (["{}/de", "--limit", "0"], 2, "--limit must be at least 1"),
        (["{}/de", "--ood-probs", "far=q.npy"], 2, "--ood-probs goes with --probs"),
        (["--probs", "p.npy", "--labels", "y.npy", "--ood", "svhn"], 2, "--ood needs a RUN"),
        (["--probs", "none.npy", "--labels", "y.npy"], 1, "none.npy: No such file or directory"),
    ],
)
def test_errors_are_one_line(place, cli, arguments, code, message):
    shown = cli("evaluate", *(a.format(place) for a in arguments))
    assert shown.code == code
    assert message in shown.err
    assert shown.err.count("\n") == 1
