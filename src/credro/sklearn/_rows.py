"""What the estimator does with rows before they are trained on, and with an ensemble afterwards."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from credro.data.base import Data
from credro.data.stats import channel_stats
from credro.ensemble import Ensemble

Array = npt.NDArray[Any]

MOST_COPIES = 4.0
"""Sample weights repeat rows; the training set grows at most by this factor."""


@dataclass(frozen=True)
class WeightedLoss:
    """Cross-entropy (B,) times the weight of the sample's class. A class, so that it travels to other processes."""

    weights: tuple[float, ...]

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """logits: (B, C), target: (B,)."""
        weights = logits.new_tensor(self.weights)
        return nn.functional.cross_entropy(logits, target, weight=weights, reduction="none")


def by_contents(X: Array, codes: Array) -> tuple[Array, Array]:
    """An order (N,) of the rows that depends on what they hold alone, and each one's number (N,) among the distinct."""
    hashes = [hashlib.blake2b(row, digest_size=8).digest() for row in np.ascontiguousarray(X)]
    keys = np.frombuffer(b"".join(hashes), np.uint64)
    order = np.lexsort((codes, keys))
    changes = (np.diff(keys[order]) != 0) | (np.diff(codes[order]) != 0)
    return order, np.append(0, np.cumsum(changes))


def exact_scores(ensemble: Ensemble, x: Tensor) -> Tensor:
    """Scores (M, N, ...) in double precision, where the device has it.

    In single precision the rows beside it change a row's result by rounding; scikit-learn promises that they do not.
    """
    if ensemble.device.type == "mps":
        return ensemble.scores(x)
    nets = [copy.deepcopy(net).double() for net in ensemble.nets]
    with torch.inference_mode():
        inputs = (ensemble.inputs(part.to(ensemble.device)).double() for part in torch.split(x, 4096))
        return torch.cat(
            [torch.stack([ensemble.method.head.scores(net, part).cpu() for net in nets]) for part in inputs], 1
        )


def copies(weights: npt.NDArray[np.float64], seed: int) -> npt.NDArray[np.int_]:
    """How often to repeat each row (N,): in proportion to its weight, on average exactly.

    One copy stands for the greatest common divisor of whole weights, else for the smallest weight; for more where the
    set would grow beyond ``MOST_COPIES``. What is left over is rounded by systematic sampling.
    """
    whole = bool((weights == np.round(weights)).all()) and weights.max() < 2**53
    unit = float(np.gcd.reduce(weights.astype(np.int64))) if whole else weights.min()
    ends = np.cumsum(weights / max(unit, weights.mean() / MOST_COPIES))
    ends = np.where(np.isclose(ends, np.round(ends), rtol=0, atol=1e-6), np.round(ends), ends)
    shift = np.random.default_rng(seed).random()
    return np.diff(np.floor(ends + shift), prepend=0).astype(int)


def standardised(data: Data) -> Data:
    """The set with its own mean and std. What varies by less than single precision shows is a constant."""
    mean, std = channel_stats(data)
    return replace(data, mean=mean, std=tuple(s if s > 1e-6 * abs(m) else 1.0 for m, s in zip(mean, std, strict=True)))


def plain(value: Any) -> Any:
    """NumPy's numbers, which searches over parameters like to give, as Python's."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    return value.item() if isinstance(value, np.generic) else value
