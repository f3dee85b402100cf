"""Files that are there in full or not at all. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from credro._records import RecordError, read_json

__all__ = [
    "digest_of",
    "read_facts",
    "read_json",
    "read_tensors",
    "remove_parts",
    "write_bytes",
    "write_json",
    "write_tensors",
]

CHECKSUM = "checksum"


def write_bytes(path: Path, content: bytes) -> str:
    """Write aside, flush to disk, rename: a kill at any moment leaves the old file or the new one. Gives the digest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    with open(aside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    return hashlib.sha256(content).hexdigest()


def digest_of(path: Path) -> str:
    """The digest that ``write_bytes`` gave for this file."""
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def remove_parts(folder: Path) -> None:
    """Remove what killed processes left half written in ``folder``; its writer must be this process alone."""
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """JSON, written whole."""
    write_bytes(path, (json.dumps(content, indent=1, sort_keys=False) + "\n").encode())


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any] | None = None) -> str:
    """Named tensors and a few JSON facts, written whole with a checksum of both. Gives the file's digest.

    The checksum is one of the facts: safetensors writes several notes in any order, and equal content has one digest.
    """
    plain, known = {name: t.detach().to("cpu").contiguous() for name, t in tensors.items()}, dict(facts or {})
    said = json.dumps({**known, CHECKSUM: _checksum(plain, known)})
    return write_bytes(path, save(_unshared(plain), {"facts": said}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What ``write_tensors`` wrote. A file that is none of its kind, or is damaged, is a ``RecordError``."""
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        facts = _facts(file, path)
    written = facts.pop(CHECKSUM, None)
    if written is not None and written != _checksum(tensors, facts):  # version 0.1 wrote none
        raise RecordError(path, "", "is damaged: its content does not have the checksum that was written with it")
    return tensors, facts


def read_facts(path: Path) -> dict[str, Any]:
    """The facts of a file of tensors, without its tensors; empty where there is no such file."""
    if not path.exists():
        return {}
    with _opened(path) as file:
        return {name: fact for name, fact in _facts(file, path).items() if name != CHECKSUM}


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise RecordError(path, "", f"is no file of tensors ({error})") from error


def _facts(file: Any, path: Path) -> dict[str, Any]:
    try:
        facts = json.loads((file.metadata() or {}).get("facts", "{}"))
    except json.JSONDecodeError as error:
        raise RecordError(path, "facts", f"are no JSON ({error})") from error
    if not isinstance(facts, dict):
        raise RecordError(path, "facts", "must be an object")
    return facts


def _checksum(tensors: dict[str, Tensor], facts: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts).encode())
    for name in sorted(tensors):
        t = tensors[name]
        digest.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        digest.update(t.reshape(-1).view(torch.uint8).numpy().data if t.numel() else b"")
    return digest.hexdigest()


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tied weights are stored once per name: the format refuses tensors that share memory."""
    seen: set[int] = set()
    out = {}
    for name, t in tensors.items():
        out[name] = t.clone() if t.data_ptr() in seen and t.numel() else t
        seen.add(t.data_ptr())
    return out
