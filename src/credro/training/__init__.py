"""Recipe, loop, checkpoints and executors: from a rule and data to trained members on disk."""

from credro.training.recipe import PRESETS, Recipe

__all__ = ["PRESETS", "Recipe"]
