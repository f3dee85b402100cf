"""An optimizer's state as named tensors, for a member's checkpoint."""

from __future__ import annotations

import torch
from torch import Tensor


def pack_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimizer's state as named tensors: ``optimiser.<parameter>.<entry>``, spelled as in the first version."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimiser.{i}.{key}": torch.as_tensor(value)
        for i, entries in state.items()
        for key, value in entries.items()
        if value is not None
    }


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put a packed state back into a fresh optimizer over the same parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, t in tensors.items():
        if name.startswith("optimiser."):
            _, i, key = name.split(".", 2)
            state.setdefault(int(i), {})[key] = t
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
