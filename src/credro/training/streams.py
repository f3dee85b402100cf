"""Random streams. Every draw of a member belongs to (seed, member, purpose, epoch) and to nothing else.

So a member's result does not depend on which executor trained it, in which order or beside what, and a run that is
resumed at the start of an epoch needs no saved generator state.
"""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on all of ``parts``."""
    text = "/".join(map(str, ("credro", seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *parts: object) -> torch.Generator:
    """A CPU generator for the stream ``parts``: what is drawn on the CPU is the same on every device."""
    return torch.Generator().manual_seed(derive(seed, *parts))
