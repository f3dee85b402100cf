"""Running the members over samples, once: what was computed for a ``Data`` is kept with the run."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from credro._names import ArgumentError
from credro._records import RecordError
from credro.data.adapt import as_data
from credro.data.base import Data
from credro.ensemble._samples import Samples, in_batches
from credro.training.features import check_kind, with_features
from credro.training.feed import Inputs, holds_whole_numbers
from credro.training.files import read_tensors, write_tensors
from credro.training.sizes import check_shape, saying_size
from credro.training.threads import side_by_side

if TYPE_CHECKING:
    from credro.ensemble._ensemble import Ensemble

WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers by their size in bytes."""


def member_scores(ensemble: Ensemble, x: Samples, *, batch_size: int, cache: bool, any_size: bool) -> Tensor:
    """What the members' networks give (M, N, ...) for ``x``, on the CPU; see ``Ensemble.scores``."""
    if ensemble.takes_texts and not isinstance(x, Data):
        x = as_data(x) if isinstance(x, tuple) else ensemble.read(x)
    if isinstance(x, Data) and ensemble.trunk is not None:
        check_kind(ensemble.trunk, x)
    if isinstance(x, Data) and (stored := (x.origin or x).shape) != ensemble.shape:  # a kept answer could hide it
        _check_shape(ensemble, stored, any_size)
    known = (
        isinstance(x, Data) and (x.in_memory or bool(x.paths) or x.texts is not None) and x.repeats()
    )  # others may differ each time
    same = known and cache and ensemble.run is not None and versions(ensemble.nets) == ensemble._as_loaded
    path = _cache_path(ensemble, x) if same else None
    if path is not None and (kept := _kept(path)) is not None:
        return kept
    features = ensemble.trunk is not None and isinstance(x, Data)
    if ensemble.trunk is not None and isinstance(x, Data):
        x = with_features(ensemble.trunk, x, cache=cache)
    # A trunk has all cores to itself, and its heads are done in no time; whole networks have a core each.
    together = nullcontext(_one_by_one) if ensemble.trunk is not None else side_by_side(len(ensemble), ensemble.device)
    with together as each:
        found = (_scores_of(ensemble, b, any_size, features) for b in in_batches(x, batch_size, ensemble.shape))
        parts = [torch.stack(each(scores_of, ensemble.nets)) for scores_of in found]
    if not parts:
        raise ArgumentError("x", "x is empty: there is nothing to predict")
    scores = torch.cat(parts, 1)
    if path is not None:
        try:
            write_tensors(path, {"scores": scores})
        except OSError as error:  # the answer is there; only the next call will take as long
            warnings.warn(f"the outputs could not be kept for another time: {error}", stacklevel=4)
    return scores


def first_outputs(nets: list[nn.Module], data: Data, where: torch.device) -> tuple[Inputs, list[Tensor]]:
    """How samples of ``data`` go into somebody's networks, and what those give for the first of them."""
    inputs, first = Inputs(data.shape, whole=holds_whole_numbers(data)), data.batch(torch.tensor([0])).to(where)
    try:
        return inputs, _outputs(nets, inputs(first))
    except RuntimeError:
        if not inputs.whole:
            raise
    inputs = Inputs(data.shape)  # no tokens, then, but numbers that happen to be whole
    return inputs, _outputs(nets, inputs(first))


def versions(nets: Iterable[nn.Module]) -> tuple[tuple[int, int, int], ...]:
    """Changes when a weight is exchanged or written to: networks that were changed are not those on disk any more.

    torch's own count knows nothing of ``weight.data.mul_(2)``, so the bits are added up as well: milliseconds.
    """
    tensors = (t for net in nets for t in net.state_dict(keep_vars=True).values() if isinstance(t, Tensor))
    return tuple((id(t), t._version, _bits(t.detach())) for t in tensors)


def _bits(t: Tensor) -> int:
    if t.layout is not torch.strided:
        return 0
    whole = torch.view_as_real(t) if t.is_complex() else t
    return int(whole.view(WHOLE[whole.element_size()]).sum())


def _one_by_one(scores_of: Callable[[nn.Module], Tensor], nets: Iterable[nn.Module]) -> list[Tensor]:
    return [scores_of(net) for net in nets]


def _outputs(nets: Iterable[nn.Module], x: Tensor) -> list[Tensor]:
    with torch.inference_mode():
        return [net(x) for net in nets]


def _kept(path: Path) -> Tensor | None:
    """What an earlier call has computed; a damaged file is no answer, and is made anew."""
    if not path.exists():
        return None
    try:
        return read_tensors(path)[0]["scores"]
    except (RecordError, KeyError) as error:
        warnings.warn(f"outputs that were kept are damaged and are computed anew: {error}", stacklevel=5)
        return None


def _cache_path(ensemble: Ensemble, data: Data) -> Path:
    """A file named after all that decides the outputs: another set, other weights or another head never meet it."""
    assert ensemble.run is not None
    method = ensemble.method.head.config()
    parts: dict[str, object] = {"weights": ensemble.weights, "head": method, "inputs": ensemble.inputs.to_json()}
    if ensemble.trunk is not None:
        parts["trunk"] = ensemble.trunk.digest
    made_by = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return ensemble.run.folder / "predictions" / f"{data.fingerprint()}-{made_by}.safetensors"


def _check_shape(ensemble: Ensemble, shape: tuple[int, ...], any_size: bool) -> None:
    config, trunk = ensemble.config, ensemble.trunk
    if trunk is not None and len(shape) == len(ensemble.shape) == 3 and trunk.preprocessing.size is not None:
        return  # it resizes images
    check_shape(shape, ensemble.shape, any_size, None if config is None or trunk is not None else config.network.name)


def _scores_of(ensemble: Ensemble, batch: Tensor, any_size: bool, features: bool) -> Callable[[nn.Module], Tensor]:
    """What gives one member's scores of a batch (B, ...), on the CPU. The trunk runs here, once.

    features: whether the batch has been through it.
    """
    if ensemble.trunk is not None and not features:
        if (stored := tuple(batch.shape[1:])) != ensemble.shape:
            _check_shape(ensemble, stored, any_size)
        batch = ensemble.trunk.features(batch)
    shape, inputs, head = tuple(batch.shape[1:]), ensemble.inputs, ensemble.method.head
    if shape != inputs.shape:
        _check_shape(ensemble, shape, any_size)
    strange = batch.isinf() if inputs.fills else ~batch.isfinite()
    if batch.is_floating_point() and bool(strange.any()):
        bad = int(strange.flatten(1).any(1).nonzero()[0])
        what = "infinite" if inputs.fills else "NaN or infinite"
        raise ArgumentError("x", f"x is {what} in sample {bad} of a batch of {len(batch)}")
    x = inputs(batch.to(ensemble.device))

    @torch.inference_mode()
    def scores(net: nn.Module) -> Tensor:
        return head.scores(net, x).float().cpu()

    return scores if shape == inputs.shape else saying_size(scores, shape)
