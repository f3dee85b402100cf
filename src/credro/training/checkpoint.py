"""Files that are there in full or not at all, and a member's training state in one of them. No pickle anywhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor


def write_bytes(path: Path, content: bytes) -> None:
    """Write aside, flush to disk, rename: a kill at any moment leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    with open(aside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def remove_parts(folder: Path) -> None:
    """Remove what killed processes left half written in ``folder``; its writer must be this process alone."""
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """JSON, written whole."""
    write_bytes(path, (json.dumps(content, indent=1, sort_keys=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text())


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any] | None = None) -> None:
    """Named tensors and a few JSON facts, written whole."""
    plain = {name: t.detach().to("cpu").contiguous() for name, t in tensors.items()}
    write_bytes(path, save(_unshared(plain), {"facts": json.dumps(facts or {})}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What ``write_tensors`` wrote."""
    with safe_open(path, framework="pt") as file:
        facts = json.loads((file.metadata() or {}).get("facts", "{}"))
        return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118 (not a mapping)


def read_facts(path: Path) -> dict[str, Any]:
    """The facts of a file of tensors, without its tensors; empty where there is no such file."""
    if not path.exists():
        return {}
    with safe_open(path, framework="pt") as file:
        facts: dict[str, Any] = json.loads((file.metadata() or {}).get("facts", "{}"))
        return facts


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tied weights are stored once per name: the format refuses tensors that share memory."""
    seen: set[int] = set()
    out = {}
    for name, t in tensors.items():
        out[name] = t.clone() if t.data_ptr() in seen and t.numel() else t
        seen.add(t.data_ptr())
    return out


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
