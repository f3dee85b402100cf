"""The samples of a report on an ensemble, and what is against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from credro.assess import UNKNOWN_CLASSES, Sets, sets_of
from credro.ensemble import Ensemble
from credro.report.page.objections import Objection, of_ood, of_overlap, of_unknown
from credro.training.seen import SeenSamples


def prepare(ensemble: Ensemble, data: Any, ood: Mapping[str, Any], seen: str) -> tuple[Sets, list[Objection]]:
    """What to measure on: as ``sets_of``, but where the ensemble has used all samples they are kept, and it is said."""
    try:
        sets = sets_of(ensemble, data, ood, seen)
    except SeenSamples:
        sets = sets_of(ensemble, data, ood, "keep")
    theirs = _own_names(data)
    said = of_overlap(sets.seen, kept=sets.kept, elsewhere=ensemble.run is None)
    for name, found in sets.shared.items():
        said += of_ood(name, found.samples, found.inside, found.used)
    strange = [name for name in theirs if name not in ensemble.classes]
    said += of_unknown(sets.unknown, sets.given, strange, UNKNOWN_CLASSES if UNKNOWN_CLASSES in sets.ood else None)
    if theirs and set(theirs).isdisjoint(ensemble.classes):
        text = f"The classes of {sets.known.name} ({_first(theirs)}) are not called as the model's"
        said.append(Objection(f"{text} ({_first(ensemble.classes)}): they are compared by number.", grave=False))
    if bad := len(sets.known.bad):
        said.append(Objection(f"{bad:,} file{'s were' if bad > 1 else ' was'} left out: unreadable.", grave=False))
    return sets, said


def _own_names(source: Any) -> tuple[str, ...]:
    """What somebody's dataset calls its classes; empty where it does not say."""
    return tuple(map(str, getattr(source, "classes", None) or ()))


def _first(names: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
