"""A credal ensemble as a scikit-learn regressor: every member predicts a Gaussian."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin

from credro.data.base import Data
from credro.methods import Method
from credro.nets import GaussianNet, make_gaussian
from credro.readouts import GaussianPrediction
from credro.sklearn.base import Array, CredalEstimator, MakeNet, as_array
from credro.sklearn.inputs import row_names
from credro.sklearn.rows import by_contents, copies, standardised
from credro.training.train import spread


class CredalRegressor(RegressorMixin, CredalEstimator):  # type: ignore[misc]
    """A credal ensemble of neural networks for numbers: a mean, a deviation, and the set of the members' mixtures.

    Each member is trained by Gaussian likelihood, under its own share of the worst samples for ``method="credro"``
    (paper, appendix on regression). Targets of any unit: the networks work on standardised ones.

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
        epochs: int = 60,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 15,
        batch_size: int | str = "auto",
        lr: float = 3e-3,
        optimizer: str = "adamw",
        weight_decay: float = 0.1,
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
        self.method = method
        self.net = net
        self.members = members
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.lr = lr
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.method_options = method_options
        self.recipe_options = recipe_options
        self.calibrate = calibrate
        self.max_epistemic = max_epistemic
        self.scale = scale
        self.missing = missing
        self.out = out
        self.executor = executor
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.optimiser = optimiser

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CredalRegressor:
        """Train the ensemble. The result does not depend on the order of the rows.

        X: (N, features), or images as in ``CredalClassifier``. y: (N,) numbers. sample_weight: (N,), rows are repeated
        in proportion.
        """
        self._check_settings()
        X, y = self._checked(X, y, reset=True, y_numeric=True)
        X, y, weights = self._weighed(X, y.astype(np.float64), sample_weight)
        seed = self._seed()
        order, kind = by_contents(X, y)
        X, y = X[order], y[order]
        rows = np.arange(len(X)).repeat(copies(weights[order], seed))
        held = self._held_out(kind, rows, seed)
        columns = tuple(map(str, getattr(self, "feature_names_in_", ())))
        whole = Data("rows", torch.from_numpy(X), torch.from_numpy(y).float(), X.shape[1:], columns=columns)
        data, watched = self._divided(whole.subset(torch.from_numpy(rows[~held])), seed)
        data = standardised(data) if self.scale else replace(data, prepared=True)
        net = self._named(data.shape)
        if isinstance(net, str):
            self._build = partial(make_gaussian, net, data.shape, *spread(data))
        else:
            shape = data.shape[0] if len(data.shape) == 1 else data.shape
            self._build = partial(_own, net, shape, *spread(data))
        self._train(
            data,
            self._method(),
            self._recipe(len(data), seed, watched is not None, loss="gaussian_nll"),
            watched,
            whole.subset(torch.from_numpy(rows[held])) if held.any() else None,
        )
        return self

    def prediction(self, X: Any) -> GaussianPrediction:
        """Everything at once, as tensors: means, stds (M, N), mean, std, set, epistemic, aleatoric, total, interval."""
        scores, method = self._scores(X), self.ensemble_.method
        found = method.readout.numbers(self.ensemble_.gaussians(scores))
        return replace(found, samples=row_names(X), method=method.name)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predicted number (N,) of every row; with ``return_std`` also the deviation (N,) of the mixture."""
        prediction = self.prediction(X)
        mean = as_array(prediction.mean)
        return (mean, as_array(prediction.std)) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9) -> Array:
        """Ends (N, 2) of an interval for the target, under every mixture of the members at least ``level`` of it."""
        return np.stack([as_array(end) for end in self.prediction(X).interval(level)], -1)

    def epistemic(self, X: Any) -> Array:
        """Epistemic uncertainty (N,), a variance: what more data would settle."""
        return as_array(self.prediction(X).epistemic)

    def aleatoric(self, X: Any) -> Array:
        """Aleatoric uncertainty (N,): the smallest variance in the credal set."""
        return as_array(self.prediction(X).aleatoric)

    def total(self, X: Any) -> Array:
        """Total uncertainty (N,): the largest variance in the credal set."""
        return as_array(self.prediction(X).total)


def _own(net: MakeNet, shape: Any, mean: float, std: float) -> GaussianNet:
    """A user's network with two outputs, for targets of this mean and deviation."""
    return GaussianNet(net(shape, 2), mean, std)
