"""What every network checks about the size of its input and output."""

from __future__ import annotations

from collections.abc import Sequence


def check_classes(classes: int) -> int:
    """Number of outputs, at least 1."""
    if classes < 1:
        raise ValueError(f"classes must be at least 1, got {classes}")
    return int(classes)


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Shape of one sample, without the batch: positive whole numbers."""
    if not shape or any(int(n) != n or n < 1 for n in shape):
        raise ValueError(f"shape must be the positive whole numbers of one sample, such as (3, 32, 32), got {shape}")
    return tuple(int(n) for n in shape)


def check_image(shape: Sequence[int], least: int) -> tuple[int, int, int]:
    """``(channels, height, width)`` with both sides at least ``least`` pixels."""
    if len(shape) != 3:
        hint = "; grey images have one channel: x[:, None]" if len(shape) == 2 else ""
        raise ValueError(f"shape must be (channels, height, width), got {tuple(shape)}{hint}")
    channels, height, width = check_shape(shape)
    if min(height, width) < least:
        last = width in (1, 3, 4) and min(channels, height) >= least
        hint = "; channels come first: x.transpose(0, 3, 1, 2) of an array, x.permute(0, 3, 1, 2) of a tensor" * last
        raise ValueError(f"shape must be at least {least}x{least} pixels for this network, got {tuple(shape)}{hint}")
    return channels, height, width
