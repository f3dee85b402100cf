"""How good a regression is: errors of the mean, likelihood of the mixture, and whether intervals hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from credro.prediction.gaussian import GaussianPrediction


@dataclass(frozen=True)
class RegressionScores:
    """Measures of N predictions, in the unit of the target.

    nll: mean negative log-likelihood of the members' mixture, in nats. coverage, width: of the interval that is to hold
    ``level`` of the targets. r2: 1 less the mean squared error over the targets' variance; NaN where they are equal.
    """

    samples: int
    rmse: float
    mae: float
    r2: float
    nll: float
    level: float
    coverage: float
    width: float
    mean_eu: float


def score_regression(prediction: GaussianPrediction, targets: Tensor, level: float = 0.9) -> RegressionScores:
    """Measure predictions of targets (N,)."""
    truth = torch.as_tensor(targets).double()
    if truth.shape != prediction.mean.shape or not len(truth):
        raise ValueError(
            f"targets must have one number per sample, shape {tuple(prediction.mean.shape)} and not empty, "
            f"got {tuple(truth.shape)}"
        )
    if not bool(truth.isfinite().all()):
        raise ValueError("targets must be finite")
    error = prediction.mean - truth
    lower, upper = prediction.interval(level)
    gaussians = torch.distributions.Normal(prediction.means, prediction.stds, validate_args=False)
    logs = gaussians.log_prob(truth)  # type: ignore[no-untyped-call]
    nll = math.log(len(logs)) - torch.logsumexp(logs, 0)
    spread = float((truth - truth.mean()).square().mean())
    squared = float(error.square().mean())
    return RegressionScores(
        samples=len(truth),
        rmse=math.sqrt(squared),
        mae=float(error.abs().mean()),
        r2=1 - squared / spread if spread > 0 else math.nan,
        nll=float(nll.mean()),
        level=level,
        coverage=float(((lower <= truth) & (truth <= upper)).double().mean()),
        width=float((upper - lower).mean()),
        mean_eu=float(prediction.epistemic.mean()),
    )
