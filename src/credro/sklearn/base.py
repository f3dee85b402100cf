"""What the classifier and the regressor have in common: settings, checks, training, pickling.

They train through ``credro.fit`` and keep nothing on disk, so they clone, pickle and search like any other estimator.
"""

from __future__ import annotations

import math
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from credro.data import split
from credro.data.base import Data
from credro.ensemble import Ensemble, fit
from credro.methods import Method, make
from credro.nets import MLP, GaussianNet, make_under_seed
from credro.sklearn.inputs import dense, refuse_words
from credro.sklearn.params import InnerParams, with_method_options
from credro.sklearn.rows import exact_scores, plain
from credro.training.defaults import set_aside
from credro.training.recipe import Recipe, spelled
from credro.training.seen import SeenSamples, SeenWarning
from credro.training.train import FitWarning, pick_device

Array = npt.NDArray[Any]
MakeNet = Callable[[Any, int], nn.Module]

TABLE_NETS = ("auto", "mlp", "table")
"""Networks for rows of features; others take images."""

WAVES_UP_TO = 512
"""Features up to which "auto" is the network with waves of every feature: of more they take too much memory."""

HOLES = "fill in missing values first, or pass missing='mean' to take each for its feature's mean"


class CredalEstimator(InnerParams):
    """Everything but what is predicted. A subclass's ``fit`` sets ``_build``, which makes a member's network."""

    net: str | MakeNet
    members: int
    epochs: int
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    batch_size: int | str
    lr: float
    optimizer: str
    weight_decay: float
    calibrate: float | bool | str
    max_epistemic: float | None
    scale: bool
    missing: str
    out: str | Path | None
    executor: str
    n_jobs: int | None
    device: str
    random_state: Any
    verbose: int
    optimiser: str | None
    _build: Callable[[], nn.Module]

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
        """NaN is welcome where ``missing`` says so; sparse rows are made dense."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        tags.input_tags.sparse = True
        return tags

    def epistemic(self, X: Any) -> Array:
        """Epistemic uncertainty (N,) of every row."""
        raise NotImplementedError

    def abstains(self, X: Any) -> Array:
        """Where (N,) epistemic uncertainty reaches ``max_epistemic_``: better no answer than ``predict``'s."""
        epistemic = self.epistemic(X)
        return as_array(~(epistemic < self.max_epistemic_))

    def _check_settings(self) -> None:
        """What neither the recipe nor the method checks."""
        if self.missing not in ("error", "mean"):
            raise ValueError(f"missing must be 'error' or 'mean', got {self.missing!r}")
        if self.missing == "mean" and not self.scale:
            raise ValueError("missing='mean' needs scale=True: it is the scaling that knows the means")
        held = plain(self.calibrate)
        if not (held is False or held == "auto" or (_is_number(held) and 0 < held < 1)):
            raise ValueError(f"calibrate must be False or a fraction of the rows in (0, 1), or 'auto', got {held!r}")
        if plain(self.early_stopping) not in (True, False, "auto"):
            raise ValueError(f"early_stopping must be True, False or 'auto', got {self.early_stopping!r}")
        part, patience = plain(self.validation_fraction), plain(self.n_iter_no_change)
        if not (_is_number(part) and 0 < part < 1):
            raise ValueError(f"validation_fraction must lie in (0, 1), got {part!r}")
        if not isinstance(patience, int) or isinstance(patience, bool) or patience < 1:
            raise ValueError(f"n_iter_no_change must be a whole number of at least 1, got {patience!r}")
        if "early_stop" in (self.recipe_options or {}):
            raise ValueError("recipe_options has 'early_stop': set early_stopping and n_iter_no_change in its place")

    def _checked(self, X: Any, y: Any = None, *, reset: bool, y_numeric: bool = False) -> tuple[Array, Any]:
        """X as floats (images of bytes stay bytes), y as it is. reset: learn what X is like; else compare with it."""
        refuse_words(X, type(self).__name__)
        images = not (isinstance(self.net, str) and self.net in TABLE_NETS)
        settings: dict[str, Any] = {
            "dtype": [np.float32, np.uint8] if images else np.float32,
            "allow_nd": images,
            "accept_sparse": ["csr", "csc", "coo"],  # kinds whose values are checked; others become the first
            "ensure_all_finite": "allow-nan" if self.missing == "mean" else True,
        }
        try:
            if reset:
                X, y = validate_data(self, X, y, y_numeric=y_numeric, **settings)
            else:
                X = validate_data(self, X, reset=False, **settings)
        except ValueError as error:
            if str(error).startswith("Input X contains NaN"):  # scikit-learn goes on to recommend other estimators
                raise ValueError(f"Input X contains NaN: {HOLES}") from error
            raise
        if issparse(X):
            X = dense(X)
        elif X.ndim == 2:
            X = X.astype(np.float32, copy=False)
        elif X.ndim == 3 and isinstance(self.net, str):
            X = X[:, None]  # grey images have one channel
        if reset:
            self._dtype = X.dtype
        elif X.dtype != self._dtype:
            raise ValueError(f"X must hold {self._dtype} images, as in fit, got {X.dtype}")
        return X, y

    def _weighed(self, X: Array, y: Array, sample_weight: Any) -> tuple[Array, Array, npt.NDArray[np.float64]]:
        """Without the rows of weight 0, and the weights (N,) of the others."""
        if sample_weight is None:
            return X, y, np.ones(len(X))
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        used = weights > 0
        return X[used], y[used], weights[used]

    def _held_out(self, kind: Array, rows: Array, seed: int, codes: Array | None = None) -> Array:
        """Which of ``rows`` are kept for calibration, by distinct rows: copies of one never fall on both sides.

        kind: (N,), each row's number among the distinct ones. codes: (N,) classes, to divide each in proportion.
        """
        if not _is_number(self.calibrate):
            return np.zeros(len(rows), bool)
        first = np.unique(kind, return_index=True)[1]
        strata = np.zeros(len(first), np.int64) if codes is None else codes[first]
        aside, _ = split(torch.from_numpy(strata), float(self.calibrate), seed=seed)
        held: Array = np.isin(kind[rows], aside.numpy())
        return held

    def _divided(self, data: Data, seed: int) -> tuple[Data, Data | None]:
        """What to train on, and what to stop by: ``validation_fraction`` of it, by distinct rows, if it can be had."""
        stops = plain(self.early_stopping)
        if stops is False:
            return data, None
        parts = set_aside(data, plain(self.validation_fraction), seed=seed)
        if parts.held_out is None and stops is True:
            raise ValueError(f"early_stopping=True: {parts.note} early_stopping='auto' goes without where it must")
        return parts.train, parts.held_out

    def _named(self, shape: tuple[int, ...]) -> str | MakeNet:
        """The network's name or function; "auto" is by the number of features."""
        if self.net != "auto":
            return self.net
        return "table" if shape[0] <= WAVES_UP_TO else "mlp"

    def _train(
        self, data: Data, method: Method, recipe: Recipe, watched: Data | None, aside: Data | None, **options: Any
    ) -> None:
        """Train the ensemble.

        watched: rows to stop by, and to calibrate on where there is no ``aside``, held out for that alone.
        options: of ``credro.fit``.
        """
        with tempfile.TemporaryDirectory(prefix="credro-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # said below, when calibration may have settled it
            ensemble = fit(
                net if isinstance(net := self._named(data.shape), str) else self._build,
                data,
                method=method,
                members=plain(self.members),
                recipe=recipe,
                out=self.out or folder,
                **self._execution(),
                device=self.device,
                progress="auto" if self.verbose else "none",
                checkpoint_seconds=10.0 if self.out else math.inf,
                held_out=watched,
                calibrate=aside,
                **options,
            )
            self.records_, concerns = ensemble.records, ensemble.warnings
            self.ensemble_ = ensemble if self.out else ensemble.without_run()  # the folder is about to go
        for text in concerns:
            warnings.warn(text, FitWarning, stacklevel=3)
        self.max_epistemic_ = math.inf if self.max_epistemic is None else float(self.max_epistemic)

    def _scores(self, X: Any) -> Tensor:
        """What the members' networks give (M, N, ...)."""
        check_is_fitted(self)
        X, _ = self._checked(X, reset=False)
        net, x = self.ensemble_.nets[0], torch.tensor(X)
        plain_net = net.net if isinstance(net, GaussianNet) else net
        return exact_scores(self.ensemble_, x) if isinstance(plain_net, MLP) else self.ensemble_.scores(x)

    def _fresh(self, X: Any) -> Array:
        """Which rows (N,) have served neither training, stopping nor calibration; told if there are others."""
        X, _ = self._checked(X, reset=False)
        found, fresh = self.ensemble_.overlap(Data("X", torch.from_numpy(X), torch.zeros(len(X)), X.shape[1:]))
        if found.used:
            said = f"{found}, and say nothing of the error on new rows"
            if not bool(fresh.any()):
                raise SeenSamples(f"X: {said}. Give rows that were held out from fit")
            warnings.warn(f"X: {said}: they are left out", SeenWarning, stacklevel=3)
        return as_array(fresh)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _method(self) -> Method:
        if isinstance(self.method, Method):
            if self.method_options:
                raise ValueError("method_options go with a method's name: this method has its options already")
            return self.method
        given = self.method_options or {}
        try:
            with_method_options(self.method, None, given)
        except ValueError as error:
            raise ValueError(
                f"{error}. It was set in method_options={given!r}: set_params(method_options=None) takes that back"
            ) from error
        return make(self.method, **plain(given))

    def _recipe(self, rows: int, seed: int, stops: bool, **given: Any) -> Recipe:
        """stops: whether there are rows to stop by."""
        auto = min(256, max(64, rows // 16), max(8, rows // 4))
        size = auto if self.batch_size == "auto" else self.batch_size
        given |= {"epochs": self.epochs, "batch_size": size, "lr": self.lr, "weight_decay": self.weight_decay}
        given |= {"optimizer": self.optimizer if self.optimiser is None else self.optimiser, "seed": seed}
        if stops:
            given |= {"early_stop": self.n_iter_no_change}
            given |= {"early_stop_by": "loss" if plain(self.calibrate) is False else "calibrated"}
        return Recipe(**plain({**given, **spelled(self.recipe_options or {})}))

    def _execution(self) -> dict[str, Any]:
        """Executor and workers. A worker process starts no processes of its own (a daemonic one may not)."""
        if multiprocessing.parent_process() is None:
            return {"executor": self.executor, "workers": effective_n_jobs(self.n_jobs)}
        return {"executor": "sequential" if self.executor == "processes" else self.executor, "workers": 1}


def _is_number(value: Any) -> bool:
    return isinstance(plain(value), int | float) and not isinstance(plain(value), bool)


def as_array(x: Any) -> Array:
    """A tensor or array as an array."""
    array: Array = np.asarray(x)
    return array
