"""Credal sets of class probabilities, a batch at a time: boxes of intervals and convex hulls of members.

Shapes: C classes come last, anything may stand in front. Members come first: ``probs`` is ``(M, ..., C)``.
What is given is checked once, here, so that everything downstream can trust it. Bounds and members are kept in
float64 whatever came in; numpy in gives numpy out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor

from credro.credal.arrays import Array, chunks, first_bad, give, to_tensor
from credro.credal.bounds import intersection, reachable
from credro.credal.simplex import distance_to_hull

MAX_VERTEX_CLASSES = 12


@dataclass(frozen=True, eq=False, init=False)
class Box:
    """All ``p`` with ``lower <= p <= upper`` and sum 1 (paper, Eq. 9). lower, upper: (..., C).

    The set must not be empty: ``sum(lower) <= 1 <= sum(upper)``. Sums that miss by rounding alone are put right.
    """

    _lower: Tensor = field(repr=False)
    _upper: Tensor = field(repr=False)
    _members: Tensor | None = field(repr=False)  # as given: only the mean needs them
    numpy: bool

    def __init__(self, lower: Any, upper: Any) -> None:
        """Check the bounds and keep them."""
        low, numpy = to_tensor(lower, "lower")
        high, numpy_high = to_tensor(upper, "upper")
        if low.shape != high.shape:
            raise ValueError(f"lower and upper must have one shape, got {tuple(low.shape)} and {tuple(high.shape)}")
        slack = max(_slack(low), _slack(high))
        low, high = _finite(low, "lower"), _finite(high, "upper")
        if (bad := (low > high)).any():
            at = first_bad(bad)
            where = tuple(bad.nonzero()[0])
            raise ValueError(f"lower > upper at {at}: {low[where].item():.6g} > {high[where].item():.6g}")
        low = _scaled_to_one(low, low.sum(-1), slack, "lower", above=True)
        high = _scaled_to_one(high, high.sum(-1), slack, "upper", above=False)
        self._set(low, high, None, numpy and numpy_high)

    @classmethod
    def of(cls, probs: Any) -> Box:
        """The smallest box around the members: class-wise minimum and maximum (paper, Eq. 8). probs: (M, ..., C)."""
        return Hull(probs).box()

    @classmethod
    def _trusted(cls, lower: Tensor, upper: Tensor, members: Tensor | None, numpy: bool) -> Box:
        box = cls.__new__(cls)
        box._set(lower, upper, members, numpy)
        return box

    def _set(self, lower: Tensor, upper: Tensor, members: Tensor | None, numpy: bool) -> None:
        for name, value in (("_lower", lower), ("_upper", upper), ("_members", members), ("numpy", numpy)):
            object.__setattr__(self, name, value)

    @property
    def lower(self) -> Any:
        """Lower bounds (..., C)."""
        return give(self._lower, self.numpy)

    @property
    def upper(self) -> Any:
        """Upper bounds (..., C)."""
        return give(self._upper, self.numpy)

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """Both bounds as float64 tensors."""
        return self._lower, self._upper

    @property
    def width(self) -> Any:
        """``upper - lower`` (..., C)."""
        return give(self._upper - self._lower, self.numpy)

    @property
    def mean(self) -> Any:
        """The members' mean for a box ``of`` members, else the intersection probability. (..., C)."""
        mean = intersection(*self.bounds) if self._members is None else _normalised(self._members).mean(0)
        return give(mean, self.numpy)

    @property
    def shape(self) -> torch.Size:
        """``(..., C)``."""
        return self._lower.shape

    def __len__(self) -> int:
        """Samples along the first axis."""
        return self.shape[0]

    def take(self, index: Tensor) -> Box:
        """The sets of the samples ``index`` (B,) along the first axis."""
        members = None if self._members is None else self._members.index_select(1, index.to(self._members.device))
        lower, upper = (bound.index_select(0, index.to(bound.device)) for bound in self.bounds)
        return Box._trusted(lower, upper, members, self.numpy)

    def tighten(self) -> Box:
        """The same set under reachable bounds: every bound is attained by some ``p`` of the set."""
        return Box._trusted(*reachable(*self.bounds), self._members, self.numpy)

    def contains(self, p: Array, *, tol: float = 1e-9) -> Any:
        """Whether ``p`` (..., C) lies in the set, within ``tol`` in every coordinate: boolean (...)."""
        point, _ = to_tensor(p, "p")
        point = point.to(self._lower)
        low, high = self.bounds
        inside = ((point >= low - tol) & (point <= high + tol)).all(-1) & (
            (point.sum(-1) - 1).abs() <= tol * max(1, low.shape[-1])
        )
        return give(inside, self.numpy)

    def vertices(self) -> list[Any]:
        """The corner points of each sample's set, (V, C) each: one list entry per sample (flattened). C at most 12."""
        low, high = (b.reshape(-1, b.shape[-1]) for b in self.bounds)
        if low.shape[-1] > MAX_VERTEX_CLASSES:
            raise ValueError(
                f"vertices are enumerated for at most {MAX_VERTEX_CLASSES} classes (their number can grow as 2^C), "
                f"got C = {low.shape[-1]}"
            )
        return [give(_box_vertices(a, b), self.numpy) for a, b in zip(low, high, strict=True)]


