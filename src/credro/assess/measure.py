"""Measuring: the members run over each set once; all methods, plain and calibrated, read the same scores.

What the run was trained on, watched or calibrated on is left out: measured on it, an ensemble looks better than it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from credro.assess.lines import Assessment, line_of
from credro.data.again import conform_to
from credro.data.base import Data, as_data, as_data_of
from credro.ensemble import Ensemble
from credro.methods import make, reading
from credro.readouts import ReadOut
from credro.training.seen import Overlap, SeenWarning, repeats

OF_PROBABILITIES = ("de", "crewra", "creens")
"""What can be read from the probabilities of anybody's ensemble."""

UNKNOWN_CLASSES = "unknown classes"
"""The OOD set that samples of classes which the ensemble does not know are put into."""

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Sets:
    """What is measured on: labelled samples of known classes, OOD sets, and what there is to say about them."""

    known: Data
    ood: dict[str, Data]
    notes: tuple[str, ...]
    seen: Overlap
    unknown: int


def assess(
    ensemble: Ensemble | Sequence[nn.Module],
    data: Data | Any,
    ood: Mapping[str, Any] | None = None,
    methods: Sequence[str] | None = None,
    *,
    name: str | None = None,
    seen: str = "drop",
    say: Say | None = None,
) -> Assessment:
    """Read ``ensemble`` by every method of its training rule, plain and, if it is calibrated, calibrated.

    ensemble: may be a list of modules that give logits (``Ensemble.of``). data: labelled ID samples, a ``Data``, a
    ``Dataset`` or a pair (x, y). ood: OOD sets by name; labels do not matter, and a tensor or array needs none.
    Images are brought to the run's shape.
    methods: only these. name: what the result calls the ensemble. say: told what is being worked on.
    seen: "drop" leaves out ID samples that the run was trained, watched or calibrated on, and warns
    (``SeenWarning``); where none is left ``SeenSamples`` is raised. "keep" measures on them all the same, and says so.

    ID samples of a class that the ensemble does not know (label -1, or another name) do not count for accuracy; if
    there are two or more they are one more OOD set, "unknown classes".
    """
    if seen not in ("drop", "keep"):
        raise ValueError(f"seen must be drop or keep, got {seen!r}")
    if not isinstance(ensemble, Ensemble):
        data = as_data(data)
        ensemble = Ensemble.of(ensemble, data)
    known = reading(ensemble.rule)
    chosen = list(known if methods is None else methods)
    if unreadable := [m for m in chosen if m not in known]:
        raise ValueError(f"methods must be among {', '.join(known)} for this ensemble, got {', '.join(unreadable)}")
    sets = _sets(ensemble, data, ood or {}, seen)
    tell = say or (lambda text: None)
    scores: dict[str, Tensor] = {}
    for title, part in (("", sets.known), *sets.ood.items()):
        tell(f"predicting {title or part.name}, {len(part):,} samples")
        scores[title] = ensemble.scores(part)
    lines = []
    for calibrated in (False, True) if ensemble.calibrated else (False,):
        for method in chosen:
            tell(f"measuring {method}")
            reader = ensemble.read_as(ensemble.method if method == ensemble.method.name else method)
            reader.temperatures = ensemble.temperatures if calibrated else [1.0] * len(ensemble)
            predictions = {k: reader.method.readout(reader.probs(s)) for k, s in scores.items()}
            lines.append(line_of(method, calibrated, predictions.pop(""), sets.known.labels, predictions))
    return Assessment(
        name or (ensemble.run.folder.name if ensemble.run is not None else ensemble.method.name),
        sets.known.name,
        len(sets.known),
        len(ensemble),
        {k: len(v) for k, v in sets.ood.items()},
        tuple(lines),
        tuple(ensemble.warnings),
        sets.notes,
        sets.seen,
        sets.unknown,
    )


def assess_probs(
    probs: Any,
    labels: Any,
    ood: Mapping[str, Any] | None = None,
    methods: Sequence[str] | None = None,
    *,
    name: str = "probs",
    say: Say | None = None,
) -> Assessment:
    """The same for the probabilities of anybody's ensemble: (M, N, C), and (M, K, C) of each OOD set; labels (N,).

    Nobody can tell from probabilities whether the ensemble was trained on these samples.
    """
    chosen = list(OF_PROBABILITIES if methods is None else methods)
    if unreadable := [m for m in chosen if m not in OF_PROBABILITIES]:
        raise ValueError(f"methods must be among {', '.join(OF_PROBABILITIES)}, got {', '.join(unreadable)}")
    sets = {k: torch.as_tensor(v) for k, v in {"probs": probs, **(ood or {})}.items()}
    for key, given in sets.items():
        if given.ndim != 3 or (given.shape[0], given.shape[2]) != (sets["probs"].shape[0], sets["probs"].shape[-1]):
            wanted = "(M, N, C)" if key == "probs" else f"(M, K, C) with the M and C of {tuple(sets['probs'].shape)}"
            raise ValueError(f"{key} must have shape {wanted}, got {tuple(given.shape)}")
    known, truth = sets.pop("probs"), _class_numbers(labels)
    lines = []
    for method in chosen:
        if say is not None:
            say(f"measuring {method}")
        readout: ReadOut = make(method).readout
        lines.append(line_of(method, False, readout(known), truth, {k: readout(p) for k, p in sets.items()}))
    sizes = {k: v.shape[1] for k, v in sets.items()}
    return Assessment(name, name, known.shape[1], len(known), sizes, tuple(lines))


