"""A preset that trains in seconds, on embedded data."""

import pytest

from credro.experiments import WORLDS, World
from credro.training.recipe import Recipe

TINY = World(
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
    monkeypatch.setitem(WORLDS, "tiny", TINY)
    return TINY