@dataclass(frozen=True, eq=False, init=False)
class Hull:
    """All convex combinations of the members (paper, Eq. 10). probs: (M, ..., C)."""

    _probs: Tensor = field(repr=False)  # as given, so that a large float32 ensemble is not held twice
    numpy: bool

    def __init__(self, probs: Any) -> None:
        """Check the members and keep them."""
        tensor, numpy = to_tensor(probs, "probs")
        _check_members(tensor)
        object.__setattr__(self, "_probs", tensor)
        object.__setattr__(self, "numpy", numpy)

    @property
    def members(self) -> Tensor:
        """The members (M, ..., C) as a float64 tensor, each summing to 1."""
        return _normalised(self._probs)

    @property
    def count(self) -> int:
        """Number of members, M."""
        return len(self._probs)

    @property
    def device(self) -> torch.device:
        """Where the members are."""
        return self._probs.device

    def part(self, samples: slice) -> Tensor:
        """The members (M, n, C) of some of the samples, counted over all leading axes; float64."""
        return _normalised(_flat(self._probs)[:, samples])

    @property
    def probs(self) -> Any:
        """The members (M, ..., C), each summing to 1."""
        return give(self.members, self.numpy)

    @property
    def shape(self) -> torch.Size:
        """``(..., C)``."""
        return self._probs.shape[1:]

    def __len__(self) -> int:
        """Samples along the first axis."""
        return self.shape[0]

    @property
    def lower(self) -> Any:
        """Smallest probability of each class (..., C)."""
        return self.box().lower

    @property
    def upper(self) -> Any:
        """Largest probability of each class (..., C)."""
        return self.box().upper

    @property
    def width(self) -> Any:
        """``upper - lower`` (..., C)."""
        return self.box().width

    @property
    def mean(self) -> Any:
        """The members' mean (..., C)."""
        return give(self.members.mean(0), self.numpy)

    def box(self) -> Box:
        """The smallest box around the hull."""
        if self._probs.requires_grad:
            members = self.members
            return Box._trusted(members.amin(0), members.amax(0), self._probs, self.numpy)
        shape, flat = self.shape, _flat(self._probs)
        lower, upper = (torch.empty(flat.shape[1:], dtype=torch.float64, device=flat.device) for _ in range(2))
        for part in chunks(flat.shape[1], flat.shape[0] * flat.shape[2]):
            members = self.part(part)
            torch.amin(members, 0, out=lower[part])
            torch.amax(members, 0, out=upper[part])
        return Box._trusted(lower.reshape(shape), upper.reshape(shape), self._probs, self.numpy)

    def take(self, index: Tensor) -> Hull:
        """The sets of the samples ``index`` (B,) along the first axis."""
        hull = Hull.__new__(Hull)
        object.__setattr__(hull, "_probs", self._probs.index_select(1, index.to(self.device)))
        object.__setattr__(hull, "numpy", self.numpy)
        return hull

    def tighten(self) -> Hull:
        """A hull is tight already: itself."""
        return self

    def contains(self, p: Array, *, tol: float = 1e-9) -> Any:
        """Whether ``p`` (..., C) is within Euclidean distance ``tol`` of the hull: boolean (...)."""
        point, _ = to_tensor(p, "p")
        members = self.members.reshape(len(self._probs), -1, self.shape[-1]).transpose(0, 1)
        point = point.to(members).expand(self.shape).reshape(-1, self.shape[-1])
        return give((distance_to_hull(members, point) <= tol).reshape(self.shape[:-1]), self.numpy)

    def vertices(self) -> list[Any]:
        """The members of each sample, (M, C) each; those inside the hull of the others are not taken out."""
        return [give(p, self.numpy) for p in _flat(self.members).unbind(1)]


CredalSet: TypeAlias = Box | Hull


def _flat(probs: Tensor) -> Tensor:
    """(M, ..., C) as (M, N, C)."""
    return (
        probs.reshape(probs.shape[0], -1, probs.shape[-1])
        if probs.numel()
        else probs.new_zeros(len(probs), 0, probs.shape[-1])
    )


def _normalised(probs: Tensor) -> Tensor:
    probs = probs.to(torch.float64)
    return probs / probs.sum(-1, keepdim=True)


