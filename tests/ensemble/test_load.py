"""A run is read by every method that shares its training, and by nothing else."""

import json

import pytest
import torch
from torch import nn

import credro
from credro._names import ArgumentError
from credro._records import RecordError
from credro.data import load
from credro.methods import Method
from credro.training.run import NotARun, RunError
from tests.training.common import blobs, digits, small_net, trained
from tests.training.test_loop import Doubled

X, Y = blobs(70)
HELD = load("digits").subset(range(300, 420))


def test_a_run_is_read_by_every_method_with_its_training(ensemble):
    for name in ("en-dro", "credro-hull", "credro"):
        other = credro.load(ensemble.run.folder, method=name, device="cpu")
        assert torch.equal(other.predict(HELD).probs, ensemble.predict(HELD).probs)
        torch.testing.assert_close(other.predict(HELD).epistemic, ensemble.read_as(name).predict(HELD).epistemic)
    needs = (
        "method 'de' needs members trained by .*risk mean.* by .*risk cvar.*These read them: en-dro, credro, credro-h"
    )
    for name, words in (("de", needs), (credro.methods.make("credro", delta_g=0.7), r"risk cvar \(delta_g=0\.7\)")):
        with pytest.raises(ArgumentError, match=words) as error:
            credro.load(ensemble.run.folder, method=name, device="cpu")
        assert error.value.argument == "method"
        with pytest.raises(ArgumentError, match=words):
            ensemble.read_as(name)


def test_options_of_the_choices_travel_with_the_run(tmp_path):
    trained("mlp", digits(40), tmp_path, method=credro.methods.make("credro", delta_g=0.7, measure="gap"))
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["method"]["risk"]["delta_g"], config["method"]["readout"]["measure"]) == (0.7, "gap")
    assert credro.load(tmp_path).method == credro.methods.make("credro", delta_g=0.7, measure="gap")
    assert credro.load(tmp_path, method="en-dro").method.risk.delta_g == 0.7


def test_an_unfinished_run_is_not_loaded(ensemble):
    (ensemble.run.member(1) / "done.json").unlink()
    with pytest.raises(RunError, match=r"is not finished: members \[1\] are not trained"):
        credro.load(ensemble.run.folder)
    with pytest.raises(NotARun, match=r"is not a run: it has no config\.json"):
        credro.load(ensemble.run.folder / "nowhere")


def test_ones_own_network_is_asked_for(tmp_path):
    expected = trained(small_net, (X, Y), tmp_path).predict(X).probs
    with pytest.raises(
        ValueError, match=r"small_net \(4 tensors: 0.weight \(16, 6\), .*\): give make_net, the function that"
    ):
        credro.load(tmp_path)
    torch.testing.assert_close(credro.load(tmp_path, make_net=small_net, device="cpu").predict(X).probs, expected)
    with pytest.raises(ValueError, match=r"(?s)make_net builds another network than .*small_net .*Missing key"):
        credro.load(tmp_path, make_net=lambda: nn.Linear(6, 4))


def test_ones_own_method_is_asked_for(tmp_path):
    method = Method(risk=Doubled(), readout="mean", name="mine")
    trained("mlp", digits(40), tmp_path, method=method)
    with pytest.raises(ArgumentError, match=r"method 'mine', whose risk 'doubled' .*give it as method="):
        credro.load(tmp_path)
    assert len(credro.load(tmp_path, method=method)) == 2
    with pytest.raises(ArgumentError, match="give it as method="):
        credro.load(tmp_path, method=Method(risk="cvar", readout="mean"))  # which did not train it


def test_nothing_in_a_run_is_a_pickle(run):
    files = [p for p in run.rglob("*") if p.is_file() and p.name not in ("lock", "lock.owner")]
    assert {p.suffix for p in files} == {".json", ".jsonl", ".safetensors"}
    assert all(p.read_bytes()[:1] != b"\x80" for p in run.rglob("*") if p.is_file())


def test_weights_that_are_not_those_of_the_record_are_refused(ensemble):
    """Whole files of the right network, in the wrong place."""
    first, second = (ensemble.run.weights(i) for i in range(2))
    content = first.read_bytes(), second.read_bytes()
    first.write_bytes(content[1])
    second.write_bytes(content[0])
    with pytest.raises(RecordError, match="is not what was trained: its digest is not the one in the record") as error:
        credro.load(ensemble.run.folder)
    assert error.value.file == str(first)
