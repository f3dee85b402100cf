"""credro: credal ensembles that know what they do not know.

Everything a user types is here; what is heavy is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credro import data, evaluation, methods, nets
    from credro.credal.decisions import decide
    from credro.credal.entropy import InexactWarning, lower_entropy, shannon, upper_entropy
    from credro.credal.gaussian import Gaussians
    from credro.credal.measures import (
        aleatoric,
        epistemic,
        generalized_hartley,
        intersection_probability,
        interval_length,
        interval_width,
        max_mean_imprecision,
        mutual_information,
        total,
    )
    from credro.credal.sets import Box, Hull
    from credro.ensemble import Ensemble, fit, load
    from credro.evaluation import evaluate
    from credro.members.risk import cvar, deltas
    from credro.methods import Method
    from credro.metrics import (
        accuracy_rejection,
        brier,
        coverage_and_size,
        ece,
        evaluate_ood,
        nll,
        rejection_for,
        reliability,
        risk_coverage,
        threshold,
        u65,
        u80,
    )
    from credro.nets.trunks import on
    from credro.prediction import Prediction
    from credro.training.cluster import Ray
    from credro.training.recipe import PRESETS, Recipe

__version__ = "0.1.0"

_HOMES: dict[str, tuple[str, ...]] = {
    "credro.credal.sets": ("Box", "Hull"),
    "credro.credal.gaussian": ("Gaussians",),
    "credro.credal.entropy": ("InexactWarning", "lower_entropy", "shannon", "upper_entropy"),
    "credro.credal.measures": (
        "aleatoric",
        "epistemic",
        "generalized_hartley",
        "intersection_probability",
        "interval_length",
        "interval_width",
        "max_mean_imprecision",
        "mutual_information",
        "total",
    ),
    "credro.credal.decisions": ("decide",),
    "credro.members.risk": ("cvar", "deltas"),
    "credro.methods": ("Method",),
    "credro.nets.trunks": ("on",),
    "credro.prediction": ("Prediction",),
    "credro.training.cluster": ("Ray",),
    "credro.training.recipe": ("PRESETS", "Recipe"),
    "credro.ensemble": ("Ensemble", "fit", "load"),
    "credro.evaluation": ("evaluate",),
    "credro.metrics": (
        "accuracy_rejection",
        "brier",
        "coverage_and_size",
        "ece",
        "evaluate_ood",
        "nll",
        "rejection_for",
        "reliability",
        "risk_coverage",
        "threshold",
        "u65",
        "u80",
    ),
}
_MODULES = ("data", "evaluation", "members", "methods", "metrics", "nets")
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "__version__",
    *sorted(_HOME),
    *_MODULES,
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, once."""
    if name in _MODULES:
        return import_module(f"credro.{name}")
    if name in _HOME:
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
    raise AttributeError(f"module 'credro' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What a user may type."""
    return sorted(__all__)
