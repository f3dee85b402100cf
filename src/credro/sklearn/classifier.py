"""A credal ensemble as a scikit-learn classifier, for tables and for images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from torch import nn

from credro.credal.decisions import RULES, decide
from credro.data.base import Data
from credro.methods import Method
from credro.metrics import Threshold, threshold
from credro.nets import make as make_net
from credro.prediction import Prediction
from credro.sklearn._base import CredalEstimator, as_array
from credro.sklearn._inputs import row_names
from credro.sklearn._rows import Array, WeightedLoss, by_contents
from credro.sklearn._settings import EPOCHS, PATIENCE, MakeNet
from credro.training.defaults import TABLE


class CredalClassifier(ClassifierMixin, CredalEstimator):  # type: ignore[misc]
    """A credal ensemble of neural networks: labels, probability intervals, and exact epistemic uncertainty.

    method: "credro", "de", "crewra", ... (``credro list methods``), or any ``credro.Method``. method_options: what is
        changed of it, ``{"start": "biased", "delta_g": 0.7}``; searches and ``set_params`` reach each as
        ``method__start`` and ``method__delta_g``.
    net: "auto" is "table" up to 512 features and "mlp" beyond; a network for images (``credro list nets``), or a
        function ``(n_features, n_classes) -> nn.Module``, which gets the shape of one sample where X has more than two
        dimensions.
    members, epochs, batch_size, lr, optimizer, weight_decay: M and the recipe. batch_size "auto": N / 16 within 64 and
        256, but at least four batches an epoch. ``optimiser``: the same as optimizer.
    early_stopping: "auto": stop early where at least 50 rows are there to be divided; True: or raise; False: never.
        validation_fraction: of the rows that are held out for it, by distinct rows. n_iter_no_change: epochs without a
        better loss on them before a member stops; it keeps the weights of its best epoch.
    recipe_options: any other field of ``credro.Recipe``, such as ``{"augment": "crop-flip"}``, or ``recipe__augment``.
    class_weight: None, "balanced" or a dict; multiplies the samples' losses.
    calibrate: "auto" fits a temperature per member, of at least 1, on the rows held out for early stopping, if any; a
        fraction holds out so much of the distinct rows for it alone; False fits none. Members that are calibrated stop
        by the loss that calibration will leave.
    max_epistemic: abstain where epistemic uncertainty reaches it; None never does. See ``choose_threshold``.
    decision_rule: how ``predict_set`` decides (``credro.decide``).
    scale: standardise the features (the channels of images). missing: "error", or "mean": NaN becomes the mean.
    out: folder to keep the run in, resumable; None keeps none. executor, device: see ``credro.fit``.
    n_jobs: processes, where training uses any; inside a worker process it is 1. verbose: show progress.
    random_state: an int is the recipe's seed.

    Learned: classes_, n_features_in_, feature_names_in_ (if X had names), ensemble_ (``credro.Ensemble``),
    max_epistemic_, threshold_ (None before ``choose_threshold``), records_ (how each member fits, its delta).
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
        lr: float = TABLE.recipe.lr,
        optimizer: str = TABLE.recipe.optimizer,
        weight_decay: float = TABLE.recipe.weight_decay,
        method_options: dict[str, Any] | None = None,
        recipe_options: dict[str, Any] | None = None,
        class_weight: dict[Any, float] | str | None = None,
        calibrate: float | bool | str = "auto",
        max_epistemic: float | None = None,
        decision_rule: str = "maximality",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CredalClassifier:
        """Train the ensemble. The result does not depend on the order of the rows.

        X: (N, features), or (N, height, width) or (N, channels, height, width) for an image network. y: (N,) labels.
        sample_weight: (N,). Rows are repeated in proportion: exactly for small whole numbers, with random rounding
        otherwise. A weight of 0 leaves the row out.
        """
        self._check_settings()
        X, y = self._checked(X, y, reset=True)
        check_classification_targets(y)
        X, y, weights = self._weighed(X, y, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least 2 classes, got {len(self.classes_)} class: {self.classes_}")
        seed = self._seed()
        order, kind = by_contents(X, codes)
        X, codes, weights = X[order], codes[order], weights[order]
        loss = None
        if self.class_weight is not None:
            loss = WeightedLoss(tuple(self._class_weights(codes, weights).tolist()))
        self._learn(X, codes, kind, weights, seed, tuple(map(str, self.classes_)), loss=loss)
        self.threshold_: Threshold | None = None
        return self

    def _builder(self, data: Data) -> Callable[[], nn.Module]:
        net, classes = self._named(data.shape), len(data.classes)
        if isinstance(net, str):
            return partial(make_net, net, classes=classes, shape=data.shape)
        return partial(net, data.shape[0] if len(data.shape) == 1 else data.shape, classes)

    def prediction(self, X: Any) -> Prediction:
        """Everything at once, as tensors: probs (M, N, C), mean, set, lower, upper, epistemic, aleatoric, total."""
        scores, method = self._scores(X), self.ensemble_.method
        found = method.readout(self.ensemble_.probs(scores))
        return replace(found, classes=tuple(map(str, self.classes_)), samples=row_names(X), method=method.name)

    def predict(self, X: Any) -> Array:
        """The most probable label (N,) of every row, also of those that ``abstains`` would leave unanswered."""
        return self._labels(self.prediction(X))

    def predict_proba(self, X: Any) -> Array:
        """Point probabilities (N, C), ordered as ``classes_``: the members' mean; CreDE's intersection probability."""
        return as_array(self.prediction(X).mean)

    def predict_interval(self, X: Any) -> Array:
        """Lower and upper probability (N, C, 2) of each class; of a method without a credal set, the members' range."""
        prediction = self.prediction(X)
        return np.stack([as_array(prediction.lower), as_array(prediction.upper)], -1)

    def predict_set(self, X: Any) -> Array:
        """The classes that remain possible, boolean (N, C), by ``decision_rule``; one only without a credal set."""
        prediction = self.prediction(X)
        if prediction.set is None:
            return as_array(np.eye(len(self.classes_), dtype=bool)[prediction.label.numpy()])
        return as_array(decide(prediction.set, self.decision_rule))

    def choose_threshold(self, X: Any, y: Any, *, max_error: float = 0.05, confidence: float = 0.95) -> Threshold:
        """Set ``max_epistemic_`` so that at most ``max_error`` of the answers are wrong, and say how it was shown.

        X, y: held-out rows of the same distribution, used for nothing else; those that ``fit`` had are left out with a
        warning, and if all are, ``SeenSamples`` is raised. See ``credro.threshold``. Where no
        threshold can be shown to hold the error, every row is left unanswered.
        """
        prediction = self.prediction(X)
        y = np.asarray(y)
        if y.shape != (len(prediction),):
            raise ValueError(f"y must have one label per row, shape ({len(prediction)},), got {y.shape}")
        fresh = self._fresh(X)
        prediction, y = prediction[fresh], y[fresh]
        correct = self._labels(prediction) == y
        self.threshold_ = threshold(as_array(prediction.epistemic), correct, max_error, confidence)
        self.max_epistemic_ = self.threshold_.threshold
        return self.threshold_

    def _check_settings(self) -> None:
        """What neither the recipe nor the method checks."""
        super()._check_settings()
        if self.decision_rule not in RULES:
            raise ValueError(f"decision_rule must be one of {', '.join(RULES)}, got {self.decision_rule!r}")

    def _labels(self, prediction: Prediction) -> Array:
        labels: Array = self.classes_[prediction.label.numpy()]
        return labels

    def _class_weights(self, codes: Array, weights: Array) -> npt.NDArray[np.float64]:
        """Weights (C,) with a mean of 1 over the training rows, so that they do not change the size of a step."""
        counts = np.bincount(codes, weights)
        if self.class_weight == "balanced":
            found = 1 / counts
        else:
            found = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return np.asarray(found * counts.sum() / (found * counts).sum())
