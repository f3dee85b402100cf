"""One ensemble under every method that can read it: accuracy, calibration, selective prediction, OOD detection.

A package, and not a module ``evaluate``: that name is the function's, ``credro.evaluate``.
"""

from credro.evaluation.measure import Say, are_modules, evaluate, evaluate_sets, result_of
from credro.evaluation.regression import (
    RegressionEvaluation,
    RegressionResult,
    evaluate_regression,
    regression_table,
)
from credro.evaluation.results import BINS, Evaluation, MethodResult
from credro.evaluation.sets import ENOUGH, SEEN, UNKNOWN_CLASSES, Sets, Shared, sets_of
from credro.evaluation.tables import best_score, csv_rows, errors_table, results_table
from credro.training.seen import SeenWarning

__all__ = [
    "BINS",
    "ENOUGH",
    "SEEN",
    "UNKNOWN_CLASSES",
    "Evaluation",
    "MethodResult",
    "RegressionEvaluation",
    "RegressionResult",
    "Say",
    "SeenWarning",
    "Sets",
    "Shared",
    "are_modules",
    "best_score",
    "csv_rows",
    "errors_table",
    "evaluate",
    "evaluate_regression",
    "evaluate_sets",
    "regression_table",
    "result_of",
    "results_table",
    "sets_of",
]
