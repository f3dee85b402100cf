"""Trunks: any frozen backbone in front of the members, which are then small heads on its features.

``credro.fit(credro.on("efficientnet-lite0"), data)`` computes the features of all samples once and trains M heads
on them; at prediction the trunk runs once and the heads follow. A trunk is any module that gives features (B, F), a map
(B, F, H, W), which is pooled, or an output of the transformers library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from credro._names import ArgumentError, one_of
from credro._records import Record
from credro.data.augment import Augmentation
from credro.data.conform import INTERPOLATIONS, fit_images
from credro.data.fields import Batch, Field, Fields, call, listed, split

if TYPE_CHECKING:
    from credro.nets.tail import Cut

POOLS = ("auto", "mean", "cls", "pooler_output")
"""How what a backbone gives becomes one row of features: "auto" takes the mean of a map, and of an output of the
transformers library its ``pooler_output`` where there is one, else the mean of the tokens."""
AT_ONCE = 16
"""Samples that go through a trunk together: more of them leave a CPU's cache (measured: 16 take 0.75 of 64)."""
MASK = "attention_mask"
"""The field that tells tokens from padding."""
HEADS = {"mlp": "mlp-256", "linear": "linear"}
"""Names of heads, and the networks of credro's own that they are."""


@dataclass(frozen=True)
class Preprocessing(Record):
    """What samples go through before the trunk: it belongs to the trunk, and is kept with the run.

    size: (height, width) that images are resized to; None leaves them as they are. mean, std: a number per channel, of
    images in [0, 1]; empty: images are scaled to [0, 1] and no more. interpolation: how they are resized.
    """

    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        """Check the numbers."""
        one_of("interpolation", self.interpolation, INTERPOLATIONS)
        if len(self.mean) != len(self.std) or any(not s > 0 for s in self.std):
            raise ArgumentError("std", f"std must be as many positive numbers as mean, got {self.mean} and {self.std}")
        if self.size is not None and min(self.size) < 1:
            raise ArgumentError("size", f"size must be (height, width), both positive, got {self.size}")

    def __call__(self, x: Tensor) -> Tensor:
        """Stored samples (B, ...) to what the backbone takes; grey images get as many channels as ``mean`` has."""
        if x.ndim == 4:
            x = fit_images(x, (len(self.mean) or x.shape[1], *(self.size or x.shape[-2:])), self.interpolation)
        if x.dtype == torch.uint8:
            x = x.float() / 255
        if self.mean:
            at = (len(self.mean), *[1] * (x.ndim - 2))
            x = (x - x.new_tensor(self.mean).view(at)) / x.new_tensor(self.std).view(at)
        return x


@dataclass(frozen=True)
class TrunkRecord(Record):
    """What a run keeps of its trunk. address: the name or path it came from; empty for a module of the user's own.

    digest: of its weights, preprocessing and pooling. features: F. shape: of the samples, as they are stored.
    unfreeze: its layers of which members have copies of their own. head: the name of what follows those, if it has one.
    views, augment: how many of each sample were trained on, and what made them.
    """

    address: str
    digest: str
    features: int
    shape: tuple[int, ...]
    preprocessing: Preprocessing
    pool: str
    unfreeze: str = ""
    head: str = ""
    views: int = 1
    augment: str = "none"
    fields: tuple[Field, ...] = ()  # of samples of several tensors
    texts: bool = False  # it takes texts ...
    max_length: int = 0  # ... of which so many tokens; 0: all


