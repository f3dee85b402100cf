"""A user's own ``.npz``: samples, labels and, where there are any, groups, names and splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from credro._names import Argument, ArgumentError, Message
from credro.data.base import Array, Data
from credro.data.classes import Classes
from credro.data.errors import DataError
from credro.data.readers._labels import Ask, Labels, read_groups, read_labels
from credro.data.readers._marks import Taken, take
from credro.data.readers._missing import Holes, Missing, Rule, check_finite, missing_note, rule
from credro.data.readers._stored import Stored, array_names, find, read_arrays
from credro.data.spec import Column, DataSpec, given


@dataclass(frozen=True, eq=False)
class Loaded:
    """What a file holds: the samples (N, ...) of the split that was taken; labels and groups (M,) of all splits."""

    samples: Tensor
    taken: Taken
    y: Array | None
    groups: Array | None
    total: int  # samples of all splits
    columns: tuple[str, ...] = ()  # a table: the names of its features

    def pick(self, values: Tensor) -> Tensor:
        """Of something (M,) of all samples, that of those taken."""
        return values if self.taken.rows is None else values[self.taken.rows]


def npz(
    path: Path,
    split: str | None,
    *,
    x: str | None = None,
    y: str | None = None,
    group: str | None = None,
    classes: Classes | None = None,
    layout: str | None = None,
    missing: Missing = None,
    task: str | None = None,
) -> Data:
    """Samples (N, F) are a table; (N, H, W), (N, H, W, 3) or (N, 3, H, W) images, kept as bytes if they are bytes.

    What was taken for what is said in ``Data.notes``.

    Args:
        path: arrays ``x`` and ``y`` (or images and labels, data and targets, ...); or such arrays for each split, as
            in ``train_images``, ``train_labels`` or ``x_train``, ``y_train``. An array ``classes`` names the classes,
            ``columns`` the features, and ``GROUP_names`` or ``GROUPs`` the groups.
        split: an array ``split`` marks splits; None takes train, or the whole of a file without splits; "all":
            everything.
        x, y, group: the names of the arrays, where they are not plain; group is "group" where the file has one.
        layout: "hwc" or "chw" where the shape does not tell where the channels are.
        classes, task: see ``readers.labels``.
        missing: see ``readers.missing``; of a table.
    """
    names = array_names(path)
    stored = find(path, names, x, y, group)
    named = classes
    if classes is None and "classes" in names:
        named = [str(name) for name in read_arrays(path, {"classes"})["classes"].tolist()]
    found = load_arrays(path, names, stored, split, layout, rule(missing))
    label = stored.y.get("")
    assert found.y is not None  # find has seen to that
    labels = read_labels(found.y, found.total, Ask(path, named, task, f"labels {label!r}" if label else "labels"))
    options = given(x=x, y=y, group=group, layout=layout, task=task, missing=missing, classes=classes)
    spec = DataSpec(str(path), found.taken.split, label, tuple(map(Column, found.columns)), options)
    labels = replace(labels, values=found.pick(labels.values))
    return array_data(path, names, stored, found, labels, spec)


def load_arrays(
    path: Path,
    names: Sequence[str],
    stored: Stored,
    split: str | None,
    layout: str | None,
    missing: Rule,
    unsaid: Sequence[str] = ("train",),
) -> Loaded:
    """The samples of a split; arrays of splits that were not asked for are not read."""
    marking = next((name for name in names if name.lower() == "split"), None) if not stored.by_split else None
    counted = stored.y or stored.x  # labels are small, and count the samples as well
    small = read_arrays(path, {*counted.values(), *stored.group.values(), *([marking] if marking else [])})
    lengths = {part: len(small[name]) for part, name in counted.items()}
    if stored.by_split:
        taken = take(
            path, [part for part, n in lengths.items() for _ in range(n)], sum(lengths.values()), split, unsaid
        )
        parts = list(stored.x) if taken.split == "all" else [str(taken.split)]
    else:
        parts = [""]
    arrays = read_arrays(path, {stored.x[part] for part in parts})
    pieces = [arrays[stored.x[part]] for part in parts]
    if len({piece.shape[1:] for piece in pieces}) > 1:
        raise DataError(path, f"its splits have samples of different shapes, {', '.join(str(p.shape) for p in pieces)}")
    for part, piece in zip(parts, pieces, strict=True):
        if stored.by_split and len(piece) != lengths[part]:
            raise DataError(path, f"{len(piece)} samples in {stored.x[part]!r}, but {lengths[part]} labels")
    samples = as_samples(path, pieces[0] if len(pieces) == 1 else np.concatenate(pieces), layout)
    if not stored.by_split:
        taken = take(path, small[marking].tolist() if marking else None, len(samples), split, unsaid)
    columns = _columns(path, names, samples)
    if columns:
        for value in missing.numbers:
            samples[samples == value] = float("nan")
        check_finite(path, samples, columns, "error" if missing.refused else None)
    elif (bad := ~samples.isfinite().flatten(1).all(1)).any():
        raise DataError(path, f"image {int(bad.int().argmax())} holds values that are not finite")
    total = sum(lengths.values()) if stored.by_split else len(samples)
    if not stored.by_split and taken.rows is not None:
        samples = samples[taken.rows]
    y = _joined([small[name] for name in stored.y.values()]) if stored.y else None
    groups = _joined([small[name] for name in stored.group.values()]) if stored.group else None
    return Loaded(samples, taken, y, groups, total, columns)


def array_data(path: Path, names: Sequence[str], stored: Stored, found: Loaded, labels: Labels, spec: DataSpec) -> Data:
    """What was found, with the labels (N,) of the samples that were taken, and notes on all of it."""
    shape, groups = tuple(found.samples.shape[1:]), _groups(path, names, stored, found)
    data = Data(path.stem, found.samples, labels.values, shape, labels.classes, *groups, columns=found.columns)
    notes = (*found.taken.notes, *stored.notes, *labels.notes, *_sample_notes(found))
    return replace(data, spec=spec, notes=notes)


def _sample_notes(found: Loaded) -> tuple[str, ...]:
    """Sentences on the samples: how many features, and what is missing; none on images."""
    if not found.columns:
        return ()
    holes = map(Holes, found.columns, found.samples.isnan().sum(0).tolist())
    return f"features: {len(found.columns)} numbers", *missing_note(list(holes))


def _joined(arrays: Sequence[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _columns(path: Path, names: Sequence[str], samples: Tensor) -> tuple[str, ...]:
    """The names of a table's features; none for images."""
    if samples.ndim != 2:
        return ()
    stored = read_arrays(path, {"columns"}).get("columns") if "columns" in names else None
    columns = tuple(map(str, range(samples.shape[1]) if stored is None else stored))
    if len(columns) != samples.shape[1]:
        raise DataError(path, f"{samples.shape[1]} features, but {len(columns)} names in 'columns'")
    return columns


