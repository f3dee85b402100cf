"""A credal ensemble as a scikit-learn regressor: every member predicts a Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from torch import nn

from credro.data.base import Data
from credro.methods import Method
from credro.nets import GaussianNet, make_gaussian
from credro.prediction import GaussianPrediction
from credro.sklearn._base import CredalEstimator, as_array
from credro.sklearn._inputs import row_names
from credro.sklearn._rows import Array, by_contents
from credro.sklearn._settings import EPOCHS, PATIENCE, MakeNet
from credro.training.defaults import TABLE
from credro.training.train import spread


class CredalRegressor(RegressorMixin, CredalEstimator):  # type: ignore[misc]
    """A credal ensemble of neural networks for regression: mean, standard deviation, the set of the members' mixtures.

    Each member is trained by Gaussian likelihood, by CVaR at a level of its own for ``method="credro"`` (paper,
    appendix on regression). Targets of any unit: the networks work on standardised ones.

    method: "credro", "crewra", "creram" for a credal set; "de", "en-dro" for a point prediction.
    net: as in ``CredalClassifier``; a function ``(n_features, 2) -> nn.Module`` has two outputs.
    calibrate: scales each member's variances where ``CredalClassifier`` has a temperature: intervals of networks that
        know their training data by heart are too narrow.
    max_epistemic: abstain where epistemic uncertainty, a variance, reaches it; None never does.
    All else as in ``CredalClassifier``.

    Learned: n_features_in_, feature_names_in_ (if X had names), ensemble_ (``credro.Ensemble``), max_epistemic_,
    records_ (how each member fits, its delta).
    """

    def __init__(
        self,
        method: str | Method = "credro",
        *,
        net: str | MakeNet = "auto",
        members: int = 5,
        epochs: int = EPOCHS,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = PATIENCE,
        batch_size: int | str = "auto",
        lr: float = 3e-3,
        optimizer: str = TABLE.recipe.optimizer,
        weight_decay: float = TABLE.recipe.weight_decay,
        method_options: dict[str, Any] | None = None,
        recipe_options: dict[str, Any] | None = None,
        calibrate: float | bool | str = "auto",
        max_epistemic: float | None = None,
        scale: bool = True,
        missing: str = "error",
        out: str | Path | None = None,
        executor: str = "auto",
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        optimiser: str | None = None,
    ) -> None:
        """Nothing is checked or done before ``fit``."""
        self._keep(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CredalRegressor:
        """Train the ensemble. The result does not depend on the order of the rows.

        X: (N, features), or images as in ``CredalClassifier``. y: (N,) real numbers. sample_weight: (N,), rows are
        repeated in proportion.
        """
        self._check_settings()
        X, y = self._checked(X, y, reset=True, y_numeric=True)
        X, y, weights = self._weighed(X, y.astype(np.float64), sample_weight)
        seed = self._seed()
        order, kind = by_contents(X, y)
        self._learn(X[order], y[order].astype(np.float32), kind, weights[order], seed)
        return self

    def _builder(self, data: Data) -> Callable[[], nn.Module]:
        net = self._named(data.shape)
        if isinstance(net, str):
            return partial(make_gaussian, net, data.shape, *spread(data))
        return partial(_own, net, data.shape[0] if len(data.shape) == 1 else data.shape, *spread(data))

    def prediction(self, X: Any) -> GaussianPrediction:
        """Everything at once, as tensors: means, stds (M, N), mean, std, set, epistemic, aleatoric, total, interval."""
        scores, method = self._scores(X), self.ensemble_.method
        found = method.readout.regression(self.ensemble_.gaussians(scores))
        return replace(found, samples=row_names(X), method=method.name)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predicted mean (N,) of every row; with ``return_std`` also the standard deviation (N,) of the mixture."""
        prediction = self.prediction(X)
        mean = as_array(prediction.mean)
        return (mean, as_array(prediction.std)) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9) -> Array:
        """Ends (N, 2) of an interval for the target, under every mixture of the members at least ``level`` of it."""
        return np.stack([as_array(end) for end in self.prediction(X).interval(level)], -1)


def _own(net: MakeNet, shape: Any, mean: float, std: float) -> GaussianNet:
    """A user's network with two outputs, for targets of this mean and standard deviation."""
    return GaussianNet(net(shape, 2), mean, std)
