"""Readers of standard layouts, batched augmentation, corruptions, label noise, splits, the embedded set."""

from credro.data.base import Data, as_data, to_float

__all__ = ["Data", "as_data", "to_float"]
