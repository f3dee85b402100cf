"""Where runs and results are kept, and how it is told whether one that is there is the one that is wanted.

Names on disk end in a hash of the definition, so that a benchmark that is defined anew gets folders of its own. A
result has a key, a hash of all that made it, the content of the data included; its members' records have the digests
of their weights, and its file a checksum of all it holds.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from credro._records import RecordError
from credro.experiments._benchmark import BenchmarkData
from credro.experiments.results import Facts, Result
from credro.experiments.spec import Cell
from credro.methods import TRAINING, Method
from credro.training.files import read_tensors, write_tensors
from credro.training.run import Run

FORMAT = 1
"""Of results. It counts up with every change that makes older ones wrong, such as one of a measure or a corruption."""
_SETS = ("eu", "pil", "slsqp")


def run_folder(out: Path, cell: Cell, data: BenchmarkData) -> Path:
    """Of the cell's ensemble: benchmark, kinds of choices, what is changed of them, members, run, and the hash."""
    usual, method = Method(), cell.methods[0]
    shown = [w for w in TRAINING if w == "risk" or getattr(method, w) != getattr(usual, w)]
    parts = [cell.benchmark.name, "-".join(getattr(method, w).kind for w in shown)]
    for choice in (getattr(method, w) for w in shown):
        default = {f.name: f.default for f in fields(choice)}
        parts += [f"{k}-{v}" for k, v in choice.options().items() if v != default[k]]
    parts += [f"{k}-{v}" for k, v in cell.variant.changes.items() if v != 1.0]
    parts += [f"noise-{cell.variant.noise:g}"] if cell.variant.noise else []
    name = "_".join([*parts, f"m{cell.members}", f"run{cell.seed}"])
    return out / "runs" / f"{name}-{_hash(_training(cell, data))[:8]}"


def result_path(out: Path, run: Path, cell: Cell, method: Method, calibrated: bool, slsqp: int) -> Path:
    """Of the result of reading that run by ``method``."""
    measured = _hash([cell.benchmark.measured_on(), method.config(), slsqp])[:8]
    return out / "results" / run.name / f"{method.name}{'_calibrated' if calibrated else ''}-{measured}.safetensors"


def result_key(cell: Cell, data: BenchmarkData, method: Method, calibrated: bool, slsqp: int) -> str:
    """A hash of all that makes the result, but for the weights, which are the outcome of it."""
    measured = [cell.benchmark.measured_on(), method.config(), calibrated, slsqp, data.fingerprints]
    return _hash([FORMAT, _training(cell, data), measured])


def keep(path: Path, key: str, result: Result) -> None:
    """Write a result whole, with a checksum."""
    tensors = {f"{kind}/{name}": v for kind in _SETS for name, v in getattr(result, kind).items()}
    write_tensors(path, {**tensors, "correct": result.correct.byte()}, {"key": key, "facts": result.to_json()})


def kept(path: Path, key: str, run: Path, variant: str) -> Result:
    """What ``keep`` wrote, under the variant's label in the experiment at hand.

    Raises:
        RecordError: it is damaged, or not made of what ``key`` stands for, or of other weights than the run has.
    """
    tensors, content = read_tensors(path)
    if content.get("key") != key:
        raise RecordError(path, "key", "is another: it was made of other data, or by another version")
    facts, there = Facts.from_json(content.get("facts"), path, "facts"), Run(run)
    for record in facts.records:
        if there.is_done(record.member) and there.record(record.member).weights != record.weights:
            raise RecordError(path, f"facts.records[{record.member}].weights", f"are not those of {run}")
    sets = {
        kind: {name.partition("/")[2]: v for name, v in tensors.items() if name.startswith(f"{kind}/")}
        for kind in _SETS
    }
    known: dict[str, Any] = {f.name: getattr(facts, f.name) for f in fields(Facts)}
    return Result(**{**known, **sets, "variant": variant}, correct=tensors["correct"].bool())


def _training(cell: Cell, data: BenchmarkData) -> list[Any]:
    """All that decides the weights, but for the executor."""
    made_of = {k: v for k, v in data.stored.items() if k != "test"}
    how = [cell.methods[0].training(), cell.members, cell.seed, cell.variant.noise]
    return [cell.benchmark.trained_on(), how, made_of]


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
