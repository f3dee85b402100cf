"""Samples that no network can learn from: x or target is NaN or infinite."""

from __future__ import annotations

import torch
from torch import Tensor

from credro.data.base import CHUNK, Data
from credro.data.fields import Fields
from credro.training.feed import Inputs


def unsound(data: Data, inputs: Inputs, index: Tensor | None = None) -> str:
    """A sentence on the first sample whose x or target is not finite, and what to do; "" where all are.

    index: of the samples to look at (B,); all if not given. A missing value (NaN) of a table that is normalised by us
    is none: ``inputs`` puts the feature's mean in its place.
    """
    if isinstance(data.samples, Tensor) and not (data.samples.is_floating_point() or data.labels.is_floating_point()):
        return ""
    every = torch.arange(len(data)) if index is None else index
    for part in torch.split(every, CHUNK):
        x, labels = data.batch(part), data.labels[part.to(data.labels.device)]
        if found := _in_samples(x, part, data, inputs):
            return found
        if labels.is_floating_point() and not bool(torch.isfinite(labels).all()):
            row = int((~torch.isfinite(labels)).reshape(len(part), -1).any(1).nonzero()[0])
            return f"The target of sample {int(part[row])} is {_named(labels[row])}: leave such samples out"
    return ""


def _in_samples(x: Tensor | Fields, part: Tensor, data: Data, inputs: Inputs) -> str:
    if isinstance(x, Fields):
        return next((found for t in x.tensors if (found := _in_samples(t, part, data, inputs))), "")
    if not x.is_floating_point():
        return ""
    bad = torch.isinf(x) if inputs.fills else ~torch.isfinite(x)
    if not bool(bad.any()):
        return ""
    row = int(bad.flatten(1).any(1).nonzero()[0])
    place = int(bad[row].flatten().nonzero()[0])
    feature = f", column {data.columns[place]!r}" if len(data.columns) == x[0].numel() else f", value {place}"
    remedy = (
        "leave it empty (NaN) in the table, and the feature's mean takes its place"
        if inputs.fills
        else "leave such samples out, keep = np.isfinite(x).reshape(len(x), -1).all(1), or fill them, np.nan_to_num(x)"
    )
    return f"x is {_named(x[row].flatten()[place])} in sample {int(part[row])}{feature}: {remedy}"


def _named(value: Tensor) -> str:
    """The first of the values that is not finite, as one says it."""
    first = value.flatten()[~torch.isfinite(value.flatten())][0]
    return "NaN" if bool(torch.isnan(first)) else "infinite"
