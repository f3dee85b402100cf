"""The samples of a report on an ensemble: by its classes, without those it has seen, and what is against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from credro.assess import unlabelled
from credro.data.again import conform_to
from credro.data.base import Data, as_data_of
from credro.data.classes import UNKNOWN, list_classes
from credro.ensemble import Ensemble
from credro.report.page.objections import Objection, of_ood, of_overlap, of_unknown
from credro.training.seen import Overlap, repeats

SEEN = ("drop", "keep")
"""What is done with samples that the run has used."""
STRANGE = "unknown classes"
ENOUGH = 5
"""So many samples of unknown classes make an OOD set."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """known: labelled ID samples of the ensemble's classes. ood: by name. objections: what is against using these."""

    known: Data
    ood: dict[str, Data]
    objections: tuple[Objection, ...]


def prepare(ensemble: Ensemble, data: Any, ood: Mapping[str, Any], seen: str) -> Prepared:
    """Samples as the ensemble takes them. seen: "drop" leaves out those it has used, unless it has used all."""
    if seen not in SEEN:
        raise ValueError(f"seen must be one of {', '.join(SEEN)}, got {seen!r}")
    given, said = _by_class(data, ensemble.classes)
    shape, strange = ensemble.inputs.shape, given.labels < 0
    if bool(strange.all()):
        raise ValueError(
            f"{given.name!r} has no sample of a class that the ensemble knows, which are the "
            f"{list_classes(ensemble.classes)}: take other data, or give it as an OOD set"
        )
    sets = {name: conform_to(unlabelled(far), shape) for name, far in ood.items()}
    if count := int(strange.sum()):
        title = free(STRANGE, sets) if count >= ENOUGH else None
        names = [name for name in _own_names(data) if name not in ensemble.classes]
        said += of_unknown(count, len(given), names, title)
        if title:
            sets[title] = conform_to(given.subset(strange.nonzero()[:, 0]), shape)
    known = conform_to(given.subset((~strange).nonzero()[:, 0]) if count else given, shape)
    known, against = _unseen(ensemble, known, seen)
    said = [*against, *said, *_shared(ensemble, known, sets)]
    if given.bad:
        files = "file was" if len(given.bad) == 1 else "files were"
        said.append(Objection(f"{len(given.bad):,} {files} left out: they cannot be read.", grave=False))
    return Prepared(known, sets, tuple(said))


def free(name: str, taken: Mapping[str, Any]) -> str:
    """``name``, or the next that is not taken."""
    return name if name not in taken else free(f"{name}, more", taken)


def _by_class(source: Any, classes: tuple[str, ...]) -> tuple[Data, list[Objection]]:
    """Samples under the class numbers of ``classes``, -1 for others, and what is against that."""
    data, theirs = as_data_of(source, classes), _own_names(source)
    if data.labels.ndim != 1 or data.labels.is_floating_point():
        raise ValueError(f"{data.name!r} must have class labels, one per sample, for a report")
    said = []
    if theirs and set(theirs).isdisjoint(classes) and bool((data.labels >= 0).any()):
        text = f"The classes of {data.name} ({_first(theirs)}) are not called as the model's ({_first(classes)})"
        said.append(Objection(f"{text}: they are compared by number.", grave=False))
    known = (data.labels >= 0) & (data.labels < len(classes))
    return replace(data, labels=torch.where(known, data.labels, UNKNOWN), classes=classes), said


def _own_names(source: Any) -> tuple[str, ...]:
    """What somebody's dataset calls its classes; empty where it does not say."""
    return tuple(map(str, getattr(source, "classes", None) or ()))


def _first(names: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _unseen(ensemble: Ensemble, data: Data, seen: str) -> tuple[Data, list[Objection]]:
    """What of ``data`` to measure on: all of it where the run has used all, or it is to be kept."""
    if not ensemble.seen:
        return data, of_overlap(Overlap(len(data), known=False), kept=True, elsewhere=ensemble.run is None)
    found, fresh = ensemble.overlap(data)
    dropped = seen == "drop" and bool(fresh.any())
    return data.subset(fresh.nonzero()[:, 0]) if dropped and found.used else data, of_overlap(found, kept=not dropped)


def _shared(ensemble: Ensemble, known: Data, ood: Mapping[str, Data]) -> list[Objection]:
    """OOD sets that hold samples of the ID set, or of the training set."""
    if not ood or not repeats(known):
        return []
    inside, said = known.content(), []
    for name, far in ood.items():
        if not repeats(far):
            continue
        same = int(torch.isin(far.content(), inside).sum())
        used = ensemble.overlap(far)[0].used
        said += of_ood(name, len(far), same, used)
    return said
