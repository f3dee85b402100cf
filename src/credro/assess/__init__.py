"""One ensemble under every method that can read it: accuracy, calibration, selective prediction, OOD detection."""

from credro.assess.lines import BINS, Assessment, Line, line_of
from credro.assess.measure import (
    OF_PROBABILITIES,
    UNKNOWN_CLASSES,
    Say,
    are_modules,
    assess,
    assess_probs,
    unlabelled,
)
from credro.assess.numbers import NumberAssessment, NumberLine, assess_numbers, number_layout
from credro.assess.text import error_layout, flat, layout, table, worth
from credro.training.seen import SeenWarning

__all__ = [
    "BINS",
    "OF_PROBABILITIES",
    "UNKNOWN_CLASSES",
    "Assessment",
    "Line",
    "NumberAssessment",
    "NumberLine",
    "Say",
    "SeenWarning",
    "are_modules",
    "assess",
    "assess_numbers",
    "assess_probs",
    "error_layout",
    "flat",
    "layout",
    "line_of",
    "number_layout",
    "table",
    "unlabelled",
    "worth",
]
