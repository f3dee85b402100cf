"""Measuring: the members run over each set once; all methods, plain and calibrated, read the same scores.

What the run was trained on, watched or calibrated on is left out: measured on it, an ensemble looks better than it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from credro.assess.lines import Assessment, line_of
from credro.assess.sets import Sets, sets_of
from credro.data.adapt import as_data
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.methods import make, reading
from credro.readouts import ReadOut
from credro.training.seen import SeenWarning

OF_PROBABILITIES = ("de", "crewra", "creens")
"""What can be read from the probabilities of anybody's ensemble."""

Say = Callable[[str], None]


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
    there are five or more they are one more OOD set, "unknown classes".
    """
    if not isinstance(ensemble, Ensemble):
        data = as_data(data)
        ensemble = Ensemble.of(ensemble, data)
    sets = sets_of(ensemble, data, ood or {}, seen)
    for text in sets.warnings:
        warnings.warn(text, SeenWarning, stacklevel=2)
    return assess_sets(ensemble, sets, methods, name=name, say=say)


def assess_sets(
    ensemble: Ensemble,
    sets: Sets,
    methods: Sequence[str] | None = None,
    *,
    name: str | None = None,
    say: Say | None = None,
) -> Assessment:
    """The same where it is settled what to measure on (``sets_of``)."""
    known = reading(ensemble.rule)
    chosen = list(known if methods is None else methods)
    if unreadable := [m for m in chosen if m not in known]:
        raise ValueError(f"methods must be among {', '.join(known)} for this ensemble, got {', '.join(unreadable)}")
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


def _class_numbers(labels: Any) -> Tensor:
    """Labels (N,) as a tensor; names have no place among probabilities, whose classes are numbered."""
    if not isinstance(labels, Tensor) and (kind := np.asarray(labels).dtype).kind in "OSU":
        raise TypeError(f"labels must hold class numbers from 0, got {kind}: number the names as the columns of probs")
    return torch.as_tensor(labels)
