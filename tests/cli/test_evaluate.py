import csv
import io
import json

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import credro
from credro.data import corrupt_data, load
from credro.evaluation import evaluate
from credro.training.seen import read_seen


def test_one_table_of_two_runs(place, cli):
    shown = cli("evaluate", place / "credro", place / "de", "--ood", "fashion-mini-letters", "--limit", 60)
    assert shown.code == 0
    rows = [line.split()[:3] for line in shown.out.splitlines() if line.startswith(("credro", "de"))]
    assert ["credro", "CreDRO", "plain"] in rows
    assert ["credro", "EN-DRO", "calibrated"] in rows
    assert ["de", "CreWra", "plain"] in rows
    assert ["de", "DE", "calibrated"] not in rows
    assert "have not fitted the training data" in shown.err


def test_json_agrees_with_scikit_learn(place, cli, tmp_path):
    file = tmp_path / "deep" / "result.json"
    shown = cli("evaluate", place / "de", "--data", "digits", "--ood", "corrupt:fog:4", "--json", file)
    assert shown.code == 0
    [run] = json.loads(file.read_text())
    assert (run["name"], run["data"], run["samples"], run["ood"]) == ("de", "digits", 500, {"fog:4": 500})
    line = next(r for r in run["results"] if r["method"] == "de")

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
    assert float(row["accuracy"]) == run["results"][0]["accuracy"]


def test_ood_sets_of_one_name_are_told_apart(place, cli):
    ood = [place / "images" / "deep" / "even", place / "images" / "deep" / "odd" / ".." / "even"]
    shown = cli(
        "evaluate", place / "de", "--methods", "de", "--limit", 9, "--json", "-", "--ood", ood[0], "--ood", ood[1]
    )
    assert list(json.loads(shown.out)[0]["ood"]) == ["even", str(ood[1])]


def test_a_table_is_read_as_it_was_trained_on(place, cli):
    """Of its eight rows those that were trained on do not count, whatever file they come in."""
    whole, trained = (
        credro.data.load(str(place / "table.csv"), label="outcome", drop=("id",)),
        credro.load(place / "table"),
    )
    fresh, found = trained.unseen(whole.subset(range(232, 240)))
    assert 0 < found.trained < 8
    shown = cli("evaluate", place / "table", "--data", place / "labelled.csv", "--json", "-")
    [run] = json.loads(shown.out)
    assert (run["samples"], run["seen"]["trained"]) == (len(fresh), found.trained)
    said = f"labelled: {found}: left out"
    assert f"{found.trained} of 8 samples were trained on" in said
    assert said in shown.err
    assert shown.err.count(said) == 1
    [kept] = json.loads(
        cli("evaluate", place / "table", "--data", place / "labelled.csv", "--seen", "keep", "--json", "-").out
    )
    assert kept["samples"] == 8
    assert "kept all the same, and the figures flatter the ensemble" in kept["notes"][0]


def test_the_rest_of_a_file_is_what_the_run_has_not_seen(place, cli):
    shown = cli("evaluate", place / "table", "--json", "-")
    assert json.loads(shown.out)[0]["samples"] == 40
    assert "170 of 240 samples were trained on, 30 of 240 samples were watched while training: left out" in shown.err


def test_other_classes_are_noted(place, cli):
    shown = cli("evaluate", place / "de", "--data", "fashion-mini-letters", "--limit", 9)
    assert "its classes (A, B, C, ...) are not those that are known (0, 1, 2, ...)" in shown.err


def test_training_samples_are_refused(place, cli, tmp_path):
    """By content: a copy in another file is known as well."""
    seen = load("digits", split="train").subset(range(60))
    np.savez(tmp_path / "copy.npz", x=seen.samples[:, 0].numpy(), y=seen.labels.numpy())
    for data in (["--split", "train", "--limit", 50], ["--data", tmp_path / "copy.npz"]):
        shown = cli("evaluate", place / "de", *data)
        assert (shown.code, shown.out) == (1, "")
        assert "samples were trained on; what is measured on them says nothing of new samples" in shown.err
        assert cli("evaluate", place / "de", *data, "--seen", "keep").code == 0


