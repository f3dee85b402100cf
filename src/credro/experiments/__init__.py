"""Every table and figure of the paper, as data: ``credro reproduce NAME``."""

from __future__ import annotations

from credro.experiments.runner import Setting, reproduce
from credro.experiments.spec import EXPERIMENTS, Experiment, Variant
from credro.experiments.worlds import WORLDS, World

__all__ = ["EXPERIMENTS", "WORLDS", "Experiment", "Setting", "Variant", "World", "reproduce"]
