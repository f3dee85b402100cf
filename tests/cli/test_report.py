import re

import numpy as np
import pytest
from PIL import Image

from credro.data import load


def test_a_run_writes_beside_itself(place, cli):
    shown = cli("report", place / "credro", "--ood", "fashion-mini-letters", "--ood", "corrupt:fog:3", "--limit", 60)
    assert shown.code == 0
    file = place / "credro" / "report.html"
    assert shown.out.startswith(f"report: {file} (")
    assert "have not fitted the training data" in shown.err
    text = file.read_text()
    assert "60 samples of digits, against fashion-mini-letters, fog:3" in text
    assert "trained on 1,197 samples of digits" in text
    assert text.count("<img ") == 30  # three groups of six, and six of each OOD set


def test_what_was_trained_on_is_left_out_and_said(place, cli, tmp_path):
    out, data = tmp_path / "page.html", place / "labelled.csv"
    shown = cli("report", place / "table", "--data", data, "--out", out)
    assert shown.code == 0
    [used] = re.findall(r"(\d of 8 samples were trained on[^.:;]*)", shown.err)[:1]
    text = out.read_text()
    assert 'role="alert"' in text
    assert f"{used}. They are left out" in text
    left = 8 - sum(map(int, re.findall(r"(\d) of 8", used)))
    assert f"{left} samples of labelled" in text
    assert cli("report", place / "table", "--data", data, "--out", out, "--seen", "keep").code == 0
    text = out.read_text()
    assert "They are counted all the same" in text
    assert "8 samples of labelled" in text


def test_a_report_on_the_training_set_says_so(place, cli, tmp_path):
    out = tmp_path / "page.html"
    shown = cli("report", place / "de", "--split", "train", "--out", out)
    count = len(load("digits", split="train"))
    said = f"All {count:,} samples were trained on: every figure on this page flatters the run."
    assert shown.code == 0
    assert f"note: {said}" in shown.err
    assert said in out.read_text()


def test_another_method_and_place(place, cli, tmp_path):
    out = tmp_path / "deep" / "page.html"
    assert cli("report", place / "de", "--method", "crewra", "--limit", 40, "--out", out).code == 0
    text = out.read_text()
    assert "were trained by DE on" in text
    assert "read as CreWra" in text


def test_rows_of_a_table_are_shown(place, cli, tmp_path):
    out = tmp_path / "page.html"
    shown = cli("report", place / "table", "--data", place / "labelled.csv", "--out", out, "--seen", "keep")
    assert shown.code == 0
    text = out.read_text()
    assert re.search(r">colour</dt><dd>(red|blue|green)</dd>", text)
    assert ">size</dt>" in text
    assert "8 samples of labelled" in text


def test_an_ensemble_of_ones_own(place, cli, tmp_path, monkeypatch):
    draw = np.random.default_rng(1)
    for name, shape in {"p": (4, 500), "q": (4, 20)}.items():
        np.save(tmp_path / f"{name}.npy", draw.dirichlet(np.ones(10), shape))
    np.save(tmp_path / "y.npy", draw.integers(0, 10, 500))
    monkeypatch.chdir(tmp_path)
    assert cli("report", "--probs", "p.npy", "--labels", "y.npy", "--ood-probs", "far=q.npy").code == 0
    assert "500 samples of p, against far" in (tmp_path / "report.html").read_text()
    assert cli("report", "--probs", "p.npy", "--data", "digits", "--out", "shown.html").code == 0
    assert (tmp_path / "shown.html").read_text().count("<img ") == 18
    shown = cli("report", "--probs", "p.npy", "--labels", "y.npy")
    assert "cannot be checked" in shown.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere"], 1, "nowhere is not a run"),
        ([], 2, "name a RUN"),
        (["{}/de", "--probs", "p.npy"], 2, "not both"),
        (["{}/de", "--labels", "y.npy"], 2, "--labels and --ood-probs go with --probs"),
        (["--probs", "p.npy", "--labels", "y.npy", "--limit", "9"], 2, "--limit and --plain are for a RUN"),
        (["--probs", "p.npy"], 2, "--probs needs --labels"),
        (["--probs", "p.npy", "--labels", "y.npy", "--ood", "svhn"], 2, "--ood needs a RUN"),
        (["--probs", "p.npy", "--labels", "y.npy", "--ood-probs", "q.npy"], 2, "--ood-probs takes NAME=FILE.npy"),
        (["{}/de", "--method", "bayes"], 2, "--method must be one of"),
        (["{}/de", "--method", "credro"], 1, "These read them: de, crewra"),
        (["{}/de", "--seen", "perhaps"], 2, "--seen must be one of drop, keep, got 'perhaps'"),
        (["{}/de", "--on-error", "ask"], 2, "--on-error must be one of stop, skip, got 'ask'"),
        (["{}/de", "--limit", "0"], 2, "--limit must be at least 1"),
        (["{}/de", "--ood", "svnh"], 1, "did you mean 'svhn'?"),
    ],
)
def test_errors_are_one_line(place, cli, arguments, code, message):
    shown = cli("report", *(a.format(place) for a in arguments))
    assert shown.code == code
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_a_folder_with_a_broken_file_and_a_class_of_its_own(place, cli, tmp_path):
    """Every other digit of the test set is a file; owls are letters, which the run has never seen."""
    digits, letters = load("digits", split="test"), load("fashion-mini-letters", split="test")
    pairs = [(digits.samples[i, 0], str(int(digits.labels[i]))) for i in range(0, 120, 2)]
    pairs += [(letters.samples[i, 0], "owl") for i in range(7)]
    for i, (pixels, name) in enumerate(pairs):
        path = tmp_path / "new" / name / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.numpy()).resize((8, 8)).save(path)
    (tmp_path / "new" / "3" / "broken.png").write_bytes(b"no image")
    out, common = tmp_path / "page.html", ["report", place / "de", "--data", tmp_path / "new"]
    stopped = cli(*common, "--out", out)
    assert stopped.code == 1
    assert "broken.png" in stopped.err
    shown = cli(*common, "--out", out, "--on-error", "skip", "--ood", f"far letters={tmp_path / 'new' / 'owl'}")
    assert shown.code == 0, shown.err
    text = out.read_text()
    assert "60 samples of new, against far letters, unknown classes" in text
    assert "7 samples are of classes that the model does not know: left out of 67" in text
    assert "owl" in shown.err  # the reader names it
    assert "1 file was left out: unreadable." in text


def test_a_regression_is_sent_elsewhere(place, cli, tmp_path):
    options = ["--net", "mlp", "--members", "2", "--epochs", "1", "--executor", "sequential", "--threads", "1"]
    table = ["--data", place / "table.csv", "--label", "size", "--task", "regress", "--drop", "id,outcome"]
    assert cli("train", *options, *table, "--out", tmp_path / "run").code == 0
    shown = cli("report", tmp_path / "run")
    assert shown.code == 2
    assert "is a regression, and the page is about classes: credro evaluate measures it" in shown.err
