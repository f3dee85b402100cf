"""Nothing is measured on samples that made the run, whatever way they come; unknown classes are OOD, not an error."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import credro
from credro.data import Data
from credro.ensemble import Ensemble
from credro.evaluation import SeenWarning, evaluate
from credro.training.files import write_tensors
from credro.training.seen import SeenSamples, read_seen, seen_path
from tests.training.common import blobs, trained

X, Y = blobs(200)
Y[120::9] = (Y[120::9] + 1) % 3  # some errors, so that there is something to find
TRAIN, WATCHED, ASIDE, TEST = slice(0, 80), slice(80, 100), slice(100, 120), slice(120, 200)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = trained(
        "mlp", (X[TRAIN], Y[TRAIN]), tmp_path_factory.mktemp("guard") / "run", held_out=(X[WATCHED], Y[WATCHED])
    )
    made.calibrate((X[ASIDE], Y[ASIDE]))
    return made


def routes(x, y):
    """The same samples in five ways."""
    yield (x, y)
    yield (x.double().numpy(), y.numpy())
    yield TensorDataset(x, y)
    yield DataLoader(TensorDataset(x, y), batch_size=7)
    yield Data("other name", x, y, (6,), ("0", "1", "2"))


@pytest.mark.parametrize("route", range(5))
def test_used_samples_are_left_out_with_a_count(run, route):
    data = list(routes(X, Y))[route]
    with pytest.warns(
        SeenWarning, match="80 of 200 samples were trained on, 20 of 200 samples were watched while train"
    ):
        found = evaluate(run, data, methods=["credro"])
    assert found.samples == 80
    assert (found.seen.trained, found.seen.watched, found.seen.calibrated) == (80, 20, 20)
    assert found.notes[0].endswith("20 of 200 samples were calibrated on: left out")
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeenWarning)
        alone = evaluate(run, (X[TEST], Y[TEST]), methods=["credro"])
    assert found.results == alone.results
    assert alone.notes == ()


@pytest.mark.parametrize("part", [TRAIN, WATCHED, ASIDE])
@pytest.mark.parametrize("route", range(5))
def test_nothing_but_used_samples_is_refused(run, route, part):
    data = list(routes(X[part], Y[part]))[route]
    with pytest.raises(SeenSamples, match="says nothing of new samples"):
        evaluate(run, data)
    with pytest.raises(SeenSamples, match="says nothing of new samples"):
        run.threshold(data)


def test_keeping_them_is_said_aloud(run):
    with pytest.warns(SeenWarning, match="kept all the same, and the figures flatter the ensemble"):
        found = evaluate(run, (X, Y), seen="keep")
    assert (found.samples, found.seen.used) == (200, 120)
    assert "flatter" in found.notes[0]
    assert found.to_json()["seen"]["trained"] == 80
    with pytest.raises(ValueError, match="seen must be drop or keep, got 'no'"):
        evaluate(run, (X, Y), seen="no")


def test_what_cannot_be_told_is_said(run, tmp_path):
    old = credro.load(run.save(tmp_path / "old"))
    seen_path(old.run).unlink()  # a run of version 0.1
    assert "cannot be told" in evaluate(old, (X[TEST], Y[TEST])).notes[0]
    nets = evaluate(run.nets, (X[TEST], Y[TEST]))
    assert (nets.seen.known, len(nets.notes)) == (False, 1)


def test_what_networks_from_elsewhere_were_calibrated_on_is_known(run, tmp_path):
    made = Ensemble.of(run.nets, (X[TEST], Y[TEST]))
    made.calibrate((X[ASIDE], Y[ASIDE]))
    old = credro.load(run.save(tmp_path / "old"))
    write_tensors(seen_path(old.run), {"calibrated": read_seen(old.run)["calibrated"]})  # calibrated by this version
    for ensemble in (made, old):
        with pytest.warns(
            SeenWarning, match="20 of 100 samples were calibrated on, whether .* cannot be told: left out"
        ):
            found = evaluate(ensemble, (X[100:], Y[100:]))
        assert (found.samples, found.seen.known) == (80, False)


def test_a_threshold_uses_unseen_samples_only(run):
    with pytest.warns(SeenWarning, match="80 of 200 samples were trained on.*: left out"):
        mixed = run.threshold((X, Y), max_error=0.3)
    alone = run.threshold((X[TEST], Y[TEST]), max_error=0.3)
    assert mixed == alone
    assert "of 80 accepted" in alone.note
    prediction = run.predict(X[TEST])
    assert alone == credro.threshold(prediction.total, prediction.label == Y[TEST], 0.3, score="total")
    assert torch.equal(alone.accepts(prediction), prediction.total < alone.threshold)
    by_eu = run.threshold((X[TEST], Y[TEST]), max_error=0.3, score="epistemic")
    assert torch.equal(by_eu.accepts(prediction), prediction.epistemic < by_eu.threshold)
    with pytest.raises(ValueError, match="score must be one of epistemic, total, confidence, got 'eu'"):
        run.threshold((X, Y), score="eu")


def test_unknown_classes_are_wrong_answers_for_a_threshold(run):
    labels = Y[TEST].clone()
    labels[:8] = 7
    found, prediction = run.threshold((X[TEST], labels), max_error=0.5), run.predict(X[TEST])
    right = (prediction.label == Y[TEST]) & (torch.arange(80) >= 8)
    assert found == credro.threshold(prediction.total, right, 0.5, score="total")


def test_unknown_classes_are_an_ood_set(run):
    x, y = X[TEST], Y[TEST].clone()
    y[:5] = -1
    by_number = evaluate(run, Data("d", x, y, (6,), ("0", "1", "2")))
    names = np.array(["0", "1", "2", "other"])[np.where(y >= 0, y, 3)]
    by_name = evaluate(run, (x, names.tolist()))
    reordered = Data("d", x, torch.where(y >= 0, 3 - y, 0), (6,), ("other", "2", "1", "0"))
    for found in (by_number, by_name, evaluate(run, reordered)):
        assert (found.samples, found.unknown, found.ood) == (75, 5, {"unknown classes": 5})
        assert "5 of 80 samples are of classes that the ensemble does not know" in found.notes[0]
        assert found.results == by_number.results
    inside = run.predict(x[5:])
    assert by_number.result("credro", True).accuracy == pytest.approx(
        float((inside.label == Y[TEST][5:]).double().mean())
    )


def test_one_of_an_unknown_class_is_left_out(run):
    y = Y[TEST].clone()
    y[0] = -1
    found = evaluate(run, Data("d", X[TEST], y, (6,), ("0", "1", "2")))
    assert (found.samples, found.unknown, found.ood) == (79, 1, {})
    y[:] = -1
    with pytest.raises(ValueError, match=r"none of its samples is of a class that the ensemble knows \(0, 1, 2\)"):
        evaluate(run, Data("d", X[TEST], y, (6,), ("0", "1", "2")))


def test_labels_without_names_count_the_classes_of_an_ensemble_with_names():
    """Not all classes occur: their numbers still mean what they meant."""
    made = trained("mlp", Data("named", X[TRAIN], Y[TRAIN], (6,), ("a", "b", "c")))
    some = (Y[TEST] != 1).nonzero()[:, 0]
    found = evaluate(made, Data("plain", X[TEST][some], Y[TEST][some], (6,)), methods=["credro"])
    assert found.unknown == 0
    prediction = made.predict(X[TEST][some])
    assert found["credro"].accuracy == pytest.approx(float((prediction.label == Y[TEST][some]).double().mean()))


def test_ood_sets_that_are_not_ood_are_noted(run):
    far = X[TEST] + 30
    ood = {"far": far, "both": torch.cat([far, X[TEST][:3]]), "old": torch.cat([far, X[TRAIN][:9]])}
    with pytest.warns(SeenWarning) as caught:
        found = evaluate(run, (X[TEST], Y[TEST]), ood, methods=["credro"])
    assert list(found.notes) == [
        "OOD set both: 3 of 83 samples are in the ID set as well",
        "OOD set old: 9 of 89 samples were used in training: they are not OOD",
    ]
    assert [str(w.message) for w in caught if w.category is SeenWarning] == list(found.notes)
