"""What the classifier and the regressor have in common: settings, checks, training, pickling.

They train through ``credro.fit`` and keep nothing on disk, so they clone, pickle and search like any other estimator.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from credro.data import split
from credro.data.base import Data
from credro.ensemble import Ensemble, fit
from credro.nets import MLP, GaussianNet, make_under_seed
from credro.sklearn._inputs import dense, refuse_words
from credro.sklearn._rows import Array, copies, exact_scores, plain, standardised
from credro.sklearn._settings import Settings, is_number
from credro.training.defaults import set_aside
from credro.training.seen import SeenSamples, SeenWarning
from credro.training.train import FitWarning, pick_device

TABLE_NETS = ("auto", "mlp", "table")
"""Networks for rows of features; others take images."""

HOLES = "fill in missing values first, or pass missing='mean' to take each for its feature's mean"


class CredalEstimator(Settings):
    """Everything but what is predicted. A subclass's ``fit`` sets ``_build``, which makes a member's network."""

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
            member = kept["method"].member(i, len(kept["nets"]))
            net = member.head.convert(make_under_seed(self._build, i))
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

    def prediction(self, X: Any) -> Any:
        """Everything at once, as tensors."""
        raise NotImplementedError

    def epistemic(self, X: Any) -> Array:
        """Epistemic uncertainty (N,): what more data would settle.

        The entropy gap of the credal set, in nats (of two classes the interval's width); of a regression a variance.
        """
        return as_array(self.prediction(X).epistemic)

    def aleatoric(self, X: Any) -> Array:
        """Aleatoric uncertainty (N,): the least entropy in the credal set, in nats, or of a regression variance."""
        return as_array(self.prediction(X).aleatoric)

    def total(self, X: Any) -> Array:
        """Total uncertainty (N,): the greatest entropy in the credal set, in nats, or of a regression variance."""
        return as_array(self.prediction(X).total)

    def abstains(self, X: Any) -> Array:
        """Where (N,) epistemic uncertainty reaches ``max_epistemic_``: better no answer than ``predict``'s."""
        epistemic = self.epistemic(X)
        return as_array(~(epistemic < self.max_epistemic_))

    def _checked(self, X: Any, y: Any = None, *, reset: bool, y_numeric: bool = False) -> tuple[Array, Any]:
        """X as floats (images of bytes stay bytes), y as it is. reset: learn what X is like; else compare with it."""
        refuse_words(X, type(self).__name__)
        images = not (isinstance(self.net, str) and self.net in TABLE_NETS)
        settings: dict[str, Any] = {
            "dtype": [np.float32, np.uint8] if images else np.float32,
            "allow_nd": images,
            "accept_sparse": ["csr", "csc", "coo"],  # kinds whose values are checked; others become the first
            "ensure_all_finite": "allow-nan",
        }
        if reset:
            X, y = validate_data(self, X, y, y_numeric=y_numeric, **settings)
        else:
            X = validate_data(self, X, reset=False, **settings)
        if self.missing == "error" and bool(np.isnan(getattr(X, "data") if issparse(X) else X).any()):  # noqa: B009
            raise ValueError(f"Input X contains NaN: {HOLES}")
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
        if not is_number(self.calibrate):
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

    def _builder(self, data: Data) -> Callable[[], nn.Module]:
        """What makes a member's network for ``data``."""
        raise NotImplementedError

    def _learn(
        self,
        X: Array,
        y: Array,
        kind: Array,
        weights: npt.NDArray[np.float64],
        seed: int,
        classes: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        """Train on rows X, y (N,), repeated by their weights (N,). kind: (N,), each one's number among the distinct.

        classes: names of those that y counts; none for a regression. options: of ``credro.fit``.
        """
        columns = tuple(map(str, getattr(self, "feature_names_in_", ())))
        whole = Data("rows", torch.from_numpy(X), torch.from_numpy(y), X.shape[1:], classes, columns=columns)
        rows = np.arange(len(X)).repeat(copies(weights, seed))
        held = self._held_out(kind, rows, seed, y if classes else None)
        data, watched = self._divided(whole.subset(torch.from_numpy(rows[~held])), seed)
        data = standardised(data) if self.scale else replace(data, prepared=True)
        self._build = self._builder(data)
        recipe = self._recipe(len(data), seed, watched is not None, **({} if classes else {"loss": "gaussian_nll"}))
        with tempfile.TemporaryDirectory(prefix="credro-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # said below, when calibration may have settled it
            ensemble = fit(
                net if isinstance(net := self._named(data.shape), str) else self._build,
                data,
                method=self._method(),
                members=plain(self.members),
                recipe=recipe,
                out=self.out or folder,
                **self._execution(),
                device=self.device,
                progress="auto" if self.verbose else "none",
                checkpoint_seconds=10.0 if self.out else math.inf,
                held_out=watched,
                calibrate=whole.subset(torch.from_numpy(rows[held])) if held.any() else None,
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


def as_array(x: Any) -> Array:
    """A tensor or array as an array."""
    array: Array = np.asarray(x)
    return array
