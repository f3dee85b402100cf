"""What is kept of a trained ensemble: every sample's EU under every method, so that a table needs no network."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.credal.measures import interval_length
from credro.credal.sets import Box
from credro.ensemble import Ensemble
from credro.evaluation import accuracy, brier, ece, member_accuracy, nll
from credro.experiments.slsqp import gaps
from credro.experiments.spec import Cell
from credro.experiments.worlds import Sets
from credro.methods import Method
from credro.readouts import Prediction
from credro.training.checkpoint import read_json, read_tensors, write_json, write_tensors

TEST = "test"
"""The ID set's name among the sets of a reading."""


@dataclass(frozen=True)
class Reading:
    """One ensemble under one method.

    facts: method, world, variant, members, run, calibrated; accuracy, ECE and so on of the test set; the members'
    accuracy, and what they recorded when they were trained; seconds. eu, pil: set -> (N,); pil is empty without a
    credal set. correct: (N,) of the test set. slsqp: set -> (n,) EU of its first samples by SciPy's SLSQP.
    """

    facts: dict[str, Any]
    eu: dict[str, Tensor]
    pil: dict[str, Tensor]
    correct: Tensor
    slsqp: dict[str, Tensor]


def path_of(store: Path, cell: Cell, method: Method, calibrated: bool, sets: str) -> Path:
    """Where a reading is kept. sets: what it was read on."""
    own = {k: v for k, v in method.readout.config().items() if k not in ("readout", "measure")}
    name = "_".join([method.name, *(f"{k}-{v:g}" for k, v in own.items()), *(["calibrated"] if calibrated else [])])
    return store / "readings" / cell.key / sets / f"{name}.safetensors"


def load_reading(path: Path) -> Reading:
    """What ``keep`` wrote."""
    tensors, facts = read_tensors(path)
    parts: dict[str, dict[str, Tensor]] = {"eu": {}, "pil": {}, "slsqp": {}}
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        if kind in parts:
            parts[kind][name] = value
    return Reading(facts, parts["eu"], parts["pil"], tensors["correct"].bool(), parts["slsqp"])


def keep(path: Path, reading: Reading) -> Reading:
    """Write a reading whole."""
    tensors = {f"{kind}/{k}": v for kind in ("eu", "pil", "slsqp") for k, v in getattr(reading, kind).items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tensors(path, {**tensors, "correct": reading.correct.to(torch.uint8)}, reading.facts)
    return reading


def read(
    cell: Cell,
    ensemble: Ensemble,
    method: Method,
    calibrated: bool,
    scores: Mapping[str, Tensor],
    sets: Sets,
    slsqp: int,
) -> Reading:
    """Read the members' ``scores`` (set -> (M, N, ...)) by ``method``. slsqp: samples per set measured by it too."""
    reader = ensemble.read_as(method)
    reader.temperatures = ensemble.temperatures if calibrated else [1.0] * len(ensemble)
    eu, pil, started = {}, {}, 0.0
    found: dict[str, Prediction] = {}
    for name, s in scores.items():
        begin = time.perf_counter()
        found[name] = method.readout(reader.probs(s))
        eu[name] = torch.as_tensor(found[name].epistemic)
        if name == TEST:
            started = time.perf_counter() - begin
        credal = found[name].set
        if credal is not None:
            pil[name] = torch.as_tensor(interval_length(credal))
    test, labels = found[TEST], sets.test.labels
    per_member = member_accuracy(test.probs, labels)
    facts = {
        "method": method.name,
        "world": cell.world.name,
        "variant": cell.variant.label,
        "members": cell.members,
        "run": cell.seed,
        "calibrated": calibrated,
        "accuracy": accuracy(test.label, labels),
        "ece": ece(test.mean, labels, 10),
        "nll": nll(test.mean, labels),
        "brier": brier(test.mean, labels),
        "member_accuracy": [float(a) for a in per_member],
        "records": ensemble.records,
        "temperatures": list(reader.temperatures),
        "samples": len(labels),
        "uq_seconds": started,
    }
    by_slsqp = {k: gaps(p.set, slsqp) for k, p in found.items() if slsqp and isinstance(p.set, Box)}
    seconds = {k: v[1] for k, v in by_slsqp.items()}
    facts["slsqp_seconds"] = seconds.get(TEST)
    return Reading(facts, eu, pil, test.label == labels, {k: v[0] for k, v in by_slsqp.items()})


def timed_scores(ensemble: Ensemble, sets: Sets, folder: Path) -> dict[str, Tensor]:
    """The members' scores of every set. How long the test set took is kept beside the run, the first time."""
    begin = time.perf_counter()
    scores = {TEST: ensemble.scores(sets.test)}
    note = folder / "seconds.json"
    if not note.exists():
        write_json(note, {"predict": time.perf_counter() - begin, "samples": len(sets.test)})
    return scores | {name: ensemble.scores(read_set()) for name, read_set in sets.ood.items()}


def prediction_seconds(folder: Path) -> float | None:
    """What ``timed_scores`` noted."""
    note = folder / "seconds.json"
    return float(read_json(note)["predict"]) if note.exists() else None
