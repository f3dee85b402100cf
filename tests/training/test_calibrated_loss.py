"""What early stopping watches with early_stop_by="calibrated", against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

import credro
from credro.members import LOSSES, Gaussian, Softmax
from credro.training.calibration import calibrated_loss
from credro.training.run import History

GENERATOR = torch.Generator().manual_seed(0)


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0, 30.0])
def test_it_is_the_smallest_loss_over_temperatures_of_at_least_one(scale):
    scores = scale * torch.randn(200, 3, generator=GENERATOR, dtype=torch.float64)
    labels = torch.where(torch.rand(200, generator=GENERATOR) < 0.7, scores.argmax(1), 0)

    def loss(log_t):
        p = np.exp(scores.numpy() / math.exp(log_t))
        return -np.log((p / p.sum(1, keepdims=True))[range(200), labels.numpy()]).mean()

    expected = minimize_scalar(loss, bounds=(0, math.log(50)), method="bounded").fun
    found = calibrated_loss(Softmax(), scores, labels, LOSSES["cross_entropy"])
    assert found == pytest.approx(expected, abs=1e-5)
    assert found <= loss(0.0)


def test_of_a_regression_it_widens_the_variances():
    mean, target = torch.zeros(500, dtype=torch.float64), 3 * torch.randn(500, generator=GENERATOR, dtype=torch.float64)
    scores = torch.stack([mean, torch.zeros_like(mean)], 1)  # a standard deviation of 1 is too small
    found = calibrated_loss(Gaussian(), scores, target, LOSSES["gaussian_nll"])
    variance = float(target.square().mean())
    by_hand = float(LOSSES["gaussian_nll"](torch.stack([mean, mean + math.log(variance)], 1), target).mean())
    assert found == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_run_keeps_the_epoch_with_the_best_calibrated_loss(tmp_path, executor):
    x = torch.randn(150, 6, generator=GENERATOR)
    y = ((x[:, 0] > 0) ^ (torch.rand(150, generator=GENERATOR) < 0.2)).long()
    recipe = credro.Recipe(epochs=30, optimizer="adamw", lr=0.02, early_stop=6, early_stop_by="calibrated")
    ensemble = credro.fit(
        "mlp",
        (x[:100], y[:100]),
        held_out=(x[100:], y[100:]),
        members=3,
        recipe=recipe,
        out=tmp_path / "run",
        executor=executor,
        progress="none",
    )
    for i, record in enumerate(ensemble.records):
        epochs = History(tmp_path / f"run/members/{i:02d}/history.jsonl").read()
        assert record.best_epoch == 1 + int(np.argmin([e.held_out_calibrated for e in epochs]))
        assert all(e.held_out_calibrated <= e.held_out_loss + 1e-6 for e in epochs)
        assert record.held_out.loss == pytest.approx(epochs[record.best_epoch - 1].held_out_loss, abs=1e-4)


def test_what_it_may_be():
    with pytest.raises(ValueError, match="early_stop_by must be one of loss, calibrated, got 'accuracy'"):
        credro.Recipe(early_stop_by="accuracy")
