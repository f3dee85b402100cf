"""From an ensemble, modules, probabilities or an evaluation of them to all that a report tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from credro._names import ArgumentError, one_of
from credro.data.adapt import as_data
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.evaluation import ENOUGH, UNKNOWN_CLASSES, Evaluation, Say, Sets, are_modules, evaluate, evaluate_sets
from credro.evaluation.sets import sets_of
from credro.report.page import _objections as against
from credro.report.page._findings import Findings
from credro.report.page._numbers import as_numpy
from credro.report.page._samples import Samples
from credro.training.seen import SeenSamples


@dataclass(frozen=True, eq=False)
class _Measured:
    """An evaluation with what the page needs besides: labels (N,), samples to show, and what is known against it."""

    evaluation: Evaluation
    labels: Any
    data: Data | None
    ood: Mapping[str, Data]
    objections: Sequence[against.Objection]
    ensemble: Ensemble | None = None


def gather(
    source: Ensemble | Evaluation | Any,
    data: Data | Evaluation | Any = None,
    *,
    ood: Mapping[str, Any] | None = None,
    method: str | None = None,
    plain: bool = False,
    name: str | None = None,
    each: int = 6,
    say: Say | None = None,
    seen: str = "drop",
) -> Findings:
    """What ``write_report`` writes; its arguments are explained there."""
    if each < 1:
        raise ArgumentError("each", f"each must be at least 1, got {each}")
    if ood and isinstance(source if isinstance(source, Evaluation) else data, Evaluation):
        raise ArgumentError("ood", f"an evaluation has its OOD sets: ood must not be given, got {', '.join(ood)}")
    if are_modules(source):
        data = as_data(data)
        source = Ensemble.of(source, data)
    if isinstance(source, Ensemble):
        method = source.read_as(method or source.method).method.name
        made = _of_ensemble(source, data, ood or {}, name, say or (lambda text: None), seen)
    elif isinstance(source, Evaluation):
        made = _of_evaluation(source, data, name)
    else:
        made = _of_probs(source, data, ood or {}, name, say)
    return _findings(made, method, plain, each)


def _of_ensemble(
    ensemble: Ensemble, data: Any, ood: Mapping[str, Any], name: str | None, say: Say, seen: str
) -> _Measured:
    if isinstance(data, Evaluation):
        if data.members != len(ensemble):
            raise ArgumentError("data", f"data is an evaluation of {data.members} members, source has {len(ensemble)}")
        return _of_evaluation(data, None, name, ensemble)
    say("looking for samples that were trained on")
    try:
        sets = sets_of(ensemble, data, ood, seen)
    except SeenSamples:  # the page is written all the same, and says so in red
        sets = sets_of(ensemble, data, ood, "keep")
    evaluation = evaluate_sets(ensemble, sets, name=name, say=say)
    say("writing the report")
    return _of_sets(evaluation, sets, ensemble, tuple(map(str, getattr(data, "classes", None) or ())))


def _of_evaluation(evaluation: Evaluation, data: Any, name: str | None, ensemble: Ensemble | None = None) -> _Measured:
    evaluation = replace(evaluation, name=name or evaluation.name)
    if evaluation.sets is not None:
        return _of_sets(evaluation, evaluation.sets, ensemble)
    labels, shown = _labels_of(data)
    if not _are_class_numbers(labels) or len(labels) != evaluation.samples:
        many = f"{evaluation.samples:,} labels"
        raise ArgumentError("data", f"data must be the {many} that these probabilities were evaluated with")
    return _Measured(evaluation, labels, shown, {}, [against.UNCHECKED])


def _of_sets(evaluation: Evaluation, sets: Sets, ensemble: Ensemble | None, theirs: tuple[str, ...] = ()) -> _Measured:
    """ensemble: what was evaluated, if it is at hand. theirs: what the user's own dataset calls its classes."""
    ours, unknown = sets.known.classes, UNKNOWN_CLASSES if UNKNOWN_CLASSES in sets.ood else None
    config = None if ensemble is None else ensemble.config
    elsewhere = ensemble is not None and (config is None or config.network.given)
    objections = [
        *against.of_overlap(sets.seen, kept=sets.kept, elsewhere=elsewhere),
        *(o for name, found in sets.shared.items() for o in against.of_ood(name, found)),
        *against.of_unknown(sets.unknown, sets.given, [name for name in theirs if name not in ours], unknown),
        *against.of_names(sets.known.name, theirs, ours),
        *against.of_unreadable(len(sets.known.bad)),
        *map(against.Objection, evaluation.warnings),
    ]
    return _Measured(evaluation, sets.known.labels, sets.known, sets.ood, objections, ensemble)


