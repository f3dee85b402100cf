"""Runs of version 0.1, trained by it once and kept in ``version1``: they are read, and say what they said there."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

import credro
from credro.methods import Method, make
from credro.nets import NETS
from credro.nets.small import MLP
from credro.training.feed import Inputs
from credro.training.recipe import Recipe
from credro.training.records import Execution, Network
from credro.training.run import RunError
from tests.training.common import trained

FOLDER = Path(__file__).parent / "version1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
X = torch.tensor(EXPECTED["x"])
TRAINED_BY = {
    "de": make("de"),
    "credro": make("credro", delta_g=0.7),
    "creram": make("creram"),
    "crerl": make("crerl", **{"stop.alpha": 0.5}),
    "crede": make("crede"),
    "crede-2": make("crede"),
    "crebnn": make("crebnn"),
    "calibrated": make("credro"),
    "regression": make("credro").for_regression(),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """The network of these runs: named, and a few hundred bytes large."""
    monkeypatch.setitem(NETS, "tiny", partial(MLP, hidden=(6,)))


@pytest.fixture
def run(tmp_path, request):
    """A copy of a run: predictions are kept in it."""
    return Path(shutil.copytree(FOLDER / request.param, tmp_path / request.param))


def table(count=48, classes=3):
    """What they were trained on."""
    y = torch.arange(count) % classes
    centres = torch.tensor([[2.0, 0, 0, 1], [0, 2.0, 1, 0], [-2.0, 0, 0, -1]])
    return centres[y] + torch.randn(count, 4, generator=torch.Generator().manual_seed(0)), y


def close(found, name, field):
    torch.testing.assert_close(found.double(), torch.tensor(EXPECTED[name][field]).double(), rtol=1e-4, atol=1e-5)


def test_every_run_has_an_expectation():
    assert {p.name for p in FOLDER.iterdir() if p.is_dir()} == {*TRAINED_BY, "unfinished"}
    assert set(EXPECTED) == {*TRAINED_BY, "x"}


@pytest.mark.parametrize("run", [n for n in TRAINED_BY if n != "regression"], indirect=True)
def test_it_says_what_it_said(run):
    name, ensemble = run.name, credro.load(run, device="cpu")
    assert ensemble.method.training() == TRAINED_BY[name].training()
    prediction = ensemble.predict(X)
    for field in ("probs", "mean", "lower", "upper", "aleatoric", "total"):
        close(getattr(prediction, field), name, field)
    if name == "crede-2":  # two classes: the width now, as for every other box; the gap where it is asked for
        lower, upper = (torch.tensor(EXPECTED[name][side])[:, 1] for side in ("lower", "upper"))
        torch.testing.assert_close(prediction.epistemic, (upper - lower).double(), rtol=1e-4, atol=1e-5)
        ensemble = ensemble.read_as(replace(ensemble.method, readout=replace(ensemble.method.readout, measure="gap")))
    close(ensemble.predict(X).epistemic, name, "epistemic")


@pytest.mark.parametrize("run", ["regression"], indirect=True)
def test_so_does_a_regression(run):
    ensemble = credro.load(run, device="cpu")
    assert ensemble.regression
    assert ensemble.method.training() == TRAINED_BY["regression"].training()
    for field in ("mean", "epistemic", "aleatoric", "total"):
        close(getattr(ensemble.predict_regression(X), field), "regression", field)


@pytest.mark.parametrize("run", ["calibrated"], indirect=True)
def test_its_records_are_todays(run):
    ensemble = credro.load(run, device="cpu")
    plain = json.loads((run / "members/01/done.json").read_text())
    temperatures = json.loads((run / "calibration.json").read_text())["temperatures"]
    record, config = ensemble.records[1], ensemble.config
    assert (record.member, record.epochs, record.best_epoch) == (1, plain["epochs"], plain["best_epoch"])
    assert (record.delta, record.weights) == (plain["delta"], None)
    assert (record.train.loss, record.train.accuracy) == (plain["train"]["loss"], plain["train"]["accuracy"])
    assert (record.held_out.loss, record.lowest_held_out.loss) == (
        plain["held_out"]["loss"],
        plain["lowest_held_out"]["loss"],
    )
    assert ensemble.temperatures == temperatures
    assert config.recipe == Recipe(epochs=6, batch_size=16, lr=0.05, early_stop=3)
    assert config.network == Network("tiny")
    assert (config.inputs, config.execution) == (Inputs((4,)), Execution("sequential", 1))
    assert (config.classes, config.members, config.loss) == (("0", "1", "2"), 2, "cross_entropy")
    found, fresh = ensemble.overlap(credro.data.as_data(table()))
    assert (found.trained, int(fresh.sum())) == (48, 0)


@pytest.mark.parametrize("run", ["crerl"], indirect=True)
def test_what_set_a_member_apart_is_among_its_traits(run):
    plain = json.loads((run / "members/01/done.json").read_text())
    traits = credro.load(run, device="cpu").records[1].traits
    assert traits == {k: plain[k] for k in ("threshold", "relative_likelihood", "reached")}


@pytest.mark.parametrize("run", ["de"], indirect=True)
def test_it_can_be_read_otherwise_kept_and_saved(run, tmp_path):
    ensemble = credro.load(run, method="crewra", device="cpu")
    scores = ensemble.scores(credro.data.as_data(table()))
    assert len(list((run / "predictions").iterdir())) == 1
    again = credro.load(ensemble.save(tmp_path / "copy"), device="cpu")
    assert torch.equal(again.scores(credro.data.as_data(table())), scores)


@pytest.mark.parametrize("run", ["de"], indirect=True)
def test_an_older_spelling_of_the_recipe_is_understood(run):
    config = json.loads((run / "config.json").read_text())
    spelled = {("optimiser" if k == "optimizer" else k): v for k, v in config["recipe"].items()}
    config["recipe"] = {k: v for k, v in spelled.items() if not k.startswith("early_stop")}
    (run / "config.json").write_text(json.dumps(config))
    assert credro.load(run, device="cpu").config.recipe == Recipe(epochs=6, batch_size=16, lr=0.05)


@pytest.mark.parametrize("run", ["de"], indirect=True)
def test_a_rule_of_ones_own_is_asked_for(run):
    config = json.loads((run / "config.json").read_text())
    config["method"]["rule"] = {"rule": "somebody's"}
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"risk \"somebody's\" .*give it as method="):
        credro.load(run)


def fit_again(run):
    return trained("tiny", table(), run, method="de", recipe=Recipe(epochs=6, batch_size=16, lr=0.05))


def fit_otherwise(run):
    return trained("tiny", table(), run, method="credro")


@pytest.mark.parametrize("run", ["de"], indirect=True)
def test_one_that_is_finished_is_not_trained_again(run):
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    close(fit_again(run).predict(X).epistemic, "de", "epistemic")
    assert before.items() <= {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}.items()
    with pytest.raises(RunError, match=r"method\.name: 'de' there, 'credro' now"):
        fit_otherwise(run)


@pytest.mark.parametrize("run", ["unfinished"], indirect=True)
@pytest.mark.parametrize("how", [credro.load, fit_again, fit_otherwise])
def test_one_that_is_not_finished_is_refused_with_the_way_out(run, how):
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    with pytest.raises(RunError) as error:
        how(run)
    assert str(error.value) == (
        f"{run} was begun by version 0.1, which trained otherwise, and is not finished: train it again, in another "
        f"folder or with credro train --force"
    )
    assert before.items() <= {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}.items()


@pytest.mark.parametrize("run", ["de"], indirect=True)
def test_its_members_are_not_reused(run, tmp_path):
    """Version 0.1 kept fewer things apart."""
    recipe = Recipe(epochs=6, batch_size=16, lr=0.05)
    ensemble = trained("tiny", table(), tmp_path / "new", method=Method(readout="mean"), recipe=recipe, reuse=[run])
    assert [r.trained_in for r in ensemble.records] == [None, None]