def _check_members(probs: Tensor) -> None:
    """Raise unless ``probs`` (M, ..., C) are probabilities whose sums miss 1 by no more than rounding."""
    if probs.ndim < 2:
        raise ValueError(f"probs must have shape (M, ..., C), members first and classes last, got {tuple(probs.shape)}")
    if probs.shape[0] == 0:
        raise ValueError(f"probs must have at least one member, got shape {tuple(probs.shape)}")
    if probs.shape[-1] == 0:
        raise ValueError(f"probs must have at least one class in its last axis, got shape {tuple(probs.shape)}")
    lead = probs.shape[1:-1]
    flat = _flat(probs.detach())
    for part in chunks(flat.shape[1], flat.shape[0] * flat.shape[2]):
        p = flat[:, part]
        total = p.sum(-1, dtype=torch.float64)
        bad = ~((total - 1).abs() <= _slack(probs)) | ~(p.amin(-1) >= 0)  # NaN fails both comparisons
        if bad.any():
            sample = int(bad.any(0).nonzero()[0])
            member = int(bad[:, sample].nonzero()[0])
            n = part.start + sample
            index = [int(i) for i in torch.unravel_index(torch.tensor(n), lead)]
            at = f"member {member}, sample {index}" if lead else f"member {member}"
            raise ValueError(_what_is_wrong(p[member, sample], float(total[member, sample]), at))


def _what_is_wrong(p: Tensor, total: float, at: str) -> str:
    if torch.isnan(p).any():
        return f"probs is NaN at {at}, class {int(torch.isnan(p).nonzero()[0])}"
    if torch.isinf(p).any():
        return f"probs is infinite at {at}, class {int(torch.isinf(p).nonzero()[0])}"
    if (p < 0).any():
        k = int((p < 0).nonzero()[0])
        return f"probs is negative at {at}, class {k}: {float(p[k]):.6g} (are these logits? apply softmax first)"
    return f"probs must sum to 1 over the classes: {at} sums to {total:.6g} (are these logits? apply softmax first)"


def _finite(x: Tensor, name: str) -> Tensor:
    """``x`` in float64 after the checks that hold for any vector of probabilities."""
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one class in its last axis, got shape {tuple(x.shape)}")
    if x.is_floating_point() and not torch.isfinite(x).all():
        bad = ~torch.isfinite(x)
        kind = "NaN" if torch.isnan(x[tuple(bad.nonzero()[0])]) else "infinite"
        raise ValueError(f"{name} is {kind} at {first_bad(bad)}")
    if (x < 0).any():
        bad = x < 0
        raise ValueError(f"{name} is negative at {first_bad(bad)}: {x[tuple(bad.nonzero()[0])].item():.6g}")
    return x.to(torch.float64)


def _slack(x: Tensor) -> float:
    """How far a sum of probabilities may miss 1 by rounding in the dtype that came in."""
    return 2e-2 if x.dtype in (torch.float16, torch.bfloat16) else 1e-4


def _scaled_to_one(bound: Tensor, total: Tensor, slack: float, name: str, *, above: bool) -> Tensor:
    """Raise where the set is empty; where the sum misses 1 on the wrong side by rounding, scale it onto 1."""
    off = total > 1 if above else total < 1
    if not off.any():
        return bound
    if (bad := off & ((total - 1).abs() > slack)).any():
        side = "more" if above else "less"
        at = first_bad(bad) if bad.ndim else "the only sample"
        value = total[tuple(bad.nonzero()[0])].item() if bad.ndim else total.item()
        raise ValueError(f"the set is empty at {at}: {name} sums to {value:.6g}, {side} than 1")
    return torch.where(off.unsqueeze(-1), bound / total.unsqueeze(-1), bound)


def _box_vertices(lower: Tensor, upper: Tensor) -> Tensor:
    """All corner points (V, C) of one box: every class but one at a bound, the last one takes what is left."""
    C = len(lower)
    # Two ways to one corner must end in the same digits, so what is at a bound but for rounding is put there.
    upper = torch.where(upper - lower <= 1e-12, lower, upper)
    corners = torch.cartesian_prod(*[torch.stack([a, b]) for a, b in zip(lower, upper, strict=True)]).reshape(-1, C)
    found = []
    for k in range(C):
        p = corners.clone()
        p[:, k] = 0
        rest = 1 - p.sum(1)
        rest = torch.where((rest - lower[k]).abs() <= 1e-12, lower[k], rest)
        p[:, k] = torch.where((rest - upper[k]).abs() <= 1e-12, upper[k], rest)
        found.append(p[(p[:, k] >= lower[k]) & (p[:, k] <= upper[k])])
    unique: Tensor = torch.unique(torch.cat(found), dim=0)
    return unique
