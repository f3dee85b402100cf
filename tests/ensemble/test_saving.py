"""Ensembles without a run are saved as runs: read back, they say the same, or it is said why they cannot."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from torch import nn

import credro
from credro.sklearn import CredalClassifier, CredalRegressor
from tests.training.common import blobs, small_net, trained

X, Y = blobs(60)


def nets(make=small_net, count=3):
    found = []
    for seed in range(count):
        torch.manual_seed(seed)
        found.append(make())
    return found


def images_net():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(800, 4))


def tanh_net():
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def wide_net():
    return nn.Sequential(nn.Linear(6, 17), nn.ReLU(), nn.Linear(17, 3))


def tokens_net():
    return nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 3))


class Tied(nn.Module):
    """Two names for one weight."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


def test_given_networks_come_back_as_they_were(tmp_path):
    ensemble = credro.Ensemble.of(nets(), (X, Y), method="creens")
    folder = ensemble.save(tmp_path / "run")
    again = credro.load(folder, make_net=small_net, device="cpu")
    assert torch.equal(again.predict(X).probs, ensemble.predict(X).probs)
    torch.testing.assert_close(again.predict(X).epistemic, ensemble.predict(X).epistemic, rtol=0, atol=0)
    assert repr(again) == repr(ensemble) == "Ensemble(creens, 3 members, 3 classes)"
    assert again.classes == ensemble.classes
    assert again.warnings == []
    assert "trained elsewhere" in again._repr_html_()
    other = credro.load(folder, make_net=small_net, method="crewra", device="cpu")
    assert torch.equal(other.predict(X).probs, ensemble.predict(X).probs)
    assert not [p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".json", ".safetensors")]


@pytest.mark.parametrize(
    ("make", "x", "method"),
    [
        (images_net, torch.rand(5, 3, 12, 12), "crewra"),
        (Tied, X[:5], "credro"),
        (tokens_net, torch.randint(0, 9, (5, 5)), "credro-hull"),
        (small_net, X[:5], "crerl"),
    ],
    ids=["images", "tied weights", "tokens", "crerl"],
)
def test_all_kinds_of_networks(tmp_path, make, x, method):
    y = torch.arange(5) % 3
    ensemble = credro.Ensemble.of(nets(make), (x, y), method=method)
    again = credro.load(ensemble.save(tmp_path), make_net=make, device="cpu")
    assert torch.equal(again.predict(x).probs, ensemble.predict(x).probs)


def test_channels_last_stays(tmp_path):
    given = [net.to(memory_format=torch.channels_last) for net in nets(images_net)]
    x = torch.rand(4, 3, 12, 12)
    ensemble = credro.Ensemble.of(given, (x, torch.arange(4)))
    again = credro.load(ensemble.save(tmp_path), make_net=images_net, device="cpu")
    assert again.nets[0][0].weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(again.predict(x).probs, ensemble.predict(x).probs)


def test_calibration_is_kept_and_taken_back(tmp_path):
    ensemble = credro.Ensemble.of(nets(), (X, Y))
    plain = ensemble.predict(X).probs
    found = ensemble.calibrate((X, Y))
    again = credro.load(ensemble.save(tmp_path / "a"), make_net=small_net, device="cpu")
    assert again.calibrated
    assert again.temperatures == found
    assert torch.equal(again.predict(X).probs, ensemble.predict(X).probs)
    assert json.loads((tmp_path / "a" / "calibration.json").read_text())["held_out"]["samples"] == 60
    ensemble.uncalibrate()
    again = credro.load(ensemble.save(tmp_path / "b"), make_net=small_net, device="cpu")
    assert not again.calibrated
    assert torch.equal(again.predict(X).probs, plain)


def test_without_make_net_the_error_says_what_was_recorded(tmp_path):
    credro.Ensemble.of(nets(), (X, Y)).save(tmp_path)
    words = r"Sequential \(4 tensors: 0.weight \(16, 6\), 0.bias \(16,\), 2.weight \(3, 16\), .*\): give make_net"
    with pytest.raises(ValueError, match=words):
        credro.load(tmp_path)


@pytest.mark.parametrize(
    ("make", "words"),
    [(wide_net, r"size mismatch for 0\.weight"), (tanh_net, "the weights fit, but its outputs differ")],
)
def test_another_network_is_found_out(tmp_path, make, words):
    credro.Ensemble.of(nets(), (X, Y)).save(tmp_path)
    with pytest.raises(ValueError, match=f"(?s)make_net builds another network than the one in .*{words}"):
        credro.load(tmp_path, make_net=make)


