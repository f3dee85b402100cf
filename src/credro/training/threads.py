"""How many cores a computation uses, and members that compute side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run with so many threads (0: as many as there are), and put the setting back."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def side_by_side(count: int, device: torch.device) -> Iterator[Each]:
    """Within: a map from a function and ``count`` items to the answers, which on the CPU gives each core a whole item.

    Sharing every layer of a network among the cores costs more: they wait for each other at each of them. The answers
    are the same. On another device, or with one core, one item after another.
    """
    workers = min(count, torch.get_num_threads())
    if device.type != "cpu" or workers < 2:
        yield lambda function, items: [function(item) for item in items]
        return
    with threads(0), ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield lambda function, items: list(pool.map(function, items))
