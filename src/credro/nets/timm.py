"""Trunks of the timm library: ``timm:NAME`` with a file of weights, or a module that timm has built.

timm imports torchvision; where one of the two does not import, that is said. Nothing is downloaded.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from credro._names import ArgumentError, did_you_mean
from credro.data.conform import INTERPOLATIONS
from credro.nets.trunk import Preprocessing, Trunk
from credro.nets.weights import load_weights

TIMM = "timm:"


def timm_trunk(address: str, weights: str | Path | None, pool: str) -> Trunk:
    """``timm:NAME`` with ``weights``, or ``timm:NAME:FILE``. weights: of the whole network, with its classifier."""
    name, _, inside = address.removeprefix(TIMM).partition(":")
    file = weights if weights is not None else inside or None
    timm = _imported()
    if not timm.is_model(name):
        near = did_you_mean(name, timm.list_models())
        raise ArgumentError("trunk", f"trunk must name a network that timm {timm.__version__} has, got {name!r}{near}")
    if file is None:
        raise ArgumentError("weights", f"weights of {TIMM}{name} are needed: give weights=, a file of its state dict")
    net = timm.create_model(name, pretrained=False)
    load_weights(net, Path(file))
    prepared = prepared_by_timm(net)
    net.reset_classifier(0)
    content = json.dumps([name, timm.__version__])
    return Trunk(net.to(memory_format=torch.channels_last), prepared, pool, f"{TIMM}{name}:{file}", content)


def prepared_by_timm(net: nn.Module) -> Preprocessing:
    """What a network of timm notes of its preprocessing (``pretrained_cfg``); nothing for any other module."""
    noted: Any = getattr(net, "pretrained_cfg", None)
    if not isinstance(noted, Mapping) or "input_size" not in noted:
        return Preprocessing()
    _, height, width = noted["input_size"]
    by = noted.get("interpolation") or "bicubic"  # timm's own default
    if by not in INTERPOLATIONS:
        raise ArgumentError("trunk", f"trunk: its interpolation must be one of {', '.join(INTERPOLATIONS)}, got {by!r}")
    mean, std = (tuple(map(float, noted.get(key) or ())) for key in ("mean", "std"))
    return Preprocessing((int(height), int(width)), mean, std, by)


def _imported() -> Any:
    try:
        return importlib.import_module("timm")
    except (ImportError, RuntimeError) as error:  # a torchvision without its operators raises RuntimeError
        raise ImportError(
            f"timm does not import here ({error}): it needs torchvision, of the build that belongs to torch",
            name="timm",
        ) from error
