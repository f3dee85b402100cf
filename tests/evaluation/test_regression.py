"""Regression measured against NumPy, SciPy and scikit-learn."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

import credro
from credro.data import as_data
from credro.evaluation import SeenWarning, evaluate_regression, regression_table
from credro.training.seen import SeenSamples
from tests.training.common import blobs, trained

X, _ = blobs(120)
Y = 4 * X[:, 0] + 10 + torch.randn(120, generator=torch.Generator().manual_seed(3))
TRAIN, ASIDE, TEST = slice(0, 60), slice(60, 80), slice(80, 120)
METHODS = ["en-dro", "credro", "credro-hull"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    recipe = credro.Recipe(epochs=20, batch_size=16, lr=0.01, optimizer="adamw", loss="gaussian_nll")
    made = trained("mlp", (X[TRAIN], Y[TRAIN]), tmp_path_factory.mktemp("numbers"), members=3, recipe=recipe)
    made.calibrate((X[ASIDE], Y[ASIDE]))
    return made


def test_against_scikit_learn_and_scipy(run):
    found = evaluate_regression(run, as_data((X[TEST], Y[TEST])))
    assert [(r.method, r.calibrated) for r in found.results] == [(m, c) for c in (False, True) for m in METHODS]
    truth = Y[TEST].numpy()
    for result in found.results:
        reader = (run if result.calibrated else run.plain()).read_as(result.method)
        prediction, scores = reader.predict_regression(X[TEST]), result.scores
        means, stds = prediction.means.numpy(), prediction.stds.numpy()
        assert scores.rmse == pytest.approx(root_mean_squared_error(truth, means.mean(0)), rel=1e-5)
        assert scores.mae == pytest.approx(mean_absolute_error(truth, means.mean(0)), rel=1e-5)
        assert scores.r2 == pytest.approx(r2_score(truth, means.mean(0)), rel=1e-5)
        assert scores.nll == pytest.approx(-np.log(norm.pdf(truth, means, stds).mean(0)).mean(), rel=1e-5)
        if result.method == "credro":
            low, high = norm.ppf(0.05, means, stds).min(0), norm.ppf(0.95, means, stds).max(0)
            assert scores.coverage == pytest.approx(((low <= truth) & (truth <= high)).mean())
            assert scores.width == pytest.approx((high - low).mean(), rel=1e-5)


def test_samples_that_made_the_run_are_left_out(run):
    alone = evaluate_regression(run, as_data((X[TEST], Y[TEST])))
    with pytest.warns(SeenWarning, match=r"60 of 120 samples were trained on, 20 of 120 samples were calibrated on"):
        found = evaluate_regression(run, as_data((X, Y)))
    assert (found.samples, found.results) == (40, alone.results)
    assert found.notes[0].endswith("left out")
    assert alone.notes == ()
    with pytest.raises(SeenSamples):
        evaluate_regression(run, as_data((X[TRAIN], Y[TRAIN])))
    with pytest.warns(SeenWarning, match="flatter"):
        assert evaluate_regression(run, as_data((X, Y)), seen="keep").samples == 120


def test_table_and_json_hold_the_same(run):
    found = evaluate_regression(run, as_data((X[TEST], Y[TEST])), ["credro"], name="mine")
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    rows = [line.split() for line in regression_table([found]).splitlines()[-2:]]
    assert [row[:3] for row in rows] == [["CreDRO", kind, f"{r['rmse']:.4g}"] for kind, r in
                                         zip(("plain", "calibrated"), plain["results"], strict=True)]  # fmt: skip
    assert plain["samples"] == 40
