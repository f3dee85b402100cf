"""Networks by name. To add your own, put a class or function of ``classes`` and ``shape`` into ``NETS``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

from credro._names import ArgumentError, did_you_mean
from credro.nets.efficientnet import EfficientNetLite0
from credro.nets.resnet import BasicBlock, Bottleneck, ResNet
from credro.nets.small import CNN, MLP
from credro.nets.table import TableNet
from credro.nets.wide import WideResNet

Net = TypeVar("Net", bound=nn.Module)

_imagenet = partial(ResNet, stem="imagenet", shape=(3, 224, 224))

NETS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "table": TableNet,
    "cnn": CNN,
    "resnet8": partial(ResNet, BasicBlock, (1, 1, 1), widths=(16, 32, 64)),
    "resnet18": partial(ResNet, BasicBlock, (2, 2, 2, 2)),
    "resnet18-imagenet": partial(_imagenet, BasicBlock, (2, 2, 2, 2)),
    "resnet34": partial(_imagenet, BasicBlock, (3, 4, 6, 3)),
    "resnet50": partial(_imagenet, Bottleneck, (3, 4, 6, 3)),
    "wrn28-4": partial(WideResNet, 28, 4),
    "efficientnet-lite0": EfficientNetLite0,
    "mlp-256": partial(MLP, hidden=(256,)),
    "linear": partial(MLP, hidden=()),
}
"""Name: what builds the network, given ``classes`` and ``shape``."""


def make(name: str, classes: int = 10, shape: Sequence[int] | None = None, **options: Any) -> nn.Module:
    """A freshly initialised network, drawn from torch's global generator as torch itself does.

    name: a key of ``NETS``. shape: of one sample, without the batch; the network's usual one if left out.
    options: further arguments of the network's class, such as ``hidden=(64, 64)`` of ``MLP``.
    """
    build = _find(name)
    if shape is None and usual_shape(name) is None:
        raise ValueError(f"shape must be given for {name!r}, which has no usual one: the shape of one sample")
    allowed = [option for option in inspect.signature(build).parameters if option not in ("classes", "shape")]
    if unknown := [option for option in options if option not in allowed]:
        raise TypeError(f"{name!r} has no option {', '.join(unknown)}; its options are: {', '.join(allowed) or 'none'}")
    return build(classes=classes, **({} if shape is None else {"shape": shape}), **options)


def usual_shape(name: str) -> tuple[int, ...] | None:
    """The sample shape that the network takes when none is given; None where it must be given."""
    shape = inspect.signature(_find(name)).parameters["shape"].default
    return None if shape is inspect.Parameter.empty or shape is None else tuple(shape)


def make_under_seed(factory: Callable[[], Net], seed: int) -> Net:
    """``factory()``, every random number of it drawn under ``seed``; the global generator is left as it was.

    So members differ in every randomly initialised tensor, and the same seed gives the same network. It is torch's
    CPU generator that is seeded: build a network on the CPU and move it afterwards.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return factory()


def _find(name: str) -> Callable[..., nn.Module]:
    if name not in NETS:
        hint = did_you_mean(name, NETS)
        raise ArgumentError("net", f"a network's name must be one of {', '.join(NETS)}, got {name!r}{hint}")
    return NETS[name]
