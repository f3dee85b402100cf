"""The last layer, under one name for every network: interval heads and biased starts need it.

A network says where it is by an attribute ``head_name``, as all of ours do. In any other network it is the last
``nn.Linear`` in module order, which is the order in which ``__init__`` assigned the layers.
"""

from __future__ import annotations

from torch import nn


def find_head(net: nn.Module) -> str | None:
    """The last layer's name, as in ``net.get_submodule(name)``; None where there is none."""
    named = getattr(net, "head_name", None)
    if named is not None:
        if named not in dict(net.named_modules()):
            raise ValueError(f"head_name of {type(net).__name__} is {named!r}, but the network has no such module")
        return str(named)
    linears = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)]
    return linears[-1] if linears else None


def head(net: nn.Module) -> nn.Linear:
    """The last linear layer: its ``in_features`` are the features, ``bias[k]`` belongs to class k.

    Where ``set_head`` has put a larger module in its place, the last ``nn.Linear`` in that.
    """
    name = _require_head(net)
    linears = [module for module in net.get_submodule(name).modules() if isinstance(module, nn.Linear)]
    if not linears:
        raise ValueError(f"the last layer of {type(net).__name__}, {name!r}, holds no nn.Linear")
    return linears[-1]


def set_head(net: nn.Module, layer: nn.Module) -> None:
    """Put ``layer`` where the last layer is, in place; the network remembers the place as ``head_name``."""
    name = _require_head(net)
    if not name:
        raise ValueError("the network is itself the nn.Linear to replace: wrap it in nn.Sequential")
    parent, _, child = name.rpartition(".")
    net.get_submodule(parent).register_module(child, layer)
    net.head_name = name  # type: ignore[assignment]


def _require_head(net: nn.Module) -> str:
    name = find_head(net)
    if name is None:
        raise ValueError(
            f"{type(net).__name__} has no nn.Linear to serve as its last layer: "
            f"name the layer in an attribute head_name of the network"
        )
    return name