def _groups(path: Path, names: Sequence[str], stored: Stored, found: Loaded) -> tuple[Tensor | None, tuple[str, ...]]:
    """The groups (N,) of the samples that were taken, and the names of all groups; None where there are none."""
    if found.groups is None:
        return None, ()
    called = next((n for n in (f"{stored.group.get('')}_names", f"{stored.group.get('')}s") if n in names), None)
    known = tuple(map(str, read_arrays(path, {called})[called])) if called else ()
    groups, group_names = read_groups(path, found.groups, found.total, known)
    return found.pick(groups), group_names


def as_samples(path: Path, x: Array, layout: str | None) -> Tensor:
    """Tables (N, F) as floats, images as (N, C, H, W)."""
    if layout not in (None, "hwc", "chw"):
        raise ArgumentError("layout", f"layout must be 'hwc', 'chw' or None, got {layout!r}")
    if x.ndim not in (2, 3, 4) or x.dtype.kind not in "uifb":
        raise DataError(path, f"x must be numbers with 2 to 4 dimensions, got {x.dtype} {x.shape}")
    if x.ndim == 2 or x.dtype != "uint8":
        x = x.astype("float32")
    samples = torch.from_numpy(x)
    if samples.ndim == 3:
        return samples[:, None]
    if samples.ndim == 4:
        first, last = samples.shape[1] in (1, 3), samples.shape[3] in (1, 3)
        if layout is None and first == last:
            unclear = f"x of shape {tuple(samples.shape)}: say where the channels are, "
            raise DataError(path, Message(unclear, Argument("layout", "chw"), " or 'hwc'"))
        if layout == "hwc" or (layout is None and last):
            return samples.permute(0, 3, 1, 2).contiguous()
    return samples
