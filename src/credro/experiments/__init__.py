"""Every table and figure of the paper, as data: ``credro reproduce NAME``."""

from __future__ import annotations

from credro.experiments._benchmark import Benchmark
from credro.experiments._table import Table
from credro.experiments.benchmarks import BENCHMARKS
from credro.experiments.results import Result
from credro.experiments.runner import Setting, reproduce
from credro.experiments.spec import EXPERIMENTS, Claim, Experiment, Variant

__all__ = [
    "BENCHMARKS",
    "EXPERIMENTS",
    "Benchmark",
    "Claim",
    "Experiment",
    "Result",
    "Setting",
    "Table",
    "Variant",
    "reproduce",
]
