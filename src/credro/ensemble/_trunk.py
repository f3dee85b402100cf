"""The trunk of a run: opened from its address, from what was saved with it, or as the user gives it, and checked."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from credro._names import ArgumentError
from credro.nets.texts import ngram_files
from credro.nets.trunk import Trunk, TrunkRecord
from credro.nets.trunks import NAMED, OnnxTrunk, Source, bare_trunk, open_trunk
from credro.training.files import read_tensors, write_json, write_tensors

WEIGHTS = "weights.safetensors"


def reopened(record: TrunkRecord, folder: Path, given: Source | None) -> Trunk:
    """The trunk that the run was trained on. given: as ``load(trunk=)`` has it; else what was saved, or the address."""
    saved = folder / "trunk"
    if given is None and not record.address and not saved.exists():
        raise ArgumentError("trunk", f"{folder} stands on a trunk of your own: give trunk, a module with its weights")
    source: Source = given if given is not None else _source(record, saved)
    length = record.max_length or None
    found = source if isinstance(source, Trunk) else open_trunk(source, pool=record.pool, max_length=length)
    found = replace(found, preprocessing=record.preprocessing, pool=record.pool)
    if (saved / WEIGHTS).is_file() and found.digest != record.digest:
        found.module.load_state_dict(read_tensors(saved / WEIGHTS)[0])
        found = replace(found)  # its digest is another now
    if found.digest != record.digest:
        raise ArgumentError(
            "trunk",
            f"the trunk {record.address or 'that was given'} is not the one that {folder} was trained on: its weights "
            f"or preprocessing differ (digest {found.digest[:12]}, the run has {record.digest[:12]})",
        )
    return found


def save_trunk(trunk: Trunk, folder: Path) -> None:
    """All that is needed to open it again, into the run's folder ``trunk``."""
    place = folder / "trunk"
    source = Path(trunk.address) if trunk.address else None
    if (ngrams := ngram_files(trunk)) is not None:
        write_json(place / "ngrams.json", ngrams)
    elif isinstance(trunk.module, OnnxTrunk):
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(trunk.module.path, place / "model.onnx")
    elif source is not None and source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        for file in (f for f in source.iterdir() if f.is_file()):  # a run may lie in a folder below
            shutil.copyfile(file, place / file.name)
    else:
        write_tensors(place / WEIGHTS, dict(trunk.module.state_dict()))


def _source(record: TrunkRecord, saved: Path) -> Source:
    name = record.address.partition(":")[0]
    if (saved / WEIGHTS).is_file() and name in NAMED:
        return bare_trunk(name, record.address)
    if (saved / "model.onnx").is_file():
        return saved / "model.onnx"
    if (saved / "config.json").is_file() or (saved / "ngrams.json").is_file():
        return saved
    return record.address
