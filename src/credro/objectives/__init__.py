"""How a member is trained: one small file a rule, and a plain dict of them."""

from __future__ import annotations

from credro.objectives.base import Rule
from credro.objectives.cvar import CVaR, cvar, deltas, kept
from credro.objectives.erm import ERM
from credro.objectives.interval_head import IntervalRule
from credro.objectives.losses import LOSSES, PerSampleLoss, per_sample_loss
from credro.objectives.random_subset import RandomSubset
from credro.objectives.relative_likelihood import RelativeLikelihood
from credro.objectives.variational import VariationalRule

RULES: dict[str, type[Rule]] = {
    rule.name: rule for rule in (ERM, CVaR, RandomSubset, RelativeLikelihood, IntervalRule, VariationalRule)
}

__all__ = [
    "ERM",
    "LOSSES",
    "RULES",
    "CVaR",
    "IntervalRule",
    "PerSampleLoss",
    "RandomSubset",
    "RelativeLikelihood",
    "Rule",
    "VariationalRule",
    "cvar",
    "deltas",
    "kept",
    "per_sample_loss",
]