@dataclass(frozen=True, eq=False)
class Trunk:
    """A frozen backbone and its preprocessing. address: where it can be opened again (``credro.nets.trunks``)."""

    module: nn.Module
    preprocessing: Preprocessing = Preprocessing()
    pool: str = "auto"
    address: str = ""
    content: str = ""  # digest of what the module's state does not hold, such as an ONNX file
    _digest: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    takes_texts: ClassVar[bool] = False  # see ``credro.nets.texts``

    def __post_init__(self) -> None:
        """It is only ever read."""
        one_of("pool", self.pool, (*POOLS, "none"))  # "none": a part of a trunk (``credro.nets.tail``)
        self.module.eval().requires_grad_(False)

    @property
    def digest(self) -> str:
        """Of all that decides its features. Computed anew when a weight was exchanged or written to."""
        now = tuple((id(t), t._version) for t in self.module.state_dict(keep_vars=True).values())
        if self._digest.get("of") != now:
            self._digest.update(of=now, digest=self._computed())
        return str(self._digest["digest"])

    def _computed(self) -> str:
        prepared = self.preprocessing.to_json()
        if prepared["interpolation"] == "bilinear":  # runs of before have this digest
            del prepared["interpolation"]
        found = hashlib.sha256(f"{self.content} {prepared} {self.pool}".encode())
        for name, t in sorted(self.module.state_dict().items()):
            found.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
            found.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data if t.numel() else b"")
        return found.hexdigest()

    def features(self, x: Batch) -> Tensor:
        """Stored samples (B, *shape) to features (B, F), float32, on the CPU; so many at a time as a cache likes."""
        return torch.cat([self._features(part) for part in split(x, AT_ONCE)])

    @torch.inference_mode()
    def _features(self, x: Batch) -> Tensor:
        first = next(self.module.parameters(), None)
        stored = x.to(first.device) if first is not None else x
        given: Batch = stored if isinstance(stored, Fields) else self.preprocessing(stored)
        if isinstance(given, Tensor) and given.ndim == 4:
            given = given.contiguous(memory_format=torch.channels_last)
        try:
            output = call(self.module, given)
        except (RuntimeError, TypeError) as error:
            if isinstance(error, TypeError) and isinstance(given, Tensor):
                raise
            kind = listed(given.described()) if isinstance(given, Fields) else f"shape {tuple(given.shape[1:])}"
            raise ArgumentError("trunk", f"the trunk does not take samples of {kind}: {error}") from error
        mask = given.value.get(MASK) if isinstance(given, Fields) and isinstance(given.value, dict) else None
        return _pooled(output, self.pool, len(x), mask).float().cpu()

    def record(self, shape: Sequence[int], features: int, fields: tuple[Field, ...] = ()) -> TrunkRecord:
        """What a run keeps. shape, fields: of the samples."""
        record = TrunkRecord(self.address, self.digest, features, tuple(shape), self.preprocessing, self.pool)
        length = int(getattr(self.module, "max_length", None) or 0) if self.takes_texts else 0
        return replace(record, fields=fields, texts=self.takes_texts, max_length=length)


@dataclass(frozen=True, eq=False)
class OnTrunk:
    """Members that are heads on one frozen trunk: what ``credro.on`` gives and ``credro.fit`` takes."""

    trunk: Trunk
    head: str | Callable[[int, int], nn.Module] = "mlp"
    cut: Cut | None = None  # where a part of it is trained along
    views: int = 1
    augment: str | Augmentation = "none"  # what makes the views

    @property
    def front(self) -> Trunk:
        """What runs once for all members: the trunk, or the part of it that is frozen."""
        return self.trunk if self.cut is None else self.cut.front

    def network(self, features: int, classes: int) -> str | Callable[[], nn.Module]:
        """What ``fit`` takes as a member's network."""
        return HEADS[self.head] if isinstance(self.head, str) else partial(self.head, features, classes)


def _token_mean(tokens: Tensor, mask: Tensor | None) -> Tensor:
    """The mean (B, F) of tokens (B, T, F), of those that the mask (B, T) has; none has all."""
    if mask is None or mask.shape != tokens.shape[:2]:
        return tokens.mean(1)
    kept = mask.to(tokens.dtype)[..., None]
    return (tokens * kept).sum(1) / kept.sum(1).clamp(min=1)


def _pooled(output: Any, pool: str, samples: int, mask: Tensor | None = None) -> Tensor:
    """Whatever a backbone gives to (B, F). mask: (B, T), which tokens are no padding."""
    found: Any = output
    if pool == "none" and isinstance(output, Tensor) and output.ndim > 1 and len(output) == samples:
        return output
    if not isinstance(output, Tensor):
        pooler, tokens = (getattr(output, name, None) for name in ("pooler_output", "last_hidden_state"))
        if pool == "pooler_output" or (pool == "auto" and isinstance(pooler, Tensor)):
            found = pooler
        elif isinstance(tokens, Tensor):
            found = tokens if tokens.ndim == 4 else tokens[:, 0] if pool == "cls" else _token_mean(tokens, mask)
    elif pool == "cls" and output.ndim == 3:
        found = output[:, 0]
    elif output.ndim == 3:
        found = _token_mean(output, mask)
    if isinstance(found, Tensor) and found.ndim == 4:
        found = found.mean((-2, -1)) if min(found.shape[-2:]) > 1 or found.shape[-1] > 1 else found.flatten(1)
    if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != samples:
        got = tuple(found.shape) if isinstance(found, Tensor) else type(output).__name__
        raise ArgumentError(
            "trunk", f"the trunk must give features (B, F), a map (B, F, H, W) or tokens (B, T, F) with pool={pool!r}, "
            f"got {got} for {samples} samples",
        )  # fmt: skip
    return found
