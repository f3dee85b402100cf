"""From an ensemble, modules or probabilities to all that a report tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credro.assess import (
    ENOUGH,
    UNKNOWN_CLASSES,
    Assessment,
    Say,
    are_modules,
    assess_probs,
    assess_sets,
    line_of,
)
from credro.data.adapt import as_data
from credro.data.base import Data
from credro.ensemble import Ensemble
from credro.methods import make
from credro.readouts import Prediction
from credro.report.page.findings import Findings, Story
from credro.report.page.numbers import as_numpy
from credro.report.page.objections import Objection, of_classes, of_members, of_size, of_unknown
from credro.report.page.prepare import prepare
from credro.report.page.samples import Samples

UNCHECKED = Objection(
    "Probabilities were given, and no run: whether it was trained on these samples, or an OOD set holds some of them, "
    "cannot be checked.",
    grave=False,
)


def gather(
    source: Ensemble | Any,
    data: Data | Any,
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
        raise ValueError(f"each must be at least 1, got {each}")
    if are_modules(source):
        data = as_data(data)
        source = Ensemble.of(source, data)
    if isinstance(source, Ensemble):
        return _of_ensemble(source, data, ood or {}, method, plain, name, each, say, seen)
    return _of_probs(source, data, ood or {}, method, name, each, say)


def _of_ensemble(
    ensemble: Ensemble,
    data: Any,
    ood: Mapping[str, Any],
    method: str | None,
    plain: bool,
    name: str | None,
    each: int,
    say: Say | None,
    seen: str,
) -> Findings:
    reader = ensemble.read_as(ensemble.method if method in (None, ensemble.method.name) else str(method))
    if plain:
        reader.temperatures = [1.0] * len(reader)
    if say is not None:
        say("looking for samples that were trained on")
    sets, objections = prepare(ensemble, data, ood, seen)
    assessment = assess_sets(ensemble, sets, name=name, say=say)
    if say is not None:
        say("writing the report")
    classes = ensemble.classes
    return _findings(
        assessment,
        reader.method.name,
        reader.calibrated,
        Samples(reader.predict(sets.known), classes, sets.known, as_numpy(sets.known.labels)),
        {k: Samples.ood(reader.predict(v), classes, v, k) for k, v in sets.ood.items()},
        [*objections, *map(Objection, assessment.warnings)],
        Story(None if ensemble.run is None else ensemble.run.config(), ensemble.records, ensemble.temperatures),
        each,
    )


def _of_probs(
    probs: Any,
    data: Data | Any,
    ood: Mapping[str, Any],
    method: str | None,
    name: str | None,
    each: int,
    say: Say | None,
) -> Findings:
    labels, shown = (data.labels, data) if isinstance(data, Data) else (data, None)
    probs, sets = torch.as_tensor(probs), {k: torch.as_tensor(v) for k, v in ood.items()}
    objections = [UNCHECKED]
    names: tuple[str, ...] = ()
    pictures: dict[str, Data] = {}
    if (
        probs.ndim == 3 and _are_numbers(labels) and len(labels) == probs.shape[1]
    ):  # else assess_probs says what is wrong
        truth = torch.as_tensor(labels)
        names = shown.classes if shown is not None and len(shown.classes) == probs.shape[2] else ()
        strange = (truth < 0) | (truth >= probs.shape[2])
        count, title = int(strange.sum()), UNKNOWN_CLASSES
        if count == len(truth):
            raise ValueError(f"labels must be class numbers from 0 to {probs.shape[2] - 1}, got none that is")
        if count:
            out, kept = strange.nonzero()[:, 0], (~strange).nonzero()[:, 0]
            if count >= ENOUGH:
                if title in sets:
                    raise ValueError(f"an OOD set cannot be called {title!r}: samples of the ID set are")
                sets[title] = probs[:, out]
                pictures = {} if shown is None else {title: shown.subset(out)}
            objections += of_unknown(count, len(truth), [], title if count >= ENOUGH else None)
            probs, labels, shown = probs[:, kept], truth[kept], None if shown is None else shown.subset(kept)
    assessment = assess_probs(probs, labels, sets, name=name or "probabilities", say=say)
    if method is not None and method not in (known := [line.method for line in assessment.lines]):
        raise ValueError(f"method must be one of {', '.join(known)} for probabilities, got {method!r}")
    chosen = make(method or "crewra")
    names = names or tuple(map(str, range(probs.shape[2])))
    return _findings(
        assessment,
        chosen.name,
        False,
        Samples(chosen.readout(probs), names, shown, as_numpy(torch.as_tensor(labels))),
        {k: Samples.ood(chosen.readout(v), names, pictures.get(k), k) for k, v in sets.items()},
        objections,
        Story(),
        each,
    )


def _are_numbers(labels: Any) -> bool:
    values = labels if isinstance(labels, Tensor) else np.asarray(labels)
    return values.ndim == 1 and (
        not values.is_floating_point() if isinstance(values, Tensor) else values.dtype.kind in "iub"
    )


def _findings(
    assessment: Assessment,
    method: str,
    calibrated: bool,
    samples: Samples,
    ood: Mapping[str, Samples],
    objections: Sequence[Objection],
    story: Story,
    each: int,
) -> Findings:
    prediction: Prediction = samples.prediction
    try:
        line = assessment.line(method, calibrated)
    except KeyError:  # a method of the user's own
        far = {k: s.prediction for k, s in ood.items()}
        line = line_of(method, calibrated, prediction, torch.as_tensor(samples.labels), far)
        assessment = replace(assessment, lines=(*assessment.lines, line))
    said, truth = samples.mean.argmax(1), samples.labels
    against = [
        *objections,
        *of_classes(truth, said, samples.classes),
        *of_members(as_numpy(prediction.probs), samples.eu),
        *of_size(int((said == truth).sum()), len(truth)),
    ]
    return Findings(assessment, line, samples, dict(ood), tuple(against), story, each)