def test_networks_that_answer_at_random_are_saved_without_that_check(tmp_path):
    class Random(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            return self.layer(nn.functional.dropout(x, 0.5, training=True))

    folder = credro.Ensemble.of(nets(Random), (X, Y)).save(tmp_path)
    assert not (folder / "probe.safetensors").exists()
    assert len(credro.load(folder, make_net=Random)) == 3


def test_what_cannot_be_saved_is_said(tmp_path):
    mixed = credro.Ensemble.of([small_net(), wide_net()], (X, Y))
    with pytest.raises(ValueError, match="nets must all be of one kind to be saved: member 1 is"):
        mixed.save(tmp_path / "mixed")
    assert not (tmp_path / "mixed" / "config.json").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is not empty: choose a new folder"):
        credro.Ensemble.of(nets(), (X, Y)).save(tmp_path / "file")

    class Extra(nn.Linear):
        def get_extra_state(self):
            return {"a": 1}

        def set_extra_state(self, state):
            pass

    with pytest.raises(ValueError, match="member 0 cannot be saved: '_extra_state' of its state is no tensor"):
        credro.Ensemble.of([Extra(6, 3)], (X, Y)).save(tmp_path / "extra")


def test_half_a_folder_is_no_run(tmp_path, monkeypatch):
    """As a kill before the last file leaves it."""
    monkeypatch.setattr("credro.training.run.Run.start", lambda *_: None)
    folder = credro.Ensemble.of(nets(), (X, Y)).save(tmp_path)
    with pytest.raises(RuntimeError, match=r"is not a run: it has no config\.json"):
        credro.load(folder, make_net=small_net)


def test_a_saved_ensemble_is_no_run_to_go_on_with(tmp_path):
    credro.Ensemble.of(nets(), (X, Y)).save(tmp_path)
    with pytest.raises(RuntimeError, match="holds a run with another configuration"):
        trained(small_net, (X, Y), tmp_path)


def test_copies_and_pickles(tmp_path):
    ensemble = credro.Ensemble.of(nets(), (X, Y))
    for other in (copy.deepcopy(ensemble), pickle.loads(pickle.dumps(ensemble))):
        assert torch.equal(other.predict(X).probs, ensemble.predict(X).probs)


def test_the_report_does_not_claim_to_know_the_training(tmp_path):
    from credro.report.page import write_report

    folder = credro.Ensemble.of(nets(), (X, Y)).save(tmp_path / "run")
    page = write_report(tmp_path / "report.html", credro.load(folder, make_net=small_net), (X, Y)).read_text()
    assert "that were trained elsewhere are read as" in page
    assert "epochs, and are" not in page


@pytest.mark.parametrize("calibrate", [False, 0.3])
def test_a_classifier_of_scikit_learn(tmp_path, calibrate):
    x, y = make_classification(160, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    x = x.astype(np.float32)
    estimator = CredalClassifier(members=3, epochs=4, calibrate=calibrate, random_state=0).fit(
        x, np.array(list("abc"))[y]
    )
    folder = estimator.ensemble_.save(tmp_path / "run")
    again = credro.load(folder, device="cpu")
    np.testing.assert_allclose(again.predict(x).mean, estimator.predict_proba(x), rtol=1e-3, atol=1e-5)
    assert again.calibrated == bool(calibrate)
    assert [r.train for r in again.records] == [r.train for r in estimator.ensemble_.records]
    assert again.run.config().data.samples <= 160
    with pytest.raises(ValueError, match=r"samples were trained on.*Take others"):
        again.unseen((x, again.predict(x).label))  # what it was trained on is remembered in the new folder, too
    copied = pickle.loads(pickle.dumps(estimator))
    assert torch.equal(
        credro.load(copied.ensemble_.save(tmp_path / "copy"), device="cpu").predict(x).probs, again.predict(x).probs
    )


def test_a_regressor_of_scikit_learn(tmp_path):
    y = (3 * X[:, 0] + 7).numpy()
    estimator = CredalRegressor(members=3, epochs=4, random_state=0).fit(X.numpy(), y)
    again = credro.load(estimator.ensemble_.save(tmp_path / "run"), device="cpu")
    np.testing.assert_allclose(again.predict_regression(X).mean, estimator.predict(X.numpy()), rtol=1e-3, atol=1e-4)


def test_whole_numbers_that_are_no_tokens_are_floats():
    whole = credro.Ensemble.of(nets(), ((10 * X).long(), Y))
    torch.testing.assert_close(whole.predict((10 * X).long()).probs, whole.predict((10 * X).long().float()).probs)
