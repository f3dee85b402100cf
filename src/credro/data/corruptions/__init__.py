"""The 15 corruptions of CIFAR-10-C at 5 severities, for images of any size, grey or colour.

After Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations",
2019; written anew, batched and seeded. Severities and how they grow with the image: ``severities``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from credro._names import ArgumentError, one_of
from credro.data.base import Data, Reader, changed_keys
from credro.data.corruptions._blur import defocus_blur, glass_blur, motion_blur, zoom_blur
from credro.data.corruptions._digital import brightness, contrast, elastic_transform, jpeg_compression, pixelate
from credro.data.corruptions._noise import gaussian_noise, impulse_noise, shot_noise
from credro.data.corruptions._severities import SEVERITIES, Parameters
from credro.data.corruptions._tools import Draws, to_bytes
from credro.data.corruptions._weather import fog, frost, snow
from credro.data.fields import Fields

__all__ = ["CORRUPTIONS", "SEVERITIES", "corrupt", "corrupt_data"]

CORRUPTIONS: dict[str, Callable[[Tensor, Parameters, Draws], Tensor]] = {
    f.__name__: f
    for f in (
        gaussian_noise, shot_noise, impulse_noise, defocus_blur, glass_blur, motion_blur, zoom_blur, snow, frost, fog,
        brightness, contrast, elastic_transform, pixelate, jpeg_compression,
    )
}  # fmt: skip

_CHUNK = 2**18  # values worked on at once: they should fit the cache


def corrupt(x: Tensor, name: str, severity: int, *, seed: int = 0, first: int = 0) -> Tensor:
    """Images ``x`` (N, C, H, W), uint8, 1 or 3 channels, under corruption ``name`` at ``severity`` 1 to 5.

    first: the number of the first image in its set. What happens to an image depends on (seed, name, severity, its
    number) only, so a set may be corrupted at once, in batches, or one by one.
    """
    return _corrupt(x, name, severity, seed, torch.arange(first, first + len(x)))


def corrupt_data(data: Data, name: str, severity: int, seed: int = 0) -> Data:
    """``data`` with its images corrupted: at once when they are in memory, else as they are read."""
    samples = data.samples
    _check(name, severity)
    if isinstance(samples, Fields):
        raise ArgumentError("data", f"corruptions are for images, but {data.name!r} has samples of several tensors")
    corrupted = (
        corrupt(samples, name, severity, seed=seed)
        if isinstance(samples, Tensor)
        else _Corrupted(samples, name, severity, seed)
    )
    return replace(data, name=f"{data.name}-{name}-{severity}", samples=corrupted, paths=())


@dataclass(frozen=True, eq=False)
class _Corrupted:
    """Corrupted as they are read. A class and not a lambda: it must travel to other processes."""

    read: Reader
    name: str
    severity: int
    seed: int

    def __call__(self, index: Tensor) -> Tensor:
        return _corrupt(self.read(index), self.name, self.severity, self.seed, index)

    def sample_keys(self, index: Tensor) -> list[bytes] | None:
        done = (self.name, self.severity, SEVERITIES[self.name][self.severity - 1], self.seed)
        return changed_keys(self.read, index, [(*done, number) for number in index.tolist()])


def _check(name: str, severity: int) -> None:
    one_of("name", name, CORRUPTIONS)
    if severity not in range(1, 6):
        raise ArgumentError("severity", f"severity must be 1, 2, 3, 4 or 5, got {severity}")


def _corrupt(x: Tensor, name: str, severity: int, seed: int, numbers: Tensor) -> Tensor:
    _check(name, severity)
    if x.dtype != torch.uint8 or x.ndim != 4 or x.shape[1] not in (1, 3):
        raise ArgumentError(
            "x", f"x must be uint8 images of shape (N, 1 or 3, H, W), got {x.dtype} of shape {tuple(x.shape)}"
        )
    step = max(1, _CHUNK // max(1, x[:1].numel()))
    out = torch.empty_like(x)
    for begin in range(0, len(x), step):
        part = slice(begin, begin + step)
        draws = Draws(seed, name, severity, numbers[part].to(x.device))
        out[part] = to_bytes(CORRUPTIONS[name](x[part].double() / 255, SEVERITIES[name][severity - 1], draws))
    return out
