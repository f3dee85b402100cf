"""What an ensemble is measured on: labelled samples of its classes that it has not used, and sets that are OOD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credro.data.adapt import as_data, as_data_of, text_data
from credro.data.again import conform_to
from credro.data.base import Data
from credro.data.classes import UNKNOWN
from credro.data.texts import as_strings
from credro.ensemble import Ensemble
from credro.training.seen import Overlap

SEEN = ("drop", "keep")
"""What is done with samples that were used to make the ensemble."""

UNKNOWN_CLASSES = "unknown classes"
"""The OOD set that samples of classes which the ensemble does not know are put into."""

ENOUGH = 5
"""So many of them make an OOD set; fewer are left out."""


@dataclass(frozen=True)
class Shared:
    """Samples of an OOD set that are not OOD: ``inside`` are in the ID set too, ``used`` made the ensemble."""

    samples: int
    inside: int
    used: int


@dataclass(frozen=True, eq=False)
class Sets:
    """What is measured on, and all that is known against it.

    known: ID samples of the ensemble's classes. ood: by name. kept: whether those of ``seen`` that were used are in
    ``known``. given: ID samples in all, ``unknown`` of which are of other classes. shared: OOD sets that are not OOD.
    """

    known: Data
    ood: dict[str, Data]
    seen: Overlap
    kept: bool
    given: int
    unknown: int
    shared: dict[str, Shared]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user must be told even if nobody looks at the notes."""
        said = [f"{self.known.name}: {_told(self.seen, self.kept)}"] if self.seen.used else []
        for name, found in self.shared.items():
            if found.inside:
                said.append(f"OOD set {name}: {found.inside:,} of {found.samples:,} samples are in the ID set as well")
            if found.used:
                of = f"{found.used:,} of {found.samples:,} samples"
                said.append(f"OOD set {name}: {of} were used in training: they are not OOD")
        return tuple(said)

    @property
    def notes(self) -> tuple[str, ...]:
        """All that there is to say, in sentences."""
        said = [] if self.seen.used or self.seen.known else [f"{self.known.name}: {self.seen}"]
        if self.unknown:
            note = f"{self.unknown:,} of {self.given:,} samples are of classes that the ensemble does not know"
            put = f", but an OOD set, {UNKNOWN_CLASSES!r}" if UNKNOWN_CLASSES in self.ood else ""
            said.append(f"{note}: not in accuracy{put}")
        first = 1 if self.seen.used else 0
        return (*self.warnings[:first], *said, *self.warnings[first:])


def sets_of(ensemble: Ensemble, data: Any, ood: Mapping[str, Any], seen: str = "drop") -> Sets:
    """Everything in the ensemble's shape and classes.

    seen: "drop" leaves out ID samples that were used to make the ensemble, and raises ``SeenSamples`` where no others
    are there; "keep" leaves them in.
    """
    if seen not in SEEN:
        raise ValueError(f"seen must be {' or '.join(SEEN)}, got {seen!r}")
    if not ensemble.classes:
        raise ValueError("the members predict numbers; what is measured here is for classes")
    given = as_data_of(data, ensemble.classes)
    if given.labels.ndim != 1 or given.labels.is_floating_point():
        raise ValueError(f"{given.name!r} must have class labels, one per sample, to be evaluated on")
    shape, classes = ensemble.shape, ensemble.classes
    labels = torch.where((given.labels >= 0) & (given.labels < len(classes)), given.labels, UNKNOWN)
    given = conform_to(replace(given, labels=labels, classes=classes), shape)
    strange = labels < 0
    unknown = int(strange.sum())
    if unknown == len(given):
        raise ValueError(
            f"{given.name!r}: none of its samples is of a class that the ensemble knows ({_few(classes)}): "
            f"give it as an OOD set"
        )
    others = {name: conform_to(unlabelled(far), shape) for name, far in ood.items()}
    known = given.subset((~strange).nonzero()[:, 0]) if unknown else given
    known, found = unseen_part(ensemble, known, seen)
    shared = _shared(ensemble, known, others)
    if unknown >= ENOUGH:
        if UNKNOWN_CLASSES in others:
            raise ValueError(f"an OOD set cannot be called {UNKNOWN_CLASSES!r}: samples of the ID set are")
        others[UNKNOWN_CLASSES] = given.subset(strange.nonzero()[:, 0])
    return Sets(known, others, found, seen == "keep", len(given), unknown, shared)


def unseen_part(ensemble: Ensemble, data: Data, seen: str) -> tuple[Data, Overlap]:
    """What of ``data`` is measured on, and how much was used to make the ensemble."""
    return ensemble.unseen(data) if seen == "drop" else (data, ensemble.overlap(data)[0])


def seen_note(data: Data, found: Overlap, seen: str) -> str | None:
    """What there is to say about samples that were used, or may have been; None if nothing."""
    if found.known and not found.used:
        return None
    return f"{data.name}: {_told(found, seen == 'keep') if found.used else found}"


def unlabelled(source: Any) -> Data:
    """Samples whose labels do not matter: what ``as_data`` takes, or a tensor or array by itself."""
    if isinstance(source, Tensor | np.ndarray):
        return as_data((source, torch.zeros(len(source), dtype=torch.long)))
    if isinstance(source, list) and (strings := as_strings(source)) is not None:
        return text_data(strings)
    return as_data(source)


def _told(found: Overlap, kept: bool) -> str:
    return f"{found}: {'kept all the same, and the figures flatter the ensemble' if kept else 'left out'}"


def _shared(ensemble: Ensemble, known: Data, ood: Mapping[str, Data]) -> dict[str, Shared]:
    """OOD sets that are not out of distribution: they hold samples of the ID set, or of the training data."""
    found: dict[str, Shared] = {}
    inside = known.content() if ood and known.repeats() else None
    for name, far in ood.items():
        if not far.repeats():
            continue
        content = far.content()
        both = 0 if inside is None else int(torch.isin(content, inside).sum())
        used = ensemble.overlap(far, content)[0].used
        if both or used:
            found[name] = Shared(len(far), both, used)
    return found


def _few(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