def test_calibration_samples_are_left_out(place, cli, tmp_path):
    ensemble, whole = credro.load(place / "credro"), load("digits", split="train")
    calibrated = read_seen(ensemble.run)["calibrated"]
    assert len(calibrated) == 100
    held = whole.subset(torch.isin(whole.content(), calibrated).nonzero()[:, 0])
    test = load("digits", split="test").subset(range(30))
    x, y = torch.cat([held.samples, test.samples])[:, 0], torch.cat([held.labels, test.labels])
    np.savez(tmp_path / "both.npz", x=x.numpy(), y=y.numpy())
    shown = cli("evaluate", place / "credro", "--data", tmp_path / "both.npz", "--json", "-")
    [run] = json.loads(shown.out)
    assert (run["samples"], run["seen"]["calibrated"]) == (30, 100)
    assert "both: 100 of 130 samples were calibrated on: left out" in shown.err


def test_what_doubt_is_worth_is_always_shown(place, cli, tmp_path):
    """Without --ood too: AUROC of errors and accuracy at 90 % for three scores, against scikit-learn."""
    shown = cli(
        "evaluate", place / "de", "--methods", "de,crewra", "--json", tmp_path / "r.json", "--csv", tmp_path / "r.csv"
    )
    assert "Finding errors" in shown.out
    assert "for unfamiliar inputs" in shown.out.splitlines()[-1]
    [run] = json.loads((tmp_path / "r.json").read_text())
    row = next(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    test = load("digits", split="test")
    found = credro.load(place / "de").predict(test, cache=False)
    wrong = (found.label != test.labels).numpy()
    scores = {"epistemic": found.epistemic, "total": found.total, "1 - max p": 1 - found.mean.amax(1)}
    table = [line.split() for line in shown.out.splitlines() if line.startswith("DE ")][-1]
    for i, (name, score) in enumerate(scores.items()):
        errors = run["results"][0]["errors"][name]
        expected = roc_auc_score(wrong, score.numpy())
        assert errors["auroc"] == pytest.approx(expected, abs=1e-6)
        assert float(row[f"error_auroc:{name}"]) == errors["auroc"]
        assert table[1 + i] == f"{100 * expected:.2f}"
        kept = np.argsort(score.numpy(), kind="stable")[:450]
        assert errors["accuracy_at_90"] == pytest.approx(1 - wrong[kept].mean(), abs=3e-3)  # ties are averaged
        assert table[7 + i] == f"{100 * errors['accuracy_at_90']:.2f}"


def test_samples_of_unknown_classes_are_an_ood_set(place, cli, tmp_path):
    test = load("digits", split="test").subset(range(40))
    names = np.array([f"{k}" for k in test.labels.tolist()])
    names[:7] = "letter"
    np.savez(tmp_path / "some.npz", x=test.samples[:, 0].numpy(), y=names)
    ensemble = credro.load(place / "de")
    found = evaluate(ensemble, (test.samples, names.tolist()), methods=["de"])
    assert (found.samples, found.unknown, found.ood) == (33, 7, {"unknown classes": 7})
    prediction = ensemble.predict(test.samples)
    assert found["de"].accuracy == accuracy_score(test.labels[7:], prediction.label[7:])
    eu = np.concatenate([prediction.epistemic[7:], prediction.epistemic[:7]])
    assert found["de"].ood["unknown classes"].auroc == pytest.approx(roc_auc_score(np.arange(40) >= 33, eu))


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
    assert [line["method"] for line in run["results"]] == ["de", "crewra"]
    assert run["results"][0]["accuracy"] == accuracy_score(labels, probs.mean(0).argmax(1))
    both = cli("evaluate", place / "de", *own, "--methods", "de", "--limit", 30).out
    assert [line.split()[0] for line in both.splitlines() if "  DE  " in line] == ["de", "p"] * 2  # in both tables
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
        (["{}/de", "--seen", "yes"], 2, "--seen must be one of drop, keep, got 'yes'"),
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
