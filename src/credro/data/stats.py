"""Mean and standard deviation of a set, for its normalisation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from credro._names import ArgumentError
from credro.data.base import Data


def channel_stats(data: Data) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel (images, on [0, 1]) or feature (tables), over all samples.

    One pass, chunk by chunk; NaN does not count. A constant, or one never seen, has standard deviation
    1, so that dividing by it is harmless.
    """
    if not data.shape or not len(data):
        given = f"{len(data)} samples of shape {data.shape}"
        raise ArgumentError("data", f"{data.name!r} has no channels or no samples: {given}")
    of_bytes = data.batch(torch.tensor([0])).dtype == torch.uint8
    mean, std = (_of_bytes if of_bytes else _of_floats)(_chunks(data), data.shape[0])
    std = torch.where(std > 0, std, torch.ones_like(std))
    return tuple(mean.tolist()), tuple(std.tolist())


def _chunks(data: Data) -> Iterator[Tensor]:
    """All samples as (channels, values)."""
    for x in data.chunks():
        yield x.transpose(0, 1).reshape(data.shape[0], -1).cpu()


def _of_bytes(chunks: Iterator[Tensor], channels: int) -> tuple[Tensor, Tensor]:
    """By counting each of the 256 values: exact, and faster than arithmetic on the pixels."""
    counts = torch.zeros(channels, 256, dtype=torch.float64)
    for x in chunks:
        counts += torch.stack([channel.bincount(minlength=256) for channel in x])
    fraction, values = counts / counts.sum(1, keepdim=True), torch.arange(256, dtype=torch.float64) / 255
    mean = fraction @ values
    return mean, (fraction * (values - mean[:, None]).square()).sum(1).sqrt()


def _of_floats(chunks: Iterator[Tensor], channels: int) -> tuple[Tensor, Tensor]:
    """Parts joined by Chan, Golub and LeVeque (1979): no large squares are subtracted from each other."""
    count, mean, squares = torch.zeros(3, channels, dtype=torch.float64)
    for x in chunks:
        x = x.double()
        seen = ~x.isnan()
        n = seen.sum(1)
        part = x.nansum(1) / n.clamp(min=1)
        spread = ((x - part[:, None]).square().where(seen, 0.0)).sum(1)
        total = (count + n).clamp(min=1)
        shift = part - mean
        squares = squares + spread + shift.square() * count * n / total
        mean = mean + shift * n / total
        count = count + n
    return mean, (squares / count.clamp(min=1)).sqrt()
