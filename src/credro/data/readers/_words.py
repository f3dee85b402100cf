"""Names and numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 12
"""So many names are listed in a sentence."""


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """Names with commas, the first few of many."""
    return ", ".join(names[:most]) + (f", ... ({len(names) - most:,} more)" if len(names) > most else "")


def count(n: int, what: str) -> str:
    """``1 file``, ``1,200 files``; ``2 classes``."""
    return f"{n:,} {what}{('es' if what.endswith('s') else 's') * (n != 1)}"
