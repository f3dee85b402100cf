"""Published weights from a file, without running anything that the file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from credro.nets.head import find_head

WRAPPERS = ("state_dict", "net", "model")
"""Keys under which checkpoints keep the weights beside epoch and optimiser."""
PREFIXES = ("module.", "_orig_mod.")
"""What DataParallel and torch.compile put before every key."""


@dataclass(frozen=True)
class LoadReport:
    """What became of the tensors, by state-dict key."""

    loaded: tuple[str, ...]  # now as in the file
    replaced: tuple[str, ...]  # the last layer, left at its fresh initialisation: another number of classes
    missing: tuple[str, ...]  # in the network, not in the file: left at their fresh initialisation
    skipped: tuple[str, ...]  # in the file, not in the network

    def __str__(self) -> str:
        """One line."""
        rest = {"replaced": self.replaced, "missing": self.missing, "skipped": self.skipped}
        parts = [f"{what}: {', '.join(keys)}" for what, keys in rest.items() if keys]
        return "; ".join([f"{len(self.loaded)} tensors loaded", *parts])


def load_weights(net: nn.Module, path: str | Path, *, strict: bool = True) -> LoadReport:
    """Copy the weights in a ``.pth``, ``.pt`` or ``.safetensors`` file into ``net``, in place.

    The last layer keeps its fresh initialisation where only the number of classes differs. Any other difference in
    shape is an error, and so are missing and surplus keys unless ``strict=False``; ``net`` is then left as it was.
    """
    own = net.state_dict()
    given = _without_prefix(read_weights(path), own)
    if rename := getattr(net, "from_published", None):  # a network whose published names are not ours
        given = rename(given)
    shapes = {key: (tuple(given[key].shape), tuple(own[key].shape)) for key in given if key in own}
    name = find_head(net)
    replaced = {
        key for key, (a, b) in shapes.items() if name is not None and key.startswith(f"{name}.") and _other_rows(a, b)
    }
    if replaced:  # weight and bias go together
        replaced |= {key for key in shapes if key.startswith(f"{name}.")}
    if clash := [f"{key} {a}, network {b}" for key, (a, b) in shapes.items() if a != b and key not in replaced]:
        raise ValueError(f"weights in {path} differ in shape from the network's: {_some(clash)}")
    # Files older than this counter lack it; BatchNorm does without.
    missing = [key for key in own if key not in given and not key.endswith("num_batches_tracked")]
    skipped = [key for key in given if key not in own]
    if strict and (missing or skipped):
        raise ValueError(
            f"weights in {path} do not fit the network: "
            f"missing from the file: {_some(missing)}; not in the network: {_some(skipped)}; "
            f"strict=False loads the rest"
        )
    loaded = {key: given[key] for key in shapes if key not in replaced}
    if not loaded:
        raise ValueError(f"no weight in {path} fits the network: the file has {_some(list(given))}")
    net.load_state_dict(loaded, strict=False)
    return LoadReport(tuple(loaded), tuple(k for k in own if k in replaced), tuple(missing), tuple(skipped))


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The tensors in a file, by key, on the CPU; a wrapping ``{"state_dict": ...}`` is taken off."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no weights file at {path}")
    content: Any
    try:
        if path.suffix == ".safetensors":
            content = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken or hostile file fails in any of a dozen ways
        # Of torch's long message only what was refused: the rest advises to load the file without protection.
        reason = next((line for line in str(error).splitlines() if "GLOBAL" in line), type(error).__name__)
        raise ValueError(f"{path} is not a readable file of plain tensors and was not loaded: {reason}") from error
    while wrapper := _wrapper(content):
        content = content[wrapper]
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"{path} must hold a state dict of tensors by key, got {type(content).__name__}")
    odd = [
        f"{k} ({type(v).__name__})" for k, v in content.items() if not (isinstance(k, str) and isinstance(v, Tensor))
    ]
    if odd:
        raise ValueError(f"{path} must hold a state dict of tensors by key, got also: {_some(odd)}")
    return dict(content)


def _wrapper(content: Any) -> str | None:
    if not isinstance(content, Mapping):
        return None
    return next((key for key in WRAPPERS if isinstance(content.get(key), Mapping)), None)


def _without_prefix(given: dict[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in PREFIXES:
        # A network may itself have a part of that name: then the prefix is meant.
        if all(key.startswith(prefix) for key in given) and not any(key.startswith(prefix) for key in own):
            given = {key.removeprefix(prefix): value for key, value in given.items()}
    return given


def _other_rows(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes differ in their first number, that of the classes, and in nothing else."""
    return a != b and len(a) == len(b) > 0 and a[1:] == b[1:]


def _some(items: list[str], most: int = 6) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return (", ".join(items[:most]) or "none") + more
