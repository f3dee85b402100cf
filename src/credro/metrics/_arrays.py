"""Torch or numpy in, checked in the user's words and brought to numpy float64; the same kind out."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array: TypeAlias = Tensor | np.ndarray[Any, Any]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

SUM_TOLERANCE = 5e-3  # a softmax in bfloat16 sums to 1 within 2e-3; logits and percentages do not


def like(values: NDArray[Any], given: Array) -> Array:
    """``values`` as a tensor on ``given``'s device where that is a tensor, else as they are."""
    if not isinstance(given, Tensor):
        return values
    tensor = torch.from_numpy(values)
    if given.device.type == "mps" and tensor.is_floating_point():  # that device has no float64
        tensor = tensor.float()
    return tensor.to(given.device)


def _plain(values: Array, name: str, *shape: str) -> NDArray[Any]:
    """``values`` as a non-empty numpy array with as many axes as ``shape`` names."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()  # numpy has no bfloat16
    array = np.asarray(values)
    if array.ndim != len(shape):
        wanted = f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    return array


def numbers(values: Array, name: str, *shape: str) -> Floats:
    """Finite real numbers, as float64."""
    array = _plain(values, name, *shape)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got {array.dtype}")
    array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.argwhere(~finite)
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {len(bad)} of {array.size} places, "
            f"the first at {tuple(map(int, bad[0]))}"
        )
    return array


def flags(values: Array, name: str, *shape: str) -> Booleans:
    """Booleans, or numbers that are all 0 or 1."""
    array = _plain(values, name, *shape)
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be boolean, got {array.dtype}")
    other = array[(array != 0) & (array != 1)]
    if other.size:
        raise ValueError(f"{name} must be boolean or 0/1, got {other[0]}")
    return array.astype(np.bool_)


def class_numbers(values: Array, name: str, count: int | None = None, classes: int | None = None) -> Integers:
    """Class numbers (N,) in [0, classes), as many as ``count`` says."""
    array = _plain(values, name, "N")
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name} must be integer class numbers, got {array.dtype}")
    if count is not None and len(array) != count:
        raise ValueError(f"{name} must have one entry per sample: got {len(array)} for {count} samples")
    low, high = int(array.min()), int(array.max())
    if low < 0 or (classes is not None and high >= classes):
        raise ValueError(
            f"{name} must lie in [0, {'C' if classes is None else classes}), got {low if low < 0 else high}"
        )
    return array.astype(np.int64, copy=False)


def correct_and_eu(correct: Array, eu: Array, name: str = "eu") -> tuple[Booleans, Floats]:
    """The pair that every selective measure reads, both (N,). name: what the caller calls the second."""
    scores = numbers(eu, name, "N")  # first: a swapped pair fails here with 'eu must hold real numbers, got bool'
    right = flags(correct, "correct", "N")
    if len(right) != len(scores):
        raise ValueError(f"correct and {name} must have the same length, got {len(right)} and {len(scores)}")
    return right, scores


def probabilities(probs: Array, name: str = "probs") -> Floats:
    """One probability vector a sample, (N, C)."""
    if np.ndim(probs) == 3:
        raise ValueError(
            f"{name} must have shape (N, C), got {np.shape(probs)}: average the members first, {name}.mean(0)"
        )
    array = numbers(probs, name, "N", "C")
    if (low := array.min()) < -1e-6:  # rounding in whoever made them may leave a tiny negative
        raise ValueError(f"{name} must not be negative, got {low:g}")
    totals = array.sum(1)
    if abs(worst := totals[np.abs(totals - 1).argmax()] - 1) > SUM_TOLERANCE:
        raise ValueError(f"{name} must sum to 1 in every row, got a row that sums to {worst + 1:g}")
    return np.maximum(array, 0)


def fraction(value: float, name: str, *, closed: bool = False) -> float:
    """A number in (0, 1), or [0, 1] where ``closed``."""
    if not (0 < value < 1 or (closed and value in (0, 1))):
        raise ValueError(f"{name} must lie in {'[0, 1]' if closed else '(0, 1)'}, got {value}")
    return float(value)


def positive(value: int, name: str) -> int:
    """A whole number, at least 1."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value}")
    return int(value)
