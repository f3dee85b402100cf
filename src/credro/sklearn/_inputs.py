"""What users hand in as X, brought to a dense array of numbers, or refused with the way to make it one."""

from __future__ import annotations

from typing import Any

import numpy as np

from credro.sklearn._rows import Array

DENSE_BYTES = 2**30
"""Largest sparse X, in bytes as dense single precision, that is made dense."""

ENCODE = (
    "make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), {columns}), "
    "remainder='passthrough'), {estimator}(...))"
)


def refuse_words(X: Any, estimator: str) -> None:
    """Refuse a data frame with columns that are not numbers: which code a word gets is not for us to guess.

    A category is refused also where its names are numbers: scikit-learn would take the names for quantities.
    """
    columns = word_columns(X)
    if not columns:
        return
    shown = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
    raise ValueError(
        f"X must hold numbers; these columns do not: {shown}. Encode them first, for example "
        f"{ENCODE.format(columns=list(columns), estimator=estimator)}, with make_pipeline from sklearn.pipeline, "
        f"make_column_transformer from sklearn.compose and OneHotEncoder from sklearn.preprocessing"
    )


def word_columns(X: Any) -> dict[Any, str]:
    """Columns of a pandas data frame that hold words, categories or dates, and which. Of anything else: none."""
    if not hasattr(X, "select_dtypes") or not hasattr(X, "columns"):
        return {}
    return {name: kind for i, name in enumerate(X.columns) if (kind := _kind(X.iloc[:, i]))}


def _kind(column: Any) -> str:
    """What a column holds in place of numbers; empty: it holds numbers."""
    dtype = column.dtype
    if str(dtype) == "category":
        return "categories"
    if getattr(dtype, "kind", "O") in "mM" or str(dtype).startswith(("datetime", "period", "timedelta")):
        return "dates"
    if str(dtype).startswith(("string", "str")):
        return "text"
    return "text" if str(dtype) == "object" and any(isinstance(value, str) for value in column) else ""


def dense(X: Any) -> Array:
    """A sparse matrix as an array of single precision, if it is not too large to be one."""
    size = X.shape[0] * X.shape[1] * 4
    if size > DENSE_BYTES:
        raise ValueError(
            f"X is sparse, and the networks need it dense: {X.shape[0]:,} rows of {X.shape[1]:,} features would take "
            f"{size / 2**30:.1f} GiB, more than the {DENSE_BYTES / 2**30:.1f} GiB allowed "
            f"(credro.sklearn._inputs.DENSE_BYTES). Put fewer features in: TruncatedSVD(100) or SelectKBest in front "
            f"of it in a pipeline, or max_features / min_frequency of what made them"
        )
    array: Array = np.ascontiguousarray(X.toarray(), np.float32)
    return array


def row_names(X: Any) -> tuple[Any, ...]:
    """The index of a data frame; empty where rows have numbers only."""
    return tuple(X.index) if hasattr(X, "index") and hasattr(X, "columns") else ()
