"""Linear layers by oneDNN's products, where torch has them: single precision on the CPU.

torch's own go to MKL, which is slower on some processors (``python -m benchmarks trunks --heads`` says how much on
yours). Answers and gradients are the same up to rounding.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether this torch has them and they give what they should, tried once on a small product."""
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not there or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    x, w = torch.arange(12.0).view(3, 4), torch.arange(8.0).view(2, 4)
    try:
        found = _product(x, w, torch.ones(2)), _product(x.t(), torch.ones(4, 3))
    except RuntimeError:  # an operator of another signature
        return False
    return torch.equal(found[0], x @ w.t() + 1) and torch.equal(found[1], x.t() @ torch.ones(3, 4))


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias`` of (B, F) and (G, F), each in any layout."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


class _Linear(torch.autograd.Function):
    """A linear layer on rows (B, F)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            _product(grad, weight.t()) if of_x else None,
            _product(grad.t(), x.t()) if of_weight else None,
            grad.sum(0) if of_bias else None,
        )


def fast_linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """``layer(x)``."""
    if x.ndim != 2 or not x.dtype == layer.weight.dtype == torch.float32 or torch.is_autocast_enabled("cpu"):
        return linear(x, layer.weight, layer.bias)
    out: Tensor = _Linear.apply(x, layer.weight, layer.bias)  # type: ignore[no-untyped-call]
    return out


def with_fast_products(net: nn.Module) -> nn.Module:
    """The same network, whose linear layers compute by oneDNN from now on. Its weights and their names stay."""
    if available():
        for module in net.modules():
            if type(module) is nn.Linear:
                module.forward = partial(fast_linear, module)  # type: ignore[method-assign]
    return net
