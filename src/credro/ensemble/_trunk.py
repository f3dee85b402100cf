"""The trunk of a run: what members on it are made of, and how it is opened again, saved and checked."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from credro._names import ArgumentError
from credro.data.base import Data
from credro.data.fields import listed
from credro.data.stats import channel_stats
from credro.nets.tail import Cut, Front
from credro.nets.texts import ngram_files
from credro.nets.trunk import AT_ONCE, HEADS, OnTrunk, Trunk, TrunkRecord
from credro.nets.trunks import NAMED, OnnxTrunk, Source, bare_trunk, open_trunk
from credro.training.features import with_features
from credro.training.files import read_tensors, write_json, write_tensors
from credro.training.job import MakeNet, count_classes
from credro.training.recipe import name_of
from credro.training.train import net_factory, spread
from credro.training.views import with_views, without_views

WEIGHTS = "weights.safetensors"


@dataclass(frozen=True, eq=False)
class Standing:
    """What is trained where members stand on a trunk: its features, what follows it, and what the run keeps of it.

    make_head: what builds a head of the user's own, for ``load``. notes: what the user should know.
    """

    data: Data
    watched: Data | None
    record: TrunkRecord
    make_net: str | MakeNet
    make_head: MakeNet | None
    notes: tuple[str, ...] = ()


def standing(on: OnTrunk, data: Data, watched: Data | None, *, tell: bool) -> Standing:
    """Compute the features of ``data`` and ``watched``, or find them; tell: say how far that is."""
    samples, classes = data.origin or data, count_classes(data)
    if (samples.fields or samples.texts is not None) and (on.cut is not None or on.views > 1):
        name, kind = "views" if on.cut is None else "unfreeze", listed(samples.fields) if samples.fields else "texts"
        raise ArgumentError(name, f"{name} is for samples of one tensor; these are {kind}")
    features = None
    if on.cut is not None and len(samples):  # before any work is done
        features = on.cut.check(samples.batch(torch.arange(min(2, len(samples)))))
    data = with_views(on.front, data, on.views, on.augment, progress=tell)
    if watched is not None:
        watched = without_views(with_features(on.front, watched, progress=tell))
    record = replace(
        on.trunk.record(samples.shape, features or data.shape[0], samples.fields),
        views=on.views,
        augment=on.augment if isinstance(on.augment, str) else name_of(on.augment),
    )
    if on.cut is None or features is None:
        made = on.network(data.shape[0], classes)
        return Standing(data, watched, record, made, None if isinstance(made, str) else made)
    named = isinstance(on.head, str)
    record = replace(record, unfreeze=on.cut.unfreeze, head=on.head if isinstance(on.head, str) else "")
    inner = on.network(features, classes)
    make_head = net_factory(inner, classes, (features,), None if classes else spread(data))[0]
    tail = on.cut.factory(make_head, features, _feature_stats(on.cut, data))
    return Standing(data, watched, record, tail, None if named else make_head, (on.cut.note,))


def member_on(cut: Cut, record: TrunkRecord, classes: int, make_head: MakeNet | None) -> MakeNet:
    """What builds a member of a run on a partly frozen trunk; make_head: where its head is the user's own."""
    if make_head is None:  # of a regression the weights have mean and standard deviation
        make_head = net_factory(HEADS[record.head], classes, (record.features,), None if classes else (0.0, 1.0))[0]
    return cut.factory(make_head, record.features, None)


def _feature_stats(cut: Cut, data: Data) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation (F,) of what the pretrained layers make of ``data``."""
    found = torch.cat([cut.features(part) for x in data.chunks() for part in torch.split(x, AT_ONCE)])
    return channel_stats(replace(data, samples=found, shape=tuple(found.shape[1:])))


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
    trunk = trunk.whole if isinstance(trunk, Front) and trunk.whole is not None else trunk
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