def _of_probs(probs: Any, data: Any, ood: Mapping[str, Any], name: str | None, say: Say | None) -> _Measured:
    (labels, shown), probs, sets = _labels_of(data), torch.as_tensor(probs), dict(ood)
    pictures: dict[str, Data] = {}
    objections = [against.UNCHECKED]
    if probs.ndim == 3 and _are_class_numbers(labels) and len(labels) == probs.shape[1]:  # else evaluate objects
        truth, last = torch.as_tensor(labels), probs.shape[2] - 1
        unknown = (truth < 0) | (truth > last)
        out, kept = unknown.nonzero()[:, 0], (~unknown).nonzero()[:, 0]
        if not len(kept):
            raise ArgumentError("labels", f"labels must be class numbers from 0 to {last}, got none that is")
        if enough := len(out) >= ENOUGH:
            if UNKNOWN_CLASSES in sets:
                text = f"an OOD set cannot be called {UNKNOWN_CLASSES!r}: samples of the ID set are"
                raise ArgumentError("ood", text)
            sets[UNKNOWN_CLASSES] = probs[:, out]
            pictures = {} if shown is None else {UNKNOWN_CLASSES: shown.subset(out)}
        if len(out):
            objections += against.of_unknown(len(out), len(truth), [], UNKNOWN_CLASSES if enough else None)
            probs, labels, shown = probs[:, kept], truth[kept], None if shown is None else shown.subset(kept)
    evaluation = evaluate(probs, labels if shown is None else shown, sets, name=name, say=say)
    return _Measured(evaluation, labels, shown, pictures, objections)


def _findings(made: _Measured, method: str | None, plain: bool, each: int) -> Findings:
    """method: the first with a credal set if not given."""
    evaluation, data = made.evaluation, made.data
    results = {r.method: r for r in evaluation.results if not (plain and r.calibrated)}  # a calibrated one comes later
    if method is None:
        credal = (name for name in results if evaluation.prediction(name).set is not None)
        method = next(credal, evaluation.results[0].method)
    result = results[one_of("method", method, results)]
    predictions = evaluation.predictions[result.method, result.calibrated]
    count = predictions[""].mean.shape[-1]
    classes = data.classes if data is not None and len(data.classes) == count else tuple(map(str, range(count)))
    samples = Samples(predictions[""], classes, data, as_numpy(made.labels))
    far = {name: Samples.ood(predictions[name], classes, made.ood.get(name), name) for name in evaluation.ood}
    objections = [
        *made.objections,
        *against.of_classes(samples.labels, samples.said, classes),
        *against.of_members(as_numpy(samples.prediction.probs), samples.eu),
        *against.of_size(int((samples.said == samples.labels).sum()), len(samples.labels)),
    ]
    found = Findings(evaluation, result, samples, far, tuple(objections), each)
    if (ens := made.ensemble) is None:
        return found
    return replace(found, config=ens.config, records=ens.records, temperatures=ens.temperatures)


def _labels_of(data: Any) -> tuple[Any, Data | None]:
    """Labels, and the samples to show if there are any."""
    return (data.labels, data) if isinstance(data, Data) else (data, None)


def _are_class_numbers(labels: Any) -> bool:
    """Whether these are whole numbers (N,)."""
    values = as_numpy(labels)
    return values.ndim == 1 and values.dtype.kind in "iub"
