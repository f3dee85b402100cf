import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from credro.metrics.regression import score_regression
from credro.prediction import GaussianPrediction

RNG = np.random.default_rng(0)
MEANS, STDS, TRUTH = RNG.normal(size=(3, 50)), RNG.uniform(0.5, 2, size=(3, 50)), RNG.normal(size=50)


@pytest.mark.parametrize("credal", [True, False])
def test_against_scipy_and_scikit_learn(credal):
    outputs = torch.from_numpy(np.stack([MEANS, 2 * np.log(STDS)], -1))
    prediction = GaussianPrediction.of(outputs, credal)
    found = score_regression(prediction, torch.from_numpy(TRUTH))
    mean = MEANS.mean(0)
    assert found.rmse == pytest.approx(root_mean_squared_error(TRUTH, mean))
    assert found.mae == pytest.approx(mean_absolute_error(TRUTH, mean))
    assert found.r2 == pytest.approx(r2_score(TRUTH, mean))
    assert found.nll == pytest.approx(-np.log(stats.norm(MEANS, STDS).pdf(TRUTH).mean(0)).mean())
    if not credal:
        std = np.sqrt((STDS**2 + MEANS**2).mean(0) - mean**2)
        inside = np.abs(TRUTH - mean) <= stats.norm.ppf(0.95) * std
        assert found.coverage == pytest.approx(inside.mean())
        assert found.width == pytest.approx((2 * stats.norm.ppf(0.95) * std).mean(), rel=1e-6)


def test_what_cannot_be_measured():
    prediction = GaussianPrediction.of(torch.zeros(2, 3, 2), False)
    assert np.isnan(score_regression(prediction, torch.ones(3)).r2)
    with pytest.raises(ValueError, match=r"one number per sample, shape \(3,\) and not empty, got \(2,\)"):
        score_regression(prediction, torch.ones(2))
    with pytest.raises(ValueError, match="finite"):
        score_regression(prediction, torch.tensor([1.0, float("nan"), 2.0]))
