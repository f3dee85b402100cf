"""Measures of uncertainty at work: pure functions, torch or numpy in, numbers or arrays of the same kind out."""

from .calibration import Reliability, accuracy, brier, ece, member_accuracy, nll, reliability
from .ood import OODScores, aupr, auroc, evaluate_ood, fpr_at
from .scores import SCORES, score_of
from .selective import (
    AccuracyRejection,
    ErrorScores,
    RiskCoverage,
    accuracy_rejection,
    error_detection,
    rejection_for,
    risk_coverage,
)
from .sets import CoverageAndSize, coverage_and_size, discounted_accuracy, u65, u80
from .threshold import Threshold, clopper_pearson, threshold

__all__ = [
    "SCORES",
    "AccuracyRejection",
    "CoverageAndSize",
    "ErrorScores",
    "OODScores",
    "Reliability",
    "RiskCoverage",
    "Threshold",
    "accuracy",
    "accuracy_rejection",
    "aupr",
    "auroc",
    "brier",
    "clopper_pearson",
    "coverage_and_size",
    "discounted_accuracy",
    "ece",
    "error_detection",
    "evaluate_ood",
    "fpr_at",
    "member_accuracy",
    "nll",
    "rejection_for",
    "reliability",
    "risk_coverage",
    "score_of",
    "threshold",
    "u65",
    "u80",
]