def are_modules(source: Any) -> TypeGuard[Sequence[nn.Module]]:
    """Whether ``source`` is a list (or tuple, or ``ModuleList``) of networks."""
    return isinstance(source, list | tuple | nn.ModuleList) and all(isinstance(net, nn.Module) for net in source)


def unlabelled(source: Any) -> Data:
    """Samples whose labels do not matter: what ``as_data`` takes, or a tensor or array by itself."""
    if isinstance(source, Tensor | np.ndarray):
        return as_data((source, torch.zeros(len(source), dtype=torch.long)))
    return as_data(source)


def _class_numbers(labels: Any) -> Tensor:
    """Labels (N,) as a tensor; names have no place among probabilities, whose classes are numbered."""
    if not isinstance(labels, Tensor) and (kind := np.asarray(labels).dtype).kind in "OSU":
        raise TypeError(f"labels must hold class numbers from 0, got {kind}: number the names as the columns of probs")
    return torch.as_tensor(labels)


def _sets(ensemble: Ensemble, data: Any, ood: Mapping[str, Any], seen: str) -> Sets:
    """The sets in the ensemble's shape and classes, without what it has seen and without classes it does not know."""
    if not ensemble.classes:
        raise ValueError("the members predict numbers; what is measured here is for classes")
    given = as_data_of(data, ensemble.classes)
    if given.labels.ndim != 1 or given.labels.is_floating_point():
        raise ValueError(f"{given.name!r} must have class labels, one per sample, to be evaluated on")
    shape = ensemble.inputs.shape
    given = conform_to(replace(given, classes=ensemble.classes), shape)
    others = {k: conform_to(unlabelled(v), shape) for k, v in ood.items()}
    rest, found, notes = unseen_part(ensemble, given, seen)
    strange = rest.labels < 0
    unknown = int(strange.sum())
    if unknown == len(rest):
        raise ValueError(
            f"{given.name!r}: none of its samples is of a class that the ensemble knows ({_few(ensemble.classes)}): "
            f"give it as an OOD set"
        )
    known = rest.subset((~strange).nonzero()[:, 0]) if unknown else rest
    if unknown:
        note = f"{unknown:,} of {len(rest):,} samples are of classes that the ensemble does not know: not in accuracy"
        if unknown > 1:
            if UNKNOWN_CLASSES in others:
                raise ValueError(f"an OOD set cannot be called {UNKNOWN_CLASSES!r}: samples of the ID set are")
            others[UNKNOWN_CLASSES] = rest.subset(strange.nonzero()[:, 0])
            note += f", but an OOD set, {UNKNOWN_CLASSES!r}"
        notes.append(note)
    notes += _shared(ensemble, known, {k: v for k, v in others.items() if k in ood})
    return Sets(known, others, tuple(notes), found, unknown)


def unseen_part(ensemble: Ensemble, data: Data, seen: str) -> tuple[Data, Overlap, list[str]]:
    """What of ``data`` is measured on, how much the run had used, and what there is to say about it."""
    rest, found = ensemble.unseen(data) if seen == "drop" else (data, ensemble.overlap(data)[0])
    if not found.used:
        return rest, found, [] if found.known else [f"{data.name}: {found}"]
    kept = "left out" if seen == "drop" else "kept all the same, and the figures flatter the ensemble"
    note = f"{data.name}: {found}: {kept}"
    warnings.warn(note, SeenWarning, stacklevel=4)
    return rest, found, [note]


def _shared(ensemble: Ensemble, known: Data, ood: Mapping[str, Data]) -> list[str]:
    """OOD sets that are not out of distribution: they hold samples of the ID set, or of the training data."""
    notes = []
    inside = known.content() if ood and repeats(known) else None
    for title, data in ood.items():
        if not repeats(data):
            continue
        content = data.content()
        both = 0 if inside is None else int(torch.isin(content, inside).sum())
        used = ensemble.overlap(data, content)[0].used
        if both:
            notes.append(f"OOD set {title}: {both:,} of {len(data):,} samples are in the ID set as well")
        if used:
            notes.append(f"OOD set {title}: {used:,} of {len(data):,} samples were used in training: they are not OOD")
    for note in notes:
        warnings.warn(note, SeenWarning, stacklevel=4)
    return notes


def _few(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
