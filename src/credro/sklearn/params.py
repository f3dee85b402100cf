"""Options of the method and fields of the recipe as parameters of their own: ``method__delta_g``, ``recipe__clip``.

scikit-learn's searches reach what ``get_params`` lists. The options are kept where they always were, in
``method_options`` and ``recipe_options``, so cloning and pickling know nothing of this.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any

from sklearn.base import BaseEstimator

from credro.methods import METHODS, Method, options
from credro.training.recipe import Recipe

OWN = ("epochs", "batch_size", "lr", "optimizer", "optimiser", "weight_decay", "seed", "early_stop")
"""Fields of the recipe that an estimator has a parameter for, by this name or another."""


class InnerParams(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters reach inside its method and its recipe."""

    method: str | Method
    method_options: dict[str, Any] | None
    recipe_options: dict[str, Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters and their values; ``deep``: also the method's options, ``method__...``, and ``recipe__...``."""
        found: dict[str, Any] = super().get_params(deep=False)
        if deep:
            inner = {"method": method_params(self.method, self.method_options)}
            inner["recipe"] = recipe_params(self.recipe_options)
            found |= {f"{part}__{key}": value for part, values in inner.items() for key, value in values.items()}
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters, ``method__delta_g`` and ``recipe__clip`` among them; the method itself is set first."""
        inner: dict[str, dict[str, Any]] = {"method": {}, "recipe": {}}
        own = {}
        for name, value in params.items():
            part, dots, key = name.partition("__")
            if dots and part in inner:
                inner[part][key] = value
            else:
                own[name] = value
        super().set_params(**own)
        if changes := inner["method"]:
            self.method, self.method_options = with_method_options(self.method, self.method_options, changes)
        if changes := inner["recipe"]:
            self.recipe_options = with_recipe_options(self.recipe_options, changes)
        return self


def method_params(method: Any, given: Any) -> dict[str, Any]:
    """The options of ``method`` with their values; ``given``: those set by name. A method nobody knows has these."""
    chosen = given if isinstance(given, dict) else {}
    if isinstance(method, Method):
        return _fields(method.rule) | _fields(method.readout)
    known = options(method) if isinstance(method, str) and method in METHODS else {}
    return known | chosen


def recipe_params(given: Any) -> dict[str, Any]:
    """The recipe's fields that have no parameter of their own, with their values."""
    known = {f.name: f.default for f in fields(Recipe) if f.name not in OWN}
    return known | (given if isinstance(given, dict) else {})


def with_method_options(method: Any, given: Any, changes: dict[str, Any]) -> tuple[Any, Any]:
    """``method`` and ``method_options`` after some options are changed. Neither is changed in place."""
    known = method_params(method, None)
    if isinstance(method, Method) or (isinstance(method, str) and method in METHODS):
        name = method.name if isinstance(method, Method) else method
        for key in changes:
            if key not in known:
                raise ValueError(f"method {name!r} has no option {_unknown('method', key, known)}")
    if not isinstance(method, Method):
        return method, {**(given or {}), **changes}
    parts = [
        replace(part, **{k: v for k, v in changes.items() if k in _fields(part)})
        for part in (method.rule, method.readout)
    ]
    return Method(method.name, *parts), given  # type: ignore[arg-type]


def with_recipe_options(given: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """``recipe_options`` after some fields are changed."""
    known = recipe_params(None)
    for key in changes:
        if key in OWN:
            raise ValueError(f"recipe__{key} is the estimator's own parameter: set {_owner(key)} in its place")
        if key not in known:
            raise ValueError(f"the recipe has no field {_unknown('recipe', key, known)}")
    return {**(given or {}), **changes}


def _unknown(prefix: str, key: str, known: dict[str, Any]) -> str:
    """A wrong name, perhaps the right one, and all that are allowed."""
    near = get_close_matches(key, known, n=1)
    hint = f" (did you mean {prefix}__{near[0]}?)" if near else ""
    allowed = ", ".join(f"{prefix}__{k}={v!r}" for k, v in known.items()) or "none"
    return f"{key!r}{hint}; allowed, with their values: {allowed}"


def _fields(part: Any) -> dict[str, Any]:
    return {f.name: getattr(part, f.name) for f in fields(part)} if is_dataclass(part) else {}


def _owner(key: str) -> str:
    return {"seed": "random_state", "early_stop": "early_stopping", "optimiser": "optimizer"}.get(key, key)
