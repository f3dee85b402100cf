"""Which samples an ensemble takes: those of its own shape and, where that is asked for, images of other sizes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from credro.nets import make


def check_shape(shape: tuple[int, ...], wanted: tuple[int, ...], any_size: bool, name: str | None = None) -> None:
    """Raise unless samples of ``shape`` go in. any_size: images of any height and width do, with as many channels.

    name: of a network of credro's own, whose least size is known.
    """
    if shape == wanted:
        return
    images = len(wanted) == len(shape) == 3 and shape[0] == wanted[0]
    if not images:
        only = "; any_size=True is for images (channels, height, width) with as many channels" if any_size else ""
        raise ValueError(f"samples must have shape {wanted}, got {shape}{only}")
    if not any_size:
        raise ValueError(
            f"samples must have shape {wanted}, got {shape}: resize them, or give any_size=True if the network takes "
            f"images of other sizes"
        )
    if name is not None:
        with torch.device("meta"):  # nothing is computed: the network itself knows how small is too small
            make(name, classes=2, shape=shape)


def saying_size(scores: Callable[[nn.Module], Tensor], shape: tuple[int, ...]) -> Callable[[nn.Module], Tensor]:
    """``scores``, with an error that names the size where the network does not take it."""

    def given(net: nn.Module) -> Tensor:
        try:
            found = scores(net)
        except RuntimeError as error:
            raise ValueError(
                f"any_size=True: the network does not take images of shape {shape}; one that pools over all pixels "
                f"before its last layer does: {error}"
            ) from error
        if not bool(found.isfinite().all()):
            raise ValueError(f"any_size=True: the network's outputs are not finite for images of shape {shape}")
        return found

    return given
