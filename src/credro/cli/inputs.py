"""What commands read for a run, with what there is to say about it; and somebody's own arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from credro.cli.options import Misuse
from credro.cli.wording import one_line
from credro.data import Data
from credro.data.again import read_labelled, read_ood_sets, read_samples
from credro.ensemble import Ensemble


def read_id(
    ensemble: Ensemble,
    name: str | None = None,
    split: str | None = None,
    root: Path | None = None,
    *,
    first: int | None = None,
    label: str | None = None,
    on_error: str = "stop",
) -> Data:
    """Labelled samples to measure a run on; without a name, of the set it was trained on."""
    data = read_labelled(ensemble.wanted, name, split, root, first=first, label=label, on_error=on_error)
    tell(data.notes)
    return data


def read_ood(
    ensemble: Ensemble,
    names: Sequence[str],
    known: Data,
    root: Path | None,
    *,
    first: int | None,
    on_error: str = "stop",
) -> dict[str, Data]:
    """Every OOD set that was named, by its title."""
    found = read_ood_sets(ensemble.wanted, names, known, root, first=first, on_error=on_error)
    for data in found.values():
        tell(data.notes)
    return found


def read_unlabelled(
    ensemble: Ensemble,
    inputs: Sequence[str],
    split: str | None = None,
    root: Path | None = None,
    label: str | None = None,
    on_error: str = "stop",
) -> list[Data]:
    """Samples to predict."""
    sets = read_samples(ensemble.wanted, inputs, split, root, label=label or None, on_error=on_error)
    for data in sets:
        tell(data.notes)
    return sets


def tell(notes: Iterable[str]) -> None:
    """Notes of readers, a line each, to standard error."""
    for note in notes:
        print(f"note: {one_line(note)}", file=sys.stderr)


def npy(path: Path) -> Any:
    """One plain array from a ``.npy`` file."""
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: not a plain .npy array ({error})") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} must be a .npy array, got an archive")
    return array


def named_arrays(pairs: Sequence[str]) -> dict[str, Any]:
    """``["letters=letters.npy"]`` as arrays by name."""
    found = {}
    for pair in pairs:
        name, sign, path = pair.partition("=")
        if not sign or not name:
            raise Misuse(f"--ood-probs takes NAME=FILE.npy, got {pair!r}")
        found[name] = npy(Path(path))
    return found
