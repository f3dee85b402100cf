"""A preset that trains in seconds, on embedded data."""

import pytest

from credro.experiments import BENCHMARKS, Benchmark
from credro.training.recipe import Recipe

TINY = Benchmark(
    "tiny",
    "fashion-mini",
    "mlp",
    Recipe(epochs=2, batch_size=32, lr=0.05),
    ("fashion-mini-letters", "fashion-mini-digits"),
    samples=160,
    held_out=80,
    test=120,
    members=3,
    runs=2,
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(BENCHMARKS, "tiny", TINY)
    return TINY
