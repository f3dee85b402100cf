"""Which GPU trains which member on a machine that has several."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from credro._names import ArgumentError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible(count: int, setting: str | None) -> tuple[str, ...]:
    """Names of the ``count`` GPUs that CUDA sees, as ``CUDA_VISIBLE_DEVICES`` (setting) has them: "3" or "GPU-8c1f"."""
    if setting is None:
        return tuple(map(str, range(count)))
    return tuple(name.strip() for name in setting.split(","))[:count]  # CUDA ends at the first that it does not know


def gpus(device: torch.device) -> tuple[str, ...]:
    """The GPUs that members may be placed on: all visible ones for "cuda", one for "cuda:1"; none on the CPU."""
    if device.type != "cuda":
        return ()
    names = visible(torch.cuda.device_count(), os.environ.get(VISIBLE))
    return names if device.index is None else names[device.index : device.index + 1]


def places(devices: Sequence[str], members_per_device: int, workers: int | None) -> int:
    """Worker processes that 0 stands for or at most: the cores or, where there are GPUs, the members that fit on them.

    workers: what was asked for.
    """
    if isinstance(members_per_device, bool) or not isinstance(members_per_device, int) or members_per_device < 1:
        raise ArgumentError(
            "members_per_device", f"members_per_device must be a whole number of at least 1, got {members_per_device!r}"
        )
    if not devices:
        return workers or os.cpu_count() or 1
    return min(workers or len(devices) * members_per_device, len(devices) * members_per_device)


def next_device(devices: Sequence[str], taken: Sequence[str]) -> str:
    """The first of the GPUs with the fewest workers: in turn, and the place of one that died is filled again."""
    load = Counter(taken)
    return min(devices, key=lambda name: load[name])


@contextmanager
def only(device: str | None) -> Iterator[None]:
    """Processes started within see this GPU alone, from their first import on; None: what this one sees."""
    if device is None:
        yield
        return
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = device
    try:
        yield
    finally:
        if before is None:
            del os.environ[VISIBLE]
        else:
            os.environ[VISIBLE] = before
