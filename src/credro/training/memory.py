"""How a process that is ours alone handles memory."""

from __future__ import annotations

import ctypes
import sys

GLIBC = {-1: 1 << 30, -2: 64 << 20, -3: 1 << 30}
"""mallopt's numbers for what is trimmed, how much is fetched at once, and from which size blocks are mapped singly."""


def keep_memory() -> bool:
    """Let this process keep the memory it frees, for the next batch to use; says whether the system took it.

    glibc gives large blocks back at once and fetches them anew page by page, for every activation of every step: an
    eighth of a small network's time on the CPU (``python -m benchmarks training``). Results are the same. It is meant
    for processes that do nothing but our work: a user's own process may want its memory back.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library, such as musl
        return False
    took = [mallopt(option, value) == 1 for option, value in GLIBC.items()]
    return all(took)
