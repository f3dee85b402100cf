import math

import pytest
import torch
from scipy.optimize import minimize_scalar

from credro.members import Softmax
from credro.training.calibration import LARGEST, SMALLEST, fit_temperature, fit_variance


def scores_of(seed, scale, classes=5, samples=300):
    """Logits whose labels are drawn from softmax(logits / scale): the best temperature is near ``scale``."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * scale * torch.randn(samples, classes, generator=generator)
    labels = torch.multinomial((logits / scale).softmax(-1), 1, generator=generator).squeeze(1)
    return logits, labels


def nll(logits, labels, temperature):
    return float(torch.nn.functional.cross_entropy(logits.double() / temperature, labels))


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_temperature_is_scipys(seed, scale):
    logits, labels = scores_of(seed, scale)
    ours = fit_temperature(Softmax(), logits, labels)
    scipys = minimize_scalar(
        lambda t: nll(logits, labels, math.exp(t)), bounds=(math.log(0.02), math.log(50)), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert ours == pytest.approx(math.exp(scipys.x), rel=1e-4)
    assert nll(logits, labels, ours) <= nll(logits, labels, 1.0) + 1e-12


def test_it_stays_within_its_bounds():
    right = torch.nn.functional.one_hot(torch.arange(10) % 3, 3).float()
    found = fit_temperature(Softmax(), right, torch.arange(10) % 3)  # always right: the colder, the better
    assert SMALLEST <= found < 0.03  # colder still, and the loss is 0 in double precision
    assert fit_temperature(Softmax(), right, (torch.arange(10) + 1) % 3) == pytest.approx(LARGEST, rel=1e-3)  # never


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_the_factor_of_the_variances_is_scipys(scale):
    generator = torch.Generator().manual_seed(0)
    mean, log_variance = torch.randn(2, 400, generator=generator, dtype=torch.float64)
    targets = mean + scale * torch.exp(log_variance / 2) * torch.randn(400, generator=generator, dtype=torch.float64)

    def likelihood(log_factor):
        variance = torch.exp(log_variance + log_factor)
        return float(torch.nn.functional.gaussian_nll_loss(mean, targets, variance, eps=0.0))

    found = fit_variance(torch.stack([mean, log_variance], -1), targets)
    assert found == pytest.approx(math.exp(minimize_scalar(likelihood, (-1, 1)).x), rel=1e-5)
    assert found == pytest.approx(scale**2, rel=0.2)
