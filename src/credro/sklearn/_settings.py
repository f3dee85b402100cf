"""The parameters of an estimator: what is checked of them, and the method, recipe and execution they stand for."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from torch import nn

from credro.methods import Method, make
from credro.sklearn._params import InnerParams
from credro.sklearn._rows import plain
from credro.training.defaults import TABLE
from credro.training.recipe import Recipe, spelled

MakeNet = Callable[[Any, int], nn.Module]

EPOCHS = TABLE.epochs[0]
PATIENCE = round(TABLE.patience * EPOCHS)
"""Those of training by itself (``credro.training.defaults``)."""

WAVES_UP_TO = 512
"""Features up to which "auto" is the network with waves of every feature: of more they take too much memory."""


class Settings(InnerParams):
    """The parameters that both estimators have."""

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

    def _keep(self, given: dict[str, Any]) -> None:
        """Parameters as they came: what a constructor of scikit-learn's kind does, and all that it does."""
        self.__dict__ |= {name: given[name] for name in self._get_param_names()}

    def _check_settings(self) -> None:
        """What neither the recipe nor the method checks."""
        if self.missing not in ("error", "mean"):
            raise ValueError(f"missing must be 'error' or 'mean', got {self.missing!r}")
        if self.missing == "mean" and not self.scale:
            raise ValueError("missing='mean' needs scale=True: it is the scaling that knows the means")
        held = plain(self.calibrate)
        if not (held is False or held == "auto" or (is_number(held) and 0 < held < 1)):
            raise ValueError(f"calibrate must be False or a fraction of the rows in (0, 1), or 'auto', got {held!r}")
        if plain(self.early_stopping) not in (True, False, "auto"):
            raise ValueError(f"early_stopping must be True, False or 'auto', got {self.early_stopping!r}")
        part, patience = plain(self.validation_fraction), plain(self.n_iter_no_change)
        if not (is_number(part) and 0 < part < 1):
            raise ValueError(f"validation_fraction must lie in (0, 1), got {part!r}")
        if not isinstance(patience, int) or isinstance(patience, bool) or patience < 1:
            raise ValueError(f"n_iter_no_change must be a whole number of at least 1, got {patience!r}")
        if "early_stop" in (self.recipe_options or {}):
            raise ValueError("recipe_options has 'early_stop': set early_stopping and n_iter_no_change in its place")

    def _named(self, shape: tuple[int, ...]) -> str | MakeNet:
        """The network's name or function; "auto" is by the number of features."""
        if self.net != "auto":
            return self.net
        return "table" if shape[0] <= WAVES_UP_TO else "mlp"

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
            return make(self.method, **plain(given))
        except ValueError as error:
            if not given:
                raise
            raise ValueError(
                f"{error}. It was set in method_options={given!r}: set_params(method_options=None) takes that back"
            ) from error

    def _recipe(self, rows: int, seed: int, stops: bool, **given: Any) -> Recipe:
        """stops: whether there are rows to stop by."""
        auto = min(TABLE.batch[1], max(TABLE.batch[0], rows // TABLE.an_epoch), max(8, rows // 4))
        size = auto if self.batch_size == "auto" else self.batch_size
        given |= {"epochs": self.epochs, "batch_size": size, "lr": self.lr, "weight_decay": self.weight_decay}
        given |= {"optimizer": self.optimizer if self.optimiser is None else self.optimiser, "seed": seed}
        if stops:
            given |= {"early_stop": self.n_iter_no_change}
            given |= {"early_stop_by": "loss" if plain(self.calibrate) is False else TABLE.recipe.early_stop_by}
        return Recipe(**plain({**given, **spelled(self.recipe_options or {})}))

    def _execution(self) -> dict[str, Any]:
        """Executor and workers. A worker process starts no processes of its own (a daemonic one may not)."""
        if multiprocessing.parent_process() is None:
            return {"executor": self.executor, "workers": effective_n_jobs(self.n_jobs)}
        return {"executor": "sequential" if self.executor == "processes" else self.executor, "workers": 1}


def is_number(value: Any) -> bool:
    """Whether it is one, of Python or NumPy, and no truth value."""
    return isinstance(plain(value), int | float) and not isinstance(plain(value), bool)
