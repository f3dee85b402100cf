"""One ensemble under every method that can read it: accuracy, calibration, selective prediction, OOD detection."""

from credro.assess.lines import BINS, Assessment, Line, line_of
from credro.assess.measure import OF_PROBABILITIES, Say, are_modules, assess, assess_probs, assess_sets
from credro.assess.numbers import NumberAssessment, NumberLine, assess_numbers, number_layout
from credro.assess.sets import ENOUGH, SEEN, UNKNOWN_CLASSES, Sets, Shared, sets_of, unlabelled
from credro.assess.text import error_layout, flat, layout, table, worth
from credro.training.seen import SeenWarning

__all__ = [
    "BINS",
    "ENOUGH",
    "OF_PROBABILITIES",
    "SEEN",
    "UNKNOWN_CLASSES",
    "Assessment",
    "Line",
    "NumberAssessment",
    "NumberLine",
    "Say",
    "SeenWarning",
    "Sets",
    "Shared",
    "are_modules",
    "assess",
    "assess_numbers",
    "assess_probs",
    "assess_sets",
    "error_layout",
    "flat",
    "layout",
    "line_of",
    "number_layout",
    "sets_of",
    "table",
    "unlabelled",
    "worth",
]
