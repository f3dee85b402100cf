"""numpy or torch in, the same kind out: the mathematics itself is torch in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array: TypeAlias = Tensor | npt.NDArray[Any]
T = TypeVar("T", Tensor, npt.NDArray[Any])

CHUNK = 1 << 18
"""How many numbers of one tensor are worked on at a time: small enough for the cache, large enough to be fast."""


def to_tensor(x: Any, name: str) -> tuple[Tensor, bool]:
    """``x`` as a torch tensor in its own dtype, and whether it came from numpy (or a list)."""
    if isinstance(x, Tensor):
        tensor, numpy = x, False
    else:
        array = np.asarray(x)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{name} must be numeric, got dtype {array.dtype}")
        tensor, numpy = torch.from_numpy(np.ascontiguousarray(array)), True
    if tensor.is_complex():
        raise TypeError(f"{name} must be real, got dtype {tensor.dtype}")
    return tensor, numpy


def give(x: Tensor, numpy: bool) -> Any:
    """``x`` as the kind that came in."""
    return x.detach().cpu().numpy() if numpy else x


def chunks(total: int, size_of_one: int, most: int = CHUNK) -> Iterator[slice]:
    """Slices over ``total`` samples such that each holds about ``most`` numbers."""
    step = max(1, most // max(1, size_of_one))
    for start in range(0, total, step):
        yield slice(start, min(start + step, total))


def first_bad(bad: Tensor) -> str:
    """Where the first true entry of ``bad`` is, as a reader would write the index: ``[3]`` or ``[2, 0]``."""
    return str([int(i) for i in bad.nonzero()[0]])
