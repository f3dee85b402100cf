"""The samples of a report on an ensemble: by its classes, without those it has seen, and what is against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from credro.assess import conform_to, unlabelled
from credro.data.base import Data, as_data
from credro.ensemble import Ensemble
from credro.report.page.objections import Objection, of_ood, of_overlap, of_unknown
from credro.training.seen import overlap, repeats

SEEN = ("drop", "keep")
"""What is done with samples that the run has used."""
UNKNOWN = "unknown classes"
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
    given = as_data(data)
    if given.labels.ndim != 1 or given.labels.is_floating_point():
        raise ValueError(f"{given.name!r} must have class labels, one per sample, for a report")
    shape = ensemble.inputs.shape
    known = conform_to(by_class(given, ensemble.classes), shape)
    sets = {name: conform_to(unlabelled(far), shape) for name, far in ood.items()}
    known, said = _unseen(ensemble, known, seen)
    strange = known.labels < 0
    if bool(strange.all()):
        raise ValueError(
            f"{given.name!r} has no sample of a class that the ensemble knows ({', '.join(ensemble.classes[:5])}): "
            f"its classes are {', '.join(given.classes[:5]) or 'others'}; as an OOD set it can be given"
        )
    count, samples, title = int(strange.sum()), len(known), free(UNKNOWN, sets)
    if count >= ENOUGH:
        sets[title] = known.subset(strange.nonzero()[:, 0])
    if count:
        known = known.subset((~strange).nonzero()[:, 0])
    names = [name for name in given.classes if name not in ensemble.classes]
    said += of_unknown(count, samples, names, title if count >= ENOUGH else None)
    said += _shared(ensemble, known, {k: v for k, v in sets.items() if k in ood})
    if given.bad:
        files = "file was" if len(given.bad) == 1 else "files were"
        said.append(Objection(f"{len(given.bad):,} {files} left out: they cannot be read.", grave=False))
    return Prepared(known, sets, tuple(said))


def by_class(data: Data, classes: tuple[str, ...]) -> Data:
    """``data`` with the class numbers of ``classes``, by name where it names its classes; -1 for others."""
    labels, places = data.labels.long(), {name: i for i, name in enumerate(classes)}
    if data.classes and data.classes != classes and not places.keys().isdisjoint(data.classes):
        table = torch.tensor([*(places.get(name, -1) for name in data.classes), -1])
        labels = table[labels.clamp(-1, len(data.classes))]
    labels = torch.where((labels >= 0) & (labels < len(classes)), labels, -1)
    return replace(data, labels=labels, classes=classes)


def free(name: str, taken: Mapping[str, Any]) -> str:
    """``name``, or the next that is not taken."""
    return name if name not in taken else free(f"{name}, more", taken)


def _unseen(ensemble: Ensemble, data: Data, seen: str) -> tuple[Data, list[Objection]]:
    """What of ``data`` to measure on: all of it where the run has used all, or it is to be kept."""
    if ensemble.run is None:
        data_, found = ensemble.unseen(data)
        return data_, of_overlap(found, kept=True, elsewhere=True)
    found, fresh = overlap(ensemble.run, data)
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
        used = 0 if ensemble.run is None else overlap(ensemble.run, far)[0].used
        said += of_ood(name, len(far), same, used)
    return said
