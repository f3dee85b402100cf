"""What the corruptions have in common: random numbers per sample, blurring, sampling, and rounding to bytes.

A sample must come out the same, bit for bit, in whatever batch it is. Vectorised floating-point code does not
promise that: the last digit may depend on where in memory a sample lies. Hence three habits. Random numbers are
integer hashes of (sample, position), exact everywhere. Everything is computed in float64, where such differences are
near 1e-15. And rounding to bytes decides 1e-7 beside the halves that averages of bytes often hit exactly.
"""

from __future__ import annotations

import math
import zlib

import torch
from torch import Tensor

REFERENCE = 32  # the image size that the severities are given for

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def spatial_scale(x: Tensor) -> float:
    """By how much lengths given for 32x32 grow for images (..., H, W)."""
    return max(1.0, min(x.shape[-2:]) / REFERENCE)


class Draws:
    """A stream of random numbers for each of N samples, by SplitMix64: hashes of a counter under the sample's key.

    The key depends on (seed, name, severity) and the sample's number, and nothing else.
    """

    def __init__(self, seed: int, name: str, severity: int, numbers: Tensor) -> None:
        """numbers: (N,) the samples' numbers in their set."""
        base = 0
        for part in (seed, zlib.crc32(name.encode()), severity):
            base = _mix_int((base + part + _GOLDEN) & _MASK)
        self.keys = _mix(_signed(base) + _mix(numbers.to(torch.int64) * _signed(_GOLDEN)))
        self.count = 0

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """(N, *shape) from [low, high), float64."""
        size = math.prod(shape)
        counter = torch.arange(self.count + 1, self.count + size + 1, device=self.keys.device)
        self.count += size
        bits = _mix(self.keys[:, None] + counter * _signed(_GOLDEN))
        unit = _shift(bits, 11).double() * 2.0**-53
        return (low + (high - low) * unit).view(-1, *shape)

    def normal(self, *shape: int) -> Tensor:
        """(N, *shape) standard normal, float64."""
        drawn: Tensor = torch.special.ndtri(self.uniform(*shape).clamp_(min=2.0**-54))
        return drawn

    def integers(self, high: int, *shape: int) -> Tensor:
        """(N, *shape) from 0..high-1, int64."""
        return (self.uniform(*shape) * high).long()


def to_bytes(x: Tensor) -> Tensor:
    """Floats, clipped to [0, 1], as uint8; halves go up, safely."""
    return (x.clamp(0, 1) * 255 + (0.5 + 1e-7)).floor().to(torch.uint8)


def mirrored(n: int, before: int, after: int, device: torch.device) -> Tensor:
    """The positions 0..n-1 with ``before`` and ``after`` mirrored at the ends, however far: 2 1 | 0 1 2 | 1 0."""
    period = max(1, 2 * (n - 1))
    i = torch.arange(-before, n + after, device=device).remainder(period)
    return torch.minimum(i, period - i)


def convolve(x: Tensor, kernel: Tensor) -> Tensor:
    """``x`` (N, C, H, W) blurred by odd-sized kernels (N or 1, 1, K, K), mirrored at the border.

    By FFT, so that wide kernels and one kernel per sample cost the same as any.
    """
    h, w = x.shape[-2:]
    size = kernel.shape[-1]
    r = size // 2
    padded = x[..., mirrored(h, r, r, x.device), :][..., mirrored(w, r, r, x.device)]
    whole = (h + 2 * r, w + 2 * r)
    spectrum = torch.fft.rfft2(padded) * torch.fft.rfft2(kernel, s=whole)
    blurred: Tensor = torch.fft.irfft2(spectrum, s=whole)
    return blurred[..., size - 1 : size - 1 + h, size - 1 : size - 1 + w]


def gaussian_kernel(sigma: float, radius: int, device: torch.device) -> Tensor:
    """(1, 1, K, K), K = 2 * radius + 1."""
    line = torch.exp(-0.5 * (torch.arange(-radius, radius + 1, device=device).double() / sigma) ** 2)
    line = line / line.sum()
    return torch.outer(line, line)[None, None]


def motion_kernel(angle: Tensor, sigma: float) -> Tensor:
    """(N, 1, K, K): a half Gaussian that trails from the centre in the direction ``angle`` (N,), in radians."""
    length = math.ceil(3 * sigma)
    step = torch.arange(length + 1, device=angle.device).double()
    weight = torch.exp(-0.5 * (step / sigma) ** 2)
    row = (length + (step * angle.sin()[:, None])).round().long()
    column = (length + (step * angle.cos()[:, None])).round().long()
    size = 2 * length + 1
    kernel = weight.new_zeros(len(angle), size * size)
    kernel.scatter_add_(1, row * size + column, (weight / weight.sum()).expand(len(angle), -1))
    return kernel.view(-1, 1, size, size)


def sample(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """``x`` (N, C, H, W) at real positions (N or 1, h, w) in pixels, bilinear, mirrored at the border: (N, C, h, w)."""
    h, w = x.shape[-2:]
    grid = torch.stack([(2 * columns + 1) / w - 1, (2 * rows + 1) / h - 1], -1).expand(len(x), -1, -1, -1)
    return torch.nn.functional.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def enlarge(x: Tensor, factor: float, size: tuple[int, int]) -> Tensor:
    """The middle of ``x`` (N, C, h, w), enlarged by ``factor``, bilinear, as (N, C, *size)."""
    if factor == 1 and x.shape[-2:] == size:
        return x
    rows, columns = (
        (torch.arange(n, device=x.device).double() - (n - 1) / 2) / factor + (m - 1) / 2
        for n, m in zip(size, x.shape[-2:], strict=True)
    )
    return sample(x, *(t[None] for t in torch.meshgrid(rows, columns, indexing="ij")))


def _signed(value: int) -> int:
    """The int64 with the bits of an unsigned 64-bit number."""
    return value - 2**64 if value >= 2**63 else value


def _shift(z: Tensor, bits: int) -> Tensor:
    """Unsigned shift to the right."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser; int64 products wrap around."""
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift(z, 31)


def _mix_int(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)
