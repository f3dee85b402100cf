"""One temperature per member, or one factor of its variances, fitted on held-out data by likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.base import Data
from credro.data.fields import Field, why_not
from credro.members import Head, PerSampleLoss
from credro.training.job import check_data

SMALLEST, LARGEST = 0.02, 50.0


def fit_temperature(head: Head, scores: Tensor, labels: Tensor, least: float = SMALLEST) -> float:
    """The temperature in [least, 50] whose ``probs(scores / T)`` has the smallest negative log-likelihood.

    scores: (N, ...), labels: (N,). The likelihood of softmax(scores / T) is concave in 1 / T, so a golden-section
    search on a logarithmic scale finds its one optimum.
    """
    scores = scores.to(torch.float64)

    def nll(log_t: float) -> float:
        p = head.point(head.probs(head.tempered(scores, math.exp(log_t))))
        return float(-p.gather(-1, labels[:, None]).clamp_min(1e-300).log().mean())

    return math.exp(_lowest(nll, least, 1e-5))


def calibrated_loss(head: Head, scores: Tensor, target: Tensor, loss: PerSampleLoss) -> float:
    """The mean loss at the temperature of at least 1, or factor of the variances, at which it is smallest.

    Early stopping by it trains on where a network merely grows too sure, which a temperature repairs afterwards (Berta
    et al., 2025, "Rethinking Early Stopping: Refine, Then Calibrate"). Temperatures below 1 do not count: of a few
    samples that are all right they would make a perfect loss in the first epoch.
    scores: (N, ...), target: (N, ...); of a regression (N, 2), mean and log variance, whose variance is the square.
    """
    power = 2 if head.gives == "gaussians" else 1

    def at(log_t: float) -> float:
        return float(head.held_losses(head.tempered(scores, math.exp(power * log_t)), target, loss).mean())

    return min(at(0.0), at(_lowest(at, 1.0, 1e-3)))


def _lowest(f: Callable[[float], float], least: float, precision: float) -> float:
    """Where between the logarithms of ``least`` and of the largest temperature ``f`` has its one minimum."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = math.log(least), math.log(LARGEST)
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = f(c), f(d)
    while b - a > precision:
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - ratio * (b - a)
            at_c = f(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + ratio * (b - a)
            at_d = f(d)
    return (a + b) / 2


def fit_variance(scores: Tensor, targets: Tensor, least: float = SMALLEST) -> float:
    """The factor in [least^2, 50^2] by which a Gaussian member's variances are most likely: the mean squared residual.

    scores: (N, 2), mean and log variance; targets: (N,). The residual is in units of the predicted standard deviation.
    """
    mean, log_variance = scores.double().unbind(-1)
    squared = (targets.double() - mean).square() * torch.exp(-log_variance)
    return min(LARGEST**2, max(least**2, float(squared.mean())))


def check_held_out(data: Data, classes: int, shape: tuple[int, ...], fields: tuple[Field, ...] = ()) -> None:
    """Raise unless temperatures can be fitted on ``data``. shape, fields: of the training data."""
    if data.labels.ndim != 1 or data.labels.is_floating_point() != (classes == 0):
        raise ValueError(f"calibration needs {'class labels' if classes else 'real targets'}, one per sample")
    check_data(data, classes, "the data to calibrate on")
    if unlike := why_not(data.fields, fields):
        raise ArgumentError("calibrate", f"the data to calibrate on: {unlike}")
    if data.shape != shape:
        raise ValueError(f"the data to calibrate on has samples of shape {data.shape}, the training data of {shape}")
