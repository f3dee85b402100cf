"""How a member is trained: one small file a rule, and a plain dict of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

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


def rule_of(config: dict[str, Any]) -> Rule | None:
    """The rule that ``Rule.config`` describes; None for one that is none of credro's own."""
    kind = RULES.get(config.get("rule", ""))
    return None if kind is None else kind(**{f.name: config[f.name] for f in fields(kind) if f.name in config})


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
    "rule_of",
]
