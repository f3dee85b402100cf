"""A user's own ``.npz``: ``x``, ``y`` and, where there are any, groups and names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.data.base import Data
from credro.data.errors import DataError
from credro.data.readers.labels import check_missing, read_groups, read_labels


def npz(
    path: Path,
    split: str | None,
    *,
    x: str = "x",
    y: str = "y",
    group: str | None = None,
    classes: Sequence[str] | None = None,
    layout: str | None = None,
    missing: str = "error",
    task: str | None = None,
) -> Data:
    """``x`` (N, F) is a table; (N, H, W), (N, H, W, 3) or (N, 3, H, W) are images, kept as bytes if they are bytes.

    x, y, group: the names of the arrays; group is "group" where the file has one. An array ``classes`` names the
    classes, ``columns`` the features, and ``GROUP_names`` or ``GROUPs`` the groups. An array ``split`` of words
    says which split a sample belongs to; without one the file is one whole. layout: "hwc" or "chw" where the shape
    does not tell. missing, task, classes: see ``readers.labels``.
    """
    arrays = read_arrays(path)
    for option, key in (("x", x), ("y", y), ("group", group)):
        if key is not None and key not in arrays:
            raise DataError(path, f"has no array {key!r} ({option}=...); it has {', '.join(arrays)}")
    samples = as_samples(path, arrays[x], layout)
    count = len(samples)
    if classes is None and "classes" in arrays:
        classes = [str(name) for name in arrays["classes"].tolist()]
    labels, names = read_labels(path, arrays[y], count, classes, task)
    columns: tuple[str, ...] = ()
    if samples.ndim == 2:
        columns = tuple(map(str, arrays.get("columns", range(samples.shape[1]))))
        if len(columns) != samples.shape[1]:
            raise DataError(path, f"{samples.shape[1]} features, but {len(columns)} names in 'columns'")
        check_missing(path, samples, columns, missing)
    elif (bad := ~samples.isfinite().flatten(1).all(1)).any():
        raise DataError(path, f"image {int(bad.int().argmax())} holds values that are not finite")
    groups: Tensor | None = None
    group_names: tuple[str, ...] = ()
    group = group or ("group" if "group" in arrays else None)
    if group:
        called = arrays.get(f"{group}_names", arrays.get(f"{group}s"))
        groups, group_names = read_groups(path, arrays[group], count, () if called is None else tuple(map(str, called)))
    data = Data(path.stem, samples, labels, tuple(samples.shape[1:]), names, groups, group_names, columns=columns)
    return take_split(path, data, split, arrays.get("split"))


def take_split(path: Path, data: Data, split: str | None, marks: Any) -> Data:
    """The samples marked with ``split``; None and "all" take every one."""
    if split in (None, "all"):
        return data
    if marks is None:
        raise ValueError(
            f"split {split!r} of {path}: the file does not say which samples belong to which split; leave split out "
            f"and cut the data yourself, or mark each sample in an array or column called 'split'"
        )
    words = [str(mark) for mark in marks.tolist()]
    if len(words) != len(data):
        raise DataError(path, f"{len(data)} samples, but {len(words)} entries in 'split'")
    rows = [i for i, word in enumerate(words) if word == split]
    if not rows:
        raise ValueError(f"split of {path} must be one of {', '.join(sorted(set(words)))}, got {split!r}")
    return data.subset(rows)


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a ``.npz`` by name; an error that names the file where it is not a complete one."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # a broken file may raise anything; a stored pickle is refused as a ValueError
        raise DataError(path, f"not a complete .npz of plain arrays ({error})") from error


def as_samples(path: Path, x: Any, layout: str | None) -> Tensor:
    """Tables (N, F) as floats, images as (N, C, H, W)."""
    if layout not in (None, "hwc", "chw"):
        raise ValueError(f"layout must be 'hwc', 'chw' or None, got {layout!r}")
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
            raise DataError(
                path, f"x of shape {tuple(samples.shape)}: say where the channels are, layout='chw' or 'hwc'"
            )
        if layout == "hwc" or (layout is None and last):
            return samples.permute(0, 3, 1, 2).contiguous()
    return samples
