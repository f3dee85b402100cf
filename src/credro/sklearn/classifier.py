"""A credal ensemble as a scikit-learn classifier, for tables and for images.

It trains through ``credro.fit`` and keeps nothing on disk, so it clones, pickles and searches like any other estimator.
"""

from __future__ import annotations

import math
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

try:
    from joblib import effective_n_jobs
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        f"credro.sklearn needs scikit-learn 1.6 or later ({error}): pip install 'credro[sklearn]'"
    ) from error

from credro.credal.decisions import RULES, decide
from credro.data import split
from credro.data.base import Data
from credro.ensemble import Ensemble, fit
from credro.evaluation import Threshold, threshold
from credro.methods import Method, make
from credro.nets import MLP, make_under_seed
from credro.nets import make as make_net
from credro.objectives import Rule
from credro.readouts import Prediction
from credro.sklearn.rows import WeightedLoss, by_contents, copies, exact_scores, plain, standardised, without_run
from credro.training.recipe import Recipe
from credro.training.train import FitWarning, pick_device

Array = npt.NDArray[Any]
MakeNet = Callable[[Any, int], nn.Module]

HOLES = "fill in missing values first, or pass missing='mean' to take each for its feature's mean"


class CredalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A credal ensemble of neural networks: labels, probability intervals, and exact epistemic uncertainty.

    method: "credro", "de", "crewra", ... (``credro list methods``). method_options: its options, ``{"delta_g": 0.7}``.
    net: "mlp" for tables, a network for images (``credro list nets``), or a function
        ``(n_features, n_classes) -> nn.Module``; it gets the shape of one sample where X has more than two dimensions.
    members, epochs, batch_size, lr, optimiser, weight_decay: M and the recipe. batch_size "auto": N / 16 within 64 and
        256, but at least four batches an epoch.
    recipe_options: any other field of ``credro.Recipe``, such as ``{"augment": "crop-flip"}``.
    class_weight: None, "balanced" or a dict; multiplies the samples' losses, or, where the method has a loss of its own
        (CreDE), their weights.
    calibrate: False, or the share of the distinct rows that is held out to fit a temperature per member on.
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
        net: str | MakeNet = "mlp",
        members: int = 5,
        epochs: int = 40,
        batch_size: int | str = "auto",
        lr: float = 3e-3,
        optimiser: str = "adamw",
        weight_decay: float = 0.1,
        method_options: dict[str, Any] | None = None,
        recipe_options: dict[str, Any] | None = None,
        class_weight: dict[Any, float] | str | None = None,
        calibrate: float | bool = False,
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
    ) -> None:
        """Nothing is checked or done before ``fit``."""
        self.method = method
        self.net = net
        self.members = members
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.optimiser = optimiser
        self.weight_decay = weight_decay
        self.method_options = method_options
        self.recipe_options = recipe_options
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.max_epistemic = max_epistemic
        self.decision_rule = decision_rule
        self.scale = scale
        self.missing = missing
        self.out = out
        self.executor = executor
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CredalClassifier:
        """Train the ensemble. The result does not depend on the order of the rows.

        X: (N, features), or (N, height, width) or (N, channels, height, width) for an image network. y: (N,) labels.
        sample_weight: (N,). Rows are repeated in proportion: exactly for small whole numbers, with random rounding
        otherwise. A weight of 0 leaves the row out.
        """
        self._check_settings()
        X, y = self._checked(X, y, reset=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            used = sample_weight > 0
            X, y, sample_weight = X[used], y[used], sample_weight[used]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least 2 classes, got {len(self.classes_)} class: {self.classes_}")
        seed, method, names = self._seed(), self._method(), tuple(map(str, self.classes_))
        order, kind = by_contents(X, codes)
        X, codes = X[order], codes[order]
        weights = np.ones(len(X)) if sample_weight is None else sample_weight[order]
        class_weights = self._class_weights(codes, weights)
        if own_loss := type(method.rule).loss is not Rule.loss:
            weights = weights * class_weights[codes]
        rows = np.arange(len(X)).repeat(copies(weights, seed))

        columns = tuple(map(str, getattr(self, "feature_names_in_", ())))
        whole = Data("rows", torch.from_numpy(X), torch.from_numpy(codes), X.shape[1:], names, columns=columns)
        held = np.zeros(len(rows), bool)
        if self.calibrate:  # by distinct rows: copies of one never fall on both sides
            aside, _ = split(torch.from_numpy(codes[np.unique(kind, return_index=True)[1]]), self.calibrate, seed=seed)
            held = np.isin(kind[rows], aside.numpy())
        data = whole.subset(torch.from_numpy(rows[~held]))
        data = standardised(data) if self.scale else replace(data, prepared=True)
        if isinstance(self.net, str):
            self._build = partial(make_net, self.net, classes=len(names), shape=data.shape)
        else:
            self._build = partial(self.net, data.shape[0] if len(data.shape) == 1 else data.shape, len(names))

        with tempfile.TemporaryDirectory(prefix="credro-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # said below, when calibration may have settled it
            ensemble = fit(
                self.net if isinstance(self.net, str) else self._build,
                data,
                method=method,
                members=plain(self.members),
                recipe=self._recipe(len(data), seed),
                out=self.out or folder,
                **self._execution(),
                device=self.device,
                calibrate=whole.subset(torch.from_numpy(rows[held])) if self.calibrate else None,
                loss=None if own_loss or self.class_weight is None else WeightedLoss(tuple(class_weights.tolist())),
                progress="auto" if self.verbose else "none",
                checkpoint_seconds=10.0 if self.out else math.inf,
            )
            self.records_, concerns = ensemble.records, ensemble.warnings
        for text in concerns:
            warnings.warn(text, FitWarning, stacklevel=2)
        self.ensemble_ = ensemble if self.out else without_run(ensemble)
        self.max_epistemic_ = math.inf if self.max_epistemic is None else float(self.max_epistemic)
        self.threshold_: Threshold | None = None
        return self

    def prediction(self, X: Any) -> Prediction:
        """Everything at once, as tensors: probs (M, N, C), mean, set, lower, upper, epistemic, aleatoric, total."""
        check_is_fitted(self)
        X, _ = self._checked(X, reset=False)
        ensemble, x = self.ensemble_, torch.tensor(X)
        scores = exact_scores(ensemble, x) if isinstance(ensemble.nets[0], MLP) else ensemble.scores(x)
        return ensemble.method.readout(ensemble.probs(scores))

    def predict(self, X: Any) -> Array:
        """The most probable label (N,) of every row, also of those that ``abstains`` would leave unanswered."""
        return self._labels(self.prediction(X))

    def predict_proba(self, X: Any) -> Array:
        """Point probabilities (N, C), ordered as ``classes_``: the members' mean; CreDE's intersection probability."""
        return _numpy(self.prediction(X).mean)

    def predict_interval(self, X: Any) -> Array:
        """Lower and upper probability (N, C, 2) of each class; of a method without a credal set, the members' range."""
        prediction = self.prediction(X)
        return np.stack([_numpy(prediction.lower), _numpy(prediction.upper)], -1)

    def predict_set(self, X: Any) -> Array:
        """The classes that remain possible, boolean (N, C), by ``decision_rule``; one only without a credal set."""
        prediction = self.prediction(X)
        if prediction.set is None:
            return _numpy(np.eye(len(self.classes_), dtype=bool)[prediction.label.numpy()])
        return _numpy(decide(prediction.set, self.decision_rule))

    def epistemic(self, X: Any) -> Array:
        """Epistemic uncertainty (N,): what more data would settle. Entropy gap, or interval width for two classes."""
        return _numpy(self.prediction(X).epistemic)

    def aleatoric(self, X: Any) -> Array:
        """Aleatoric uncertainty (N,), in nats: the least entropy in the credal set."""
        return _numpy(self.prediction(X).aleatoric)

    def total(self, X: Any) -> Array:
        """Total uncertainty (N,), in nats: the greatest entropy in the credal set."""
        return _numpy(self.prediction(X).total)

    def abstains(self, X: Any) -> Array:
        """Where (N,) epistemic uncertainty reaches ``max_epistemic_``: better no answer than ``predict``'s."""
        epistemic = self.epistemic(X)
        return _numpy(~(epistemic < self.max_epistemic_))

    def choose_threshold(self, X: Any, y: Any, *, max_error: float = 0.05, confidence: float = 0.95) -> Threshold:
        """Set ``max_epistemic_`` so that at most ``max_error`` of the answers are wrong, and say how it was shown.

        X, y: held-out rows of the same distribution, used for nothing else. See ``credro.threshold``. Where no
        threshold can be shown to hold the error, every row is left unanswered.
        """
        prediction = self.prediction(X)
        y = np.asarray(y)
        if y.shape != (len(prediction),):
            raise ValueError(f"y must have one label per row, shape ({len(prediction)},), got {y.shape}")
        correct = self._labels(prediction) == y
        self.threshold_ = threshold(_numpy(prediction.epistemic), correct, max_error, confidence)
        self.max_epistemic_ = self.threshold_.threshold
        return self.threshold_

    def __getstate__(self) -> dict[str, Any]:
        """Weights in place of networks: not every network pickles, and another machine may have other devices."""
        state: dict[str, Any] = super().__getstate__()
        if "ensemble_" not in state:
            return state
        ensemble = state["ensemble_"]
        kept = {**vars(ensemble), "nets": [{k: v.cpu() for k, v in net.state_dict().items()} for net in ensemble.nets]}
        del kept["device"]
        return {**state, "ensemble_": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the networks again."""
        super().__setstate__(state)
        if "ensemble_" not in state:
            return
        kept, nets = dict(state["ensemble_"]), []
        device = kept["device"] = pick_device(self.device)
        for i, weights in enumerate(kept["nets"]):
            net = kept["method"].rule.convert(make_under_seed(self._build, i), i, len(kept["nets"]))
            net.load_state_dict(weights, assign=True)  # in the memory layout they were trained in
            nets.append(net.to(device).eval())
        self.ensemble_ = Ensemble.__new__(Ensemble)
        vars(self.ensemble_).update(kept, nets=nets)

    def __sklearn_tags__(self) -> Any:
        """NaN is welcome where ``missing`` says so."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    def _check_settings(self) -> None:
        """What neither the recipe nor the method checks."""
        if self.decision_rule not in RULES:
            raise ValueError(f"decision_rule must be one of {', '.join(RULES)}, got {self.decision_rule!r}")
        if self.missing not in ("error", "mean"):
            raise ValueError(f"missing must be 'error' or 'mean', got {self.missing!r}")
        if self.missing == "mean" and not self.scale:
            raise ValueError("missing='mean' needs scale=True: it is the scaling that knows the means")
        if self.calibrate is not False and not (self.calibrate is not True and 0 < self.calibrate < 1):
            raise ValueError(f"calibrate must be False or a share of the rows in (0, 1), got {self.calibrate!r}")

    def _checked(self, X: Any, y: Any = None, *, reset: bool) -> tuple[Array, Any]:
        """X as floats (images of bytes stay bytes), y as it is. reset: learn what X is like; else compare with it."""
        images = self.net != "mlp"
        settings: dict[str, Any] = {
            "dtype": [np.float32, np.uint8] if images else np.float32,
            "allow_nd": images,
            "ensure_all_finite": "allow-nan" if self.missing == "mean" else True,
        }
        try:
            if reset:
                X, y = validate_data(self, X, y, **settings)
                check_classification_targets(y)
            else:
                X = validate_data(self, X, reset=False, **settings)
        except ValueError as error:
            if str(error).startswith("Input X contains NaN"):  # scikit-learn goes on to recommend other estimators
                raise ValueError(f"Input X contains NaN: {HOLES}") from error
            raise
        if X.ndim == 2:
            X = X.astype(np.float32, copy=False)
        elif X.ndim == 3 and isinstance(self.net, str):
            X = X[:, None]  # grey images have one channel
        if reset:
            self._dtype = X.dtype
        elif X.dtype != self._dtype:
            raise ValueError(f"X must hold {self._dtype} images, as in fit, got {X.dtype}")
        return X, y

    def _labels(self, prediction: Prediction) -> Array:
        labels: Array = self.classes_[prediction.label.numpy()]
        return labels

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _method(self) -> Method:
        if isinstance(self.method, Method):
            if self.method_options:
                raise ValueError("method_options go with a method's name: this method has its options already")
            return self.method
        return make(self.method, **plain(self.method_options or {}))

    def _recipe(self, rows: int, seed: int) -> Recipe:
        auto = min(256, max(64, rows // 16), max(8, rows // 4))
        size = auto if self.batch_size == "auto" else self.batch_size
        given = {"epochs": self.epochs, "batch_size": size, "lr": self.lr, "optimiser": self.optimiser}
        given |= {"weight_decay": self.weight_decay, "seed": seed}
        return Recipe(**plain({**given, **(self.recipe_options or {})}))

    def _class_weights(self, codes: Array, weights: Array) -> npt.NDArray[np.float64]:
        """Weights (C,) with a mean of 1 over the training rows, so that they do not change the size of a step."""
        counts = np.bincount(codes, weights)
        if self.class_weight == "balanced":
            found = 1 / counts
        else:
            found = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return np.asarray(found * counts.sum() / (found * counts).sum())

    def _execution(self) -> dict[str, Any]:
        """Executor and workers. A worker process starts no processes of its own (a daemonic one may not)."""
        if multiprocessing.parent_process() is None:
            return {"executor": self.executor, "workers": effective_n_jobs(self.n_jobs)}
        return {"executor": "sequential" if self.executor == "processes" else self.executor, "workers": 1}


def _numpy(x: Any) -> Array:
    array: Array = np.asarray(x)
    return array
