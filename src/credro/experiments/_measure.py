"""From a trained ensemble to its results: the members run over each set once, every method reads the same scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from credro.credal.measures import interval_length
from credro.credal.sets import Box
from credro.ensemble import Ensemble
from credro.evaluation import result_of
from credro.experiments._benchmark import BenchmarkData
from credro.experiments.results import TEST, Result
from credro.experiments.slsqp import gaps
from credro.experiments.spec import Cell
from credro.methods import Method
from credro.metrics import member_accuracy
from credro.prediction import Prediction


def measure(
    cell: Cell, ensemble: Ensemble, data: BenchmarkData, wanted: Sequence[tuple[Method, bool]], slsqp: int = 0
) -> Iterator[Result]:
    """The results of these methods, each calibrated or not. slsqp: samples of each set that it measures as well."""
    begin = time.perf_counter()
    scores = {TEST: ensemble.scores(data.test, cache=False)}  # outputs that were kept would take no time
    seconds = time.perf_counter() - begin
    scores |= {name: ensemble.scores(ood.read()) for name, ood in data.ood.items()}
    for method, calibrated in wanted:
        reader = (ensemble if calibrated else ensemble.plain()).read_as(method)
        yield _read(cell, reader, calibrated, scores, data.test.labels, slsqp, seconds)


def _read(
    cell: Cell,
    reader: Ensemble,
    calibrated: bool,
    scores: Mapping[str, Tensor],
    labels: Tensor,
    slsqp: int,
    predict_seconds: float,
) -> Result:
    """scores: of each set (M, N, ...); labels: (N,) of the test set."""
    found: dict[str, Prediction] = {}
    uq_seconds: dict[str, float] = {}
    for name, part in scores.items():
        begin = time.perf_counter()
        found[name] = reader.predict_scores(part)
        found[name].epistemic  # noqa: B018 - computed when first asked for
        uq_seconds[name] = time.perf_counter() - begin
    by_slsqp = {name: gaps(p.set, slsqp) for name, p in found.items() if slsqp and isinstance(p.set, Box)}
    test, run = found[TEST], reader.run
    assert run is not None, "experiments keep their runs"
    of_test = result_of(reader.method.name, calibrated, test, labels, {})
    return Result(
        method=reader.method.name,
        benchmark=cell.benchmark.name,
        variant=cell.variant.label,
        members=cell.members,
        run=cell.seed,
        calibrated=calibrated,
        samples=len(labels),
        accuracy=of_test.accuracy,
        ece=of_test.ece,
        nll=of_test.nll,
        brier=of_test.brier,
        member_accuracy=tuple(map(float, member_accuracy(test.probs, labels))),
        temperatures=tuple(reader.temperatures),
        records=tuple(reader.records),
        weight_bytes=sum(run.weights(i).stat().st_size for i in range(cell.members)),
        predict_seconds=predict_seconds,
        uq_seconds=uq_seconds[TEST],
        slsqp_seconds=by_slsqp[TEST][1] if by_slsqp else None,
        eu={name: torch.as_tensor(p.epistemic) for name, p in found.items()},
        pil={name: torch.as_tensor(interval_length(p.set)) for name, p in found.items() if p.set is not None},
        correct=test.label == labels,
        slsqp={name: values for name, (values, _) in by_slsqp.items()},
    )
