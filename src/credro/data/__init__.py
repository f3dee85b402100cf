"""Readers of standard layouts, batched augmentation, corruptions, label noise, splits, the embedded set."""

from credro.data.adapt import as_data, text_data
from credro.data.augment import AUGMENTATIONS, normalise
from credro.data.base import BadFile, Data, to_float
from credro.data.conform import conform
from credro.data.corruptions import CORRUPTIONS, corrupt, corrupt_data
from credro.data.errors import BadFiles, DataError, DataNotFound, UnknownSplit
from credro.data.fields import Field, Fields, pad
from credro.data.load import candidates, data_root, load
from credro.data.noise import symmetric_noise
from credro.data.sources import SOURCES
from credro.data.splits import limit, split, split_groups
from credro.data.stats import channel_stats

__all__ = [
    "AUGMENTATIONS", "CORRUPTIONS", "SOURCES", "BadFile", "BadFiles", "Data", "DataError", "DataNotFound",
    "Field", "Fields", "UnknownSplit", "as_data", "candidates", "channel_stats", "conform", "corrupt",
    "corrupt_data", "data_root", "limit", "load", "normalise", "pad", "split", "split_groups", "symmetric_noise",
    "text_data", "to_float",
]  # fmt: skip
