"""A credal ensemble as a scikit-learn classifier, for tables and for images."""

from __future__ import annotations

from credro.sklearn.classifier import CredalClassifier

__all__ = ["CredalClassifier"]
