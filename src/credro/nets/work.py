"""How much a network computes: what tells a small one, that is faster on one core than on several."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from credro.data.fields import Batch, call
from credro.nets.table import Waves

COUNTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
ONCE = (Waves, nn.Embedding)
"""Modules that use each of their weights at most once for a sample."""


@torch.no_grad()
def multiply_adds(net: nn.Module, x: Batch) -> float:
    """Multiplications and additions of a sample in ``net(x)``, of all but norms and the like.

    x: (B, *shape). Infinite where weights belong to a module of another kind: how often it uses them is not known.
    """
    layers = [m for m in net.modules() if isinstance(m, COUNTED)]
    once = [p for m in net.modules() if isinstance(m, ONCE) for p in m.parameters()]
    counted = {id(p) for p in [*once, *(p for layer in layers for p in layer.parameters())]}
    if any(p.ndim > 1 and id(p) not in counted for p in net.parameters()):
        return math.inf
    sums = [float(sum(p.numel() for p in once))]

    def count(layer: nn.Module, given: Any, output: Tensor) -> None:
        weight = layer.weight
        assert isinstance(weight, Tensor)
        sums[0] += output.numel() * weight[0].numel() / len(x)

    hooks = [layer.register_forward_hook(count) for layer in layers]
    was_training = net.training
    try:
        call(net.eval(), x)
    finally:
        net.train(was_training)
        for hook in hooks:
            hook.remove()
    return sums[0]
