"""Measures of uncertainty at work: pure functions, torch or numpy in, numbers or arrays of the same kind out."""

from .calibration import Reliability, accuracy, brier, ece, member_accuracy, nll, reliability
from .decisions import CoverageAndSize, coverage_and_size, discounted_accuracy, u65, u80
from .ood import OODScores, aupr, auroc, evaluate_ood, fpr_at
from .selective import AccuracyRejection, RiskCoverage, accuracy_rejection, rejection_for, risk_coverage
from .threshold import Threshold, clopper_pearson, threshold

__all__ = [
    "AccuracyRejection",
    "CoverageAndSize",
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
    "evaluate_ood",
    "fpr_at",
    "member_accuracy",
    "nll",
    "rejection_for",
    "reliability",
    "risk_coverage",
    "threshold",
    "u65",
    "u80",
]
