"""What a method is made of and fields of the recipe as parameters of their own: ``method__delta_g``, ``recipe__clip``.

scikit-learn's searches reach what ``get_params`` lists. What is set so is kept in ``method_options`` and
``recipe_options``, so cloning and pickling know nothing of this.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from sklearn.base import BaseEstimator

from credro._names import did_you_mean
from credro.members import with_options
from credro.methods import CHOICES, METHODS, Method, make, options
from credro.sklearn._rows import plain
from credro.training.recipe import Recipe

OWN = {
    **{name: name for name in ("epochs", "batch_size", "lr", "optimizer", "weight_decay")},
    "optimiser": "optimizer",
    "seed": "random_state",
    "early_stop": "early_stopping",
}
"""Fields of the recipe that an estimator has a parameter for, and its name."""


class InnerParams(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters reach inside its method and its recipe."""

    method: str | Method
    method_options: dict[str, Any] | None
    recipe_options: dict[str, Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters and values; ``deep``: also what the method is made of, ``method__...``, and ``recipe__...``."""
        found: dict[str, Any] = super().get_params(deep=False)
        if deep:
            inner = {"method": method_params(self.method, self.method_options)}
            inner["recipe"] = recipe_params(self.recipe_options)
            found |= {_outside(part, key): value for part, values in inner.items() for key, value in values.items()}
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters, ``method__delta_g`` and ``recipe__clip`` among them; the method itself is set first."""
        inner: dict[str, dict[str, Any]] = {"method": {}, "recipe": {}}
        own = {}
        for name, value in params.items():
            part, dots, key = name.partition("__")
            if dots and part in inner:
                inner[part][key.replace("__", ".")] = value
            else:
                own[name] = value
        super().set_params(**own)
        if changes := inner["method"]:
            self.method, self.method_options = with_method_options(self.method, self.method_options, changes)
        if changes := inner["recipe"]:
            self.recipe_options = with_recipe_options(self.recipe_options, changes)
        return self


def method_params(method: Any, given: Any) -> dict[str, Any]:
    """The kinds of a method's choices and their options, ``stop.alpha`` where two have one. given: what was set."""
    chosen = given if isinstance(given, dict) else {}
    made = _made(method, chosen)
    if made is None:
        return chosen
    return {what: getattr(made, what).kind for what in CHOICES} | options(made) | chosen


def recipe_params(given: Any) -> dict[str, Any]:
    """The recipe's fields that have no parameter of their own, with their values."""
    known = {f.name: f.default for f in fields(Recipe) if f.name not in OWN}
    return known | (given if isinstance(given, dict) else {})


def with_method_options(method: Any, given: Any, changes: dict[str, Any]) -> tuple[Any, Any]:
    """``method`` and ``method_options`` after choices or options are changed. Neither is changed in place."""
    named = not isinstance(method, Method)
    options = {**(given or {}), **changes} if named else given
    made = _made(method, options or {})
    if made is None:  # nobody knows the method, which fit says
        return method, options
    for key in sorted(changes, key=lambda name: name not in CHOICES):  # choices first: they bring options
        if key in CHOICES:
            made = replace(made, **{key: changes[key]})
            continue
        what, _, option = key.rpartition(".")
        owners = [w for w in CHOICES if what in ("", w) and option in getattr(made, w).options()]
        if len(owners) != 1:
            raise ValueError(f"method {made.name!r} has no option {_unknown('method', key, method_params(made, None))}")
        if not named:
            choice = with_options(getattr(made, owners[0]), {option: plain(changes[key])}, owners[0])
            made = replace(made, **{owners[0]: choice})
    return (method, options) if named else (made, given)


def with_recipe_options(given: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """``recipe_options`` after some fields are changed."""
    known = recipe_params(None)
    for key in changes:
        if key in OWN:
            raise ValueError(f"recipe__{key} is the estimator's own parameter: set {OWN[key]} in its place")
        if key not in known:
            raise ValueError(f"the recipe has no field {_unknown('recipe', key, known)}")
    return {**(given or {}), **changes}


def _made(method: Any, given: dict[str, Any]) -> Method | None:
    """The method with what was set of it, as far as that can be; None where nobody knows it."""
    if not isinstance(method, str) or method not in METHODS:
        return method if isinstance(method, Method) else None
    for some in (given, {what: given[what] for what in CHOICES if what in given}, {}):
        try:
            return make(method, **plain(some))
        except (ValueError, TypeError):  # said by fit
            continue
    return None


def _unknown(prefix: str, key: str, known: dict[str, Any]) -> str:
    """A wrong name, perhaps the right one, and all that are allowed."""
    names = {_outside(prefix, name): value for name, value in known.items()}
    allowed = ", ".join(f"{name}={value!r}" for name, value in names.items()) or "none"
    return f"{key!r}{did_you_mean(_outside(prefix, key), names)}; allowed, with their values: {allowed}"


def _outside(part: str, key: str) -> str:
    """``stop.alpha`` of the method as scikit-learn writes it, ``method__stop__alpha``."""
    return f"{part}__{key.replace('.', '__')}"
