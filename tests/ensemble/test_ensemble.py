"""Calibration, copies, folders that go with their ensemble, and regression."""

import json
import warnings

import pytest
import torch
from torch import nn

import credro
from credro.data import load
from credro.training.diagnostics import RUNS_WITH_DELTA
from tests.training.common import blobs, digits, trained

X, Y = blobs(70)
HELD = load("digits").subset(range(300, 420))


def test_save_and_load_again(ensemble, tmp_path):
    first = ensemble.predict(HELD)
    ensemble.calibrate(HELD)
    saved = ensemble.save(tmp_path / "copy")
    assert not (saved / "predictions").exists()
    again = credro.load(saved, device="cpu")
    assert repr(again) == "Ensemble(credro, 3 members, 10 classes, calibrated)"
    assert again.temperatures == ensemble.temperatures
    again.uncalibrate()
    assert torch.equal(again.predict(HELD).probs, first.probs)
    with pytest.raises(FileExistsError, match="is not empty"):
        ensemble.save(tmp_path / "copy")


def test_calibration_is_scipys_stored_applied_and_reported(ensemble):
    from scipy.optimize import minimize_scalar

    logits = ensemble.scores(HELD).double()
    found = ensemble.calibrate(HELD)
    for member, temperature in enumerate(found):

        def nll(t, member=member):
            return float(nn.functional.cross_entropy(logits[member] / t, HELD.labels))

        best = minimize_scalar(nll, bounds=(0.02, 50), method="bounded", options={"xatol": 1e-8})
        assert temperature == pytest.approx(best.x, rel=1e-3)
        assert nll(temperature) <= nll(1.0) + 1e-12
    scaled = torch.stack([(s / t).softmax(-1) for s, t in zip(logits, found, strict=True)])
    torch.testing.assert_close(ensemble.predict(HELD).probs.double(), scaled, rtol=1e-4, atol=1e-6)
    again = credro.load(ensemble.run.folder, device="cpu")
    assert again.temperatures == found
    assert again.calibrated
    assert again.read_as("en-dro").temperatures == found
    stored = json.loads((ensemble.run.folder / "calibration.json").read_text())
    assert stored["held_out"] == {"name": HELD.name, "samples": 120, "fingerprint": HELD.fingerprint()}
    ensemble.uncalibrate()
    assert not credro.load(ensemble.run.folder, device="cpu").calibrated


def test_calibration_through_fit_and_what_it_refuses(tmp_path, ensemble):
    fitted = trained("mlp", digits(60), tmp_path, calibrate=HELD)
    assert fitted.calibrated
    assert RUNS_WITH_DELTA not in [d.code for d in fitted.diagnoses]
    with pytest.raises(ValueError, match="calibration needs class labels"):
        ensemble.calibrate((HELD.samples, torch.rand(120)))
    with pytest.raises(ValueError, match="label 10 of sample"):
        ensemble.calibrate((HELD.samples, HELD.labels + 1))


def test_without_a_folder_the_run_lives_as_long_as_the_ensemble():
    ensemble = trained("mlp", digits(40))
    folder = ensemble.run.folder
    other = ensemble.read_as("en-dro")
    assert folder.exists()
    del ensemble
    other.predict(HELD)
    assert folder.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        del other
    assert not folder.exists()


REGRESSION = credro.Recipe(epochs=30, batch_size=16, lr=0.01, optimizer="adamw", loss="gaussian_nll")


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_regression_is_learnt_loaded_and_read(tmp_path, executor):
    y = 40 * X[:, 0] + 1000
    ensemble = trained("mlp", (X, y), tmp_path, recipe=REGRESSION, executor=executor)
    prediction = ensemble.predict_regression(X)
    assert float((prediction.mean - y).square().mean()) < 0.1 * float(y.var())
    again = credro.load(tmp_path, device="cpu")
    torch.testing.assert_close(again.predict_regression(X).total, prediction.total)
    with torch.no_grad():
        outputs = torch.stack([net(X) for net in again.nets]).double()
    torch.testing.assert_close(prediction.means, outputs[..., 0], rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(prediction.aleatoric, outputs[..., 1].exp().amin(0), rtol=1e-4, atol=1e-6)
    point = again.read_as("en-dro").predict_regression(X)
    assert point.set is None
    torch.testing.assert_close(point.epistemic, outputs[..., 0].var(0, correction=0), rtol=1e-3, atol=1e-3)
    entries = [json.loads(line) for line in (tmp_path / "members/00/history.jsonl").read_text().splitlines()]
    assert all(e["accuracy"] is None for e in entries)


def test_a_regression_is_calibrated_by_its_variances(tmp_path):
    y = 40 * X[:, 0] + 1000
    ensemble = trained("mlp", (X, y), tmp_path, recipe=REGRESSION)
    before = ensemble.predict_regression(X)
    factors = ensemble.calibrate((X, y + 30 * torch.randn(70, generator=torch.Generator().manual_seed(0))))
    after = credro.load(tmp_path, device="cpu").predict_regression(X)
    torch.testing.assert_close(after.means, before.means)
    expected = before.stds.square() * torch.tensor(factors).double()[:, None]
    torch.testing.assert_close(after.stds.square(), expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="calibration needs real targets, one per sample"):
        ensemble.calibrate((X, Y))


def test_regression_and_classes_are_told_apart(tmp_path, ensemble):
    with pytest.raises(ValueError, match="tell 10 classes apart: use predict"):
        ensemble.predict_regression(HELD)
    other = trained(
        lambda: nn.Linear(6, 3), (X, X[:, 0]), tmp_path / "own", recipe=credro.Recipe(epochs=1), loss=absolute
    )
    with pytest.raises(ValueError, match="predict real numbers, not classes: use predict_regression"):
        other.predict(X)
    with pytest.raises(ValueError, match=r"must give mean and log variance, \(M, N, 2\) in all, got \(2, 70, 3\)"):
        other.predict_regression(X)


def absolute(output, target):
    return (output[:, 0] - target).abs()
