import math

import pytest
import torch
from scipy.optimize import minimize_scalar

from credro.objectives import ERM
from credro.training.calibration import LARGEST, SMALLEST, fit_temperature


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
    ours = fit_temperature(ERM(), logits, labels)
    scipys = minimize_scalar(
        lambda t: nll(logits, labels, math.exp(t)), bounds=(math.log(0.02), math.log(50)), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert ours == pytest.approx(math.exp(scipys.x), rel=1e-4)
    assert nll(logits, labels, ours) <= nll(logits, labels, 1.0) + 1e-12


def test_it_stays_within_its_bounds():
    right = torch.nn.functional.one_hot(torch.arange(10) % 3, 3).float()
    found = fit_temperature(ERM(), right, torch.arange(10) % 3)  # always right: the colder, the better
    assert SMALLEST <= found < 0.03  # colder still, and the loss is 0 in double precision
    assert fit_temperature(ERM(), right, (torch.arange(10) + 1) % 3) == pytest.approx(LARGEST, rel=1e-3)  # never
