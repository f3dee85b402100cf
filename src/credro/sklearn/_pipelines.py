"""What an estimator at the end of a pipeline, or inside a fitted search, says beside labels and probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from credro.prediction import GaussianPrediction, Prediction
from credro.sklearn._base import CredalEstimator, as_array
from credro.sklearn._inputs import row_names
from credro.sklearn._rows import Array


class Uncertainty(NamedTuple):
    """Uncertainties (N,) of N rows. total is aleatoric and epistemic together.

    Which for what: ``total`` for "is this answer wrong?", ``epistemic`` for "is this row unlike the training data?".
    """

    epistemic: Array
    aleatoric: Array
    total: Array


def prediction(model: Any, X: Any) -> Prediction | GaussianPrediction:
    """Everything a fitted ``model`` says about the rows ``X``, at once.

    model: a ``CredalClassifier`` or ``CredalRegressor``, a ``Pipeline`` that ends in one, or a search
    (``GridSearchCV``, ...) over either. X: rows as ``model.predict`` takes them.

    Raises:
        TypeError: the model holds no single credal estimator.
        NotFittedError: it has not been fitted.
    """
    estimator, rows = unwrap(model, X)
    found: Prediction | GaussianPrediction = estimator.prediction(rows)
    return replace(found, samples=row_names(X))  # transformers seldom keep a data frame's index


def uncertainty(model: Any, X: Any) -> Uncertainty:
    """Epistemic, aleatoric and total uncertainty of the rows ``X``; see ``prediction`` for the arguments."""
    found = prediction(model, X)
    return Uncertainty(*(as_array(part) for part in (found.epistemic, found.aleatoric, found.total)))


def unwrap(model: Any, X: Any) -> tuple[CredalEstimator, Any]:
    """The credal estimator inside ``model``, and ``X`` as it reaches it."""
    if isinstance(model, CredalEstimator):
        return model, X
    if isinstance(model, Pipeline):
        *before, (name, last) = model.steps
        if isinstance(last, str) or last is None:
            raise TypeError(
                f"the pipeline must end in a CredalClassifier or CredalRegressor; its step {name!r} is {last!r}"
            )
        return unwrap(last, model[:-1].transform(X) if before else X)
    if hasattr(model, "best_estimator_"):
        return unwrap(model.best_estimator_, X)
    kind = type(model).__name__
    if hasattr(model, "param_distributions") or hasattr(model, "param_grid"):
        raise NotFittedError(f"this {kind} has no best_estimator_: call fit first, with refit=True")
    if hasattr(model, "calibrated_classifiers_") or kind == "CalibratedClassifierCV":
        raise TypeError(
            f"{kind} replaces the credal estimator's probabilities by its own, which have no uncertainty: use "
            f"CredalClassifier(calibrate=0.2), which calibrates every member, in its place"
        )
    raise TypeError(
        f"model must be a CredalClassifier or CredalRegressor, a Pipeline that ends in one, or a fitted search over "
        f"either, got {kind}"
    )
