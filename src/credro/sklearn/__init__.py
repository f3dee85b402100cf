"""Credal ensembles as scikit-learn estimators, for tables and for images."""

from __future__ import annotations

try:
    from sklearn.utils.validation import validate_data as _  # noqa: F401 (new in 1.6)
except ImportError as error:
    raise ImportError(
        f"credro.sklearn needs scikit-learn 1.6 or later ({error}): pip install 'credro[sklearn]'"
    ) from error

from credro.sklearn._pipelines import Uncertainty, prediction, uncertainty
from credro.sklearn.classifier import CredalClassifier
from credro.sklearn.regressor import CredalRegressor

__all__ = ["CredalClassifier", "CredalRegressor", "Uncertainty", "prediction", "uncertainty"]
