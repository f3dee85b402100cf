"""Images of one set brought to the shape of another: resized without cropping, grey to colour, colour to grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from credro._names import ArgumentError
from credro.data.base import Data, Reader, changed_keys


def conform(data: Data, shape: Sequence[int]) -> Data:
    """The same samples with the shape (C, H, W); C is 1 or 3.

    What is held in memory is converted at once, what is read from files when it is read. The usual normalisation of
    the set is forgotten when the channels change: an OOD set is normalised like the set it is compared with.
    """
    wanted = _check(data, shape)
    if wanted == data.shape:
        return data
    if isinstance(data.samples, Tensor):
        held = data.samples
        samples: Tensor | Reader = torch.cat([fit_images(x, wanted) for x in (held[:0], *data.chunks())])
    else:
        assert callable(data.samples), "images are one tensor"
        samples = _Fitted(data.samples, wanted)
    if wanted[0] != data.shape[0]:
        data = replace(data, mean=(), std=())
    return replace(data, samples=samples, shape=wanted)


INTERPOLATIONS = ("bilinear", "bicubic", "nearest")
"""How images are resized: the first two with antialiasing, as Pillow does; "nearest" as Pillow's NEAREST."""


def fit_images(x: Tensor, shape: Sequence[int], interpolation: str = "bilinear") -> Tensor:
    """Images (B, C, H, W) to (B, *shape) in their dtype: as Pillow's ``convert``, then its ``resize``.

    Floats keep their range, whatever it is: nothing is clamped. Pixels of 8 bits are, where a cubic overshoots them.
    """
    channels, height, width = shape
    if channels == 1 and x.shape[1] == 3:
        x = grey(x)
    if tuple(x.shape[2:]) != (height, width) and len(x):
        smooth = {} if interpolation == "nearest" else {"antialias": True}
        mode = "nearest-exact" if interpolation == "nearest" else interpolation
        y = interpolate(x if x.dtype == torch.float64 else x.float(), (height, width), mode=mode, **smooth)
        x = y.to(x.dtype) if x.is_floating_point() else _whole(y, x.dtype)
    elif not len(x):
        x = x.new_empty((0, x.shape[1], height, width))
    return x.expand(-1, channels, -1, -1).contiguous()


def _whole(y: Tensor, dtype: torch.dtype) -> Tensor:
    kind = torch.iinfo(dtype)
    return y.round().clamp(kind.min, kind.max).to(dtype)


def grey(x: Tensor) -> Tensor:
    """Colour (B, 3, H, W) to luminance (B, 1, H, W): .299 red, .587 green, .114 blue (ITU-R 601), as Pillow."""
    if x.dtype == torch.uint8:  # Pillow's fixed-point arithmetic, bit for bit
        red, green, blue = x.int().unbind(1)
        return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).to(torch.uint8)[:, None]
    weights = torch.tensor([0.299, 0.587, 0.114], dtype=x.dtype, device=x.device)
    return torch.einsum("bchw,c->bhw", x, weights)[:, None]


@dataclass(frozen=True, eq=False)
class _Fitted:
    read: Reader
    shape: tuple[int, ...]

    def __call__(self, index: Tensor) -> Tensor:
        return fit_images(self.read(index), self.shape)

    def sample_keys(self, index: Tensor) -> list[bytes] | None:
        return changed_keys(self.read, index, [("fitted", self.shape)] * len(index))


def _check(data: Data, shape: Sequence[int]) -> tuple[int, ...]:
    wanted = tuple(shape)
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        given = f"{data.name!r} has samples of {data.shape}"
        raise ArgumentError("data", f"conform is for images of 1 or 3 channels, but {given}")
    if len(wanted) != 3 or wanted[0] not in (1, 3) or min(wanted) < 1:
        raise ArgumentError("shape", f"shape must be (channels, height, width) with 1 or 3 channels, got {wanted}")
    return wanted
