"""What commands read for a run, with what there is to say about it; and somebody's own arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli._wording import tell
from credro.cli.options import Misuse

if TYPE_CHECKING:
    from credro.data import Data
    from credro.ensemble import Ensemble

IdSet = Annotated[str | None, typer.Option(metavar="DATA", help="ID set. Default: the one the run was trained on.")]
Split = Annotated[
    str | None, typer.Option(metavar="NAME", help="Its split. Default: test, or val; all of a file without.")
]
OodSets = Annotated[
    list[str] | None,
    typer.Option(metavar="DATA", help="OOD set, folder or file (NAME=PATH), or corrupt:fog:3; repeat it."),
]
Limit = Annotated[int | None, typer.Option(metavar="N", help="Only so many samples of each set, by a seeded shuffle.")]
LabelColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="Label column of a table.")]
Seen = Annotated[
    str, typer.Option(metavar="drop|keep", help="Samples that the run was trained on: leave out, or count.")
]
SEEN = ("drop", "keep")
Probs = Annotated[Path | None, typer.Option(metavar="NPY", help="Your own ensemble: probabilities (M, N, C).")]
OodProbs = Annotated[
    list[str] | None, typer.Option(metavar="NAME=NPY", help="Its probabilities on an OOD set; repeat it.")
]


@dataclass(frozen=True)
class Measured:
    """The options that say what a run is measured on. data: None is the set that it was trained on."""

    data: str | None = None
    split: str | None = None
    ood: Sequence[str] = ()
    limit: int | None = None
    label: str | None = None
    on_error: str = "stop"
    root: Path | None = None

    def known(self, ensemble: Ensemble) -> Data:
        """The labelled samples."""
        from credro.data.again import read_labelled

        options: dict[str, Any] = {"first": self.limit, "label": self.label, "on_error": self.on_error}
        data = read_labelled(ensemble.wanted, self.data, self.split, self.root, **options)
        tell(data.notes)
        return data

    def both(self, ensemble: Ensemble) -> tuple[Data, dict[str, Data]]:
        """The labelled samples, and every OOD set that was named, by its title."""
        from credro.data.again import read_ood_sets

        known = self.known(ensemble)
        sets = read_ood_sets(ensemble.wanted, self.ood, known, self.root, first=self.limit, on_error=self.on_error)
        for data in sets.values():
            tell(data.notes)
        return known, sets


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
