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

from credro._names import ArgumentError
from credro.data.adapt import as_data
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.evaluation.results import BINS, COMPARED, Evaluation, Key, MethodResult
from credro.evaluation.sets import Sets, sets_of
from credro.methods import make, of_probabilities
from credro.metrics import (
    accuracy,
    accuracy_rejection,
    brier,
    ece,
    error_detection,
    evaluate_ood,
    member_accuracy,
    nll,
    score_of,
)
from credro.prediction import Prediction
from credro.training.seen import SeenWarning

Say = Callable[[str], None]


def evaluate(
    source: Ensemble | Sequence[nn.Module] | Any,
    data: Data | Any,
    ood: Mapping[str, Any] | None = None,
    methods: Sequence[str] | None = None,
    *,
    name: str | None = None,
    seen: str = "drop",
    say: Say | None = None,
) -> Evaluation:
    """Measure an ensemble under every method that can read it, plain and, if it is calibrated, calibrated.

    Everything is predicted once, and the predictions are handed on (``Evaluation.predictions``). ID samples of a class
    that the ensemble does not know (label -1, or another name) do not count for accuracy; if there are five or more
    they are one more OOD set, "unknown classes". (Probabilities have numbered classes, and labels must be among them.)

    Args:
        source: an ``Ensemble``, a list of modules that give logits (``Ensemble.of``), or members' probabilities
            (M, N, C), of which nobody can tell whether the ensemble was trained on these samples.
        data: labelled ID samples, a ``Data``, a ``Dataset`` or a pair (x, y); for probabilities the labels (N,).
        ood: OOD sets by name; labels do not matter, and a tensor or array needs none. Images are brought to the run's
            shape. For probabilities (M, K, C) of each.
        methods: only these.
        name: what the result calls the ensemble.
        seen: "drop" leaves out ID samples that the run was trained, watched or calibrated on, and warns
            (``SeenWarning``). "keep" measures on them all the same, and says so.
        say: told what is being worked on.

    Raises:
        SeenSamples: the ensemble has used every sample of ``data``.
    """
    if are_modules(source):
        data = as_data(data)
        source = Ensemble.of(source, data)
    if not isinstance(source, Ensemble):
        return _of_probs(source, data, ood or {}, methods, name=name or "probabilities", say=say)
    sets = sets_of(source, data, ood or {}, seen)
    for text in sets.warnings:
        warnings.warn(text, SeenWarning, stacklevel=2)
    return evaluate_sets(source, sets, methods, name=name, say=say)


def evaluate_sets(
    ensemble: Ensemble,
    sets: Sets,
    methods: Sequence[str] | None = None,
    *,
    name: str | None = None,
    say: Say | None = None,
) -> Evaluation:
    """The same where it is settled what to measure on (``sets_of``)."""
    chosen = _chosen(methods, ensemble.readers)
    tell = say or (lambda text: None)
    scores: dict[str, Tensor] = {}
    for title, part in (("", sets.known), *sets.ood.items()):
        tell(f"predicting {title or part.name}, {len(part):,} samples")
        scores[title] = ensemble.scores(part)
    predictions: dict[Key, dict[str, Prediction]] = {}
    results = []
    for calibrated in (False, True) if ensemble.calibrated else (False,):
        at = ensemble if calibrated else ensemble.plain()
        for method in chosen:
            tell(f"measuring {method}")
            reader = at.read_as(method)
            found = {k: reader.predict_scores(s) for k, s in scores.items()}
            predictions[method, calibrated] = found
            far = {k: p for k, p in found.items() if k}
            results.append(result_of(method, calibrated, found[""], sets.known.labels, far))
    return Evaluation(
        name=name or (ensemble.run.folder.name if ensemble.run is not None else ensemble.method.name),
        data=sets.known.name,
        samples=len(sets.known),
        members=len(ensemble),
        ood={k: len(v) for k, v in sets.ood.items()},
        results=tuple(results),
        predictions=predictions,
        warnings=tuple(ensemble.warnings),
        notes=sets.notes,
        seen=sets.seen,
        unknown=sets.unknown,
        sets=sets,
    )


def result_of(
    method: str, calibrated: bool, prediction: Prediction, labels: Tensor, ood: Mapping[str, Prediction]
) -> MethodResult:
    """Every measure of one method's predictions of a labelled set, labels (N,), and of OOD sets by name."""
    eu, per_member = prediction.epistemic, member_accuracy(prediction.probs, labels)
    correct = prediction.label == labels
    curve = accuracy_rejection(correct, eu)
    return MethodResult(
        method=method,
        calibrated=calibrated,
        accuracy=accuracy(prediction.label, labels),
        ece=ece(prediction.mean, labels, BINS),
        nll=nll(prediction.mean, labels),
        brier=brier(prediction.mean, labels),
        members=(float(per_member.min()), float(per_member.mean()), float(per_member.max())),
        mean_eu=float(eu.mean()),
        area=curve.area,
        normalised_area=curve.normalised_area,
        ood={name: evaluate_ood(eu, other.epistemic) for name, other in ood.items()},
        errors={name: error_detection(correct, score_of(prediction, score)) for name, score in COMPARED.items()},
    )


def _of_probs(
    probs: Any,
    labels: Any,
    ood: Mapping[str, Any],
    methods: Sequence[str] | None,
    *,
    name: str,
    say: Say | None,
) -> Evaluation:
    """For the probabilities of anybody's ensemble: (M, N, C), and (M, K, C) of each OOD set; labels (N,)."""
    chosen = _chosen(methods, of_probabilities())
    sets = {k: torch.as_tensor(v) for k, v in {"": probs, **ood}.items()}
    for key, given in sets.items():
        if given.ndim != 3 or (given.shape[0], given.shape[2]) != (sets[""].shape[0], sets[""].shape[-1]):
            wanted = f"(M, K, C) with the M and C of {tuple(sets[''].shape)}" if key else "(M, N, C)"
            raise ArgumentError(
                "ood" if key else "probs", f"{key or 'probs'} must have shape {wanted}, got {tuple(given.shape)}"
            )
    truth = _class_numbers(labels.labels if isinstance(labels, Data) else labels)
    predictions: dict[Key, dict[str, Prediction]] = {}
    for method in chosen:
        if say is not None:
            say(f"measuring {method}")
        readout = make(method).readout
        predictions[method, False] = {k: readout(p) for k, p in sets.items()}
    results = tuple(
        result_of(method, False, found[""], truth, {k: p for k, p in found.items() if k})
        for (method, _), found in predictions.items()
    )
    sizes = {k: v.shape[1] for k, v in sets.items() if k}
    data = labels.name if isinstance(labels, Data) else name
    return Evaluation(name, data, sets[""].shape[1], len(sets[""]), sizes, results, predictions)


def _chosen(methods: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    chosen = list(known if methods is None else methods)
    if unreadable := [m for m in chosen if m not in known]:
        raise ArgumentError(
            "methods", f"methods must be among {', '.join(known)} for this ensemble, got {', '.join(unreadable)}"
        )
    return chosen


def are_modules(source: Any) -> TypeGuard[Sequence[nn.Module]]:
    """Whether ``source`` is a list (or tuple, or ``ModuleList``) of networks."""
    return isinstance(source, list | tuple | nn.ModuleList) and all(isinstance(net, nn.Module) for net in source)


def _class_numbers(labels: Any) -> Tensor:
    """Labels (N,) as a tensor; names have no place among probabilities, whose classes are numbered."""
    if not isinstance(labels, Tensor) and (kind := np.asarray(labels).dtype).kind in "OSU":
        raise TypeError(f"labels must hold class numbers from 0, got {kind}: number the names as the columns of probs")
    return torch.as_tensor(labels)
