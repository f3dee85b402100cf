"""Partly frozen trunks: the frozen front runs once, and each member has its own copy of the rest with its head.

``credro.on(trunk, unfreeze="last_block")``. A trunk that is a chain of layers is cut before the first layer that is
trained: what comes out there is computed once and kept, as features are. One that is no chain is copied as a whole.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from credro._names import ArgumentError, did_you_mean
from credro.nets.head import find_head
from credro.nets.trunk import Trunk, _pooled

if TYPE_CHECKING:
    from typing_extensions import Self

LAST_BLOCK = "last_block"
SLOWER = 0.1
"""Learning rate of the trunk's own layers, as a part of the head's: they are to be adapted, not learned anew."""
SHOWN = 6
"""Names that an error shows."""

Layers = tuple[tuple[str, nn.Module], ...]
"""Modules that follow each other, by their names in the trunk; "" for one without weights that it does by itself."""


def chain(net: nn.Module) -> Layers:
    """The layers of ``net`` in the order in which a sample goes through them; none where it is no chain.

    It is one where it is an ``nn.Sequential``, which may hold others, or says so by a method ``as_chain``.
    """
    own = getattr(net, "as_chain", None)
    if own is not None and not isinstance(own, nn.Module):
        return tuple(own())
    if not isinstance(net, nn.Sequential) or type(net).forward is not nn.Sequential.forward:
        return ()
    layers: list[tuple[str, nn.Module]] = []
    for name, child in net._modules.items():  # named_children leaves out a layer's second place
        if child is not None:
            layers += [(f"{name}.{n}" if n else "", m) for n, m in chain(child)] or [(name, child)]
    return tuple(layers)


@dataclass(frozen=True, eq=False)
class Front(Trunk):
    """The part of a trunk, ``whole``, that stays frozen; gives its last layer's output as it is: a map, or tokens."""

    whole: Trunk | None = None

    @property
    def empty(self) -> bool:
        """Whether samples are prepared and no more: members have the whole trunk."""
        return isinstance(self.module, nn.Identity)


@dataclass(frozen=True, eq=False)
class Cut:
    """A trunk in two: ``front`` runs once for all members, ``rest`` is what each of them has a copy of.

    trained: names of the parameters that are trained. note: what a user should know of it, in a sentence.
    """

    whole: Trunk
    unfreeze: str
    front: Front
    rest: Layers
    trained: frozenset[str]
    note: str

    def features(self, x: Tensor) -> Tensor:
        """What the front gives (B, ...) to features (B, F), by the pretrained rest."""
        with torch.inference_mode():
            return _pooled(_in_turn(self.rest, x), self.whole.pool, len(x)).float().cpu()

    def check(self, x: Tensor) -> int:
        """F, by samples (B, *shape) that went both ways; raises where those do not agree: it was no chain."""
        wanted, found = self.whole.features(x), self.features(self.front.features(x))
        if wanted.shape != found.shape or not torch.allclose(wanted, found, rtol=1e-3, atol=1e-4):
            raise ArgumentError(
                "unfreeze", "unfreeze cannot cut this trunk: its layers one after another do not give what it gives. "
                "Wrap it in a module that is no nn.Sequential, and each member trains in a copy of the whole"
            )  # fmt: skip
        return int(wanted.shape[1])

    def factory(
        self, make_head: Callable[[], nn.Module], features: int, stats: tuple[Sequence[float], Sequence[float]] | None
    ) -> MakeTail:
        """What builds a member. stats: mean and standard deviation of the features, for the head; None: loaded."""
        return MakeTail(self.rest, self.trained, self.whole.pool, make_head, features, stats)


def cut(trunk: Trunk, unfreeze: str) -> Cut:
    """The trunk in two, before the first layer with a parameter that ``unfreeze`` names.

    unfreeze: "last_block", or patterns of names of parameters or modules, ``blocks.15*``, with commas between them.
    """
    if not isinstance(unfreeze, str) or not unfreeze.strip():
        raise ArgumentError("unfreeze", f"unfreeze must be 'last_block' or a pattern of names, got {unfreeze!r}")
    if not any(True for _ in trunk.module.parameters()):
        raise ArgumentError(
            "unfreeze", f"unfreeze needs a trunk with layers to train; {type(trunk.module).__name__} has no parameters"
        )
    names = _last_block(trunk.module) if unfreeze == LAST_BLOCK else _matching(trunk.module, unfreeze)
    layers, title = chain(trunk.module), f"{len(names)} of the trunk's tensors"
    first = next((i for i, (name, m) in enumerate(layers) if any(n in names for n, _ in _named(name, m))), 0)
    front, rest = layers[:first], layers[first:]
    shared = _ids(front) & _ids(rest) or (layers and _ids(layers) != {id(p) for p in trunk.module.parameters()})
    if not layers or shared:
        front, rest = (), (("", trunk.module),)
    if front:
        kinds = " ".join(type(m).__name__ for _, m in front)
        where = next(name for name, m in rest if any(n in names for n, _ in _named(name, m)))
        note = f"partly frozen: each member trains its own copy of {title}, from {where} on; what is before runs once"
    else:
        kinds = "none"
        why = "it is no chain of layers that could be cut" if not layers or shared else "its first layer is trained"
        note = f"partly frozen: each member holds a copy of the whole trunk, since {why}, and trains {title} in it"
    module = nn.Sequential(*(m for _, m in front)) if front else nn.Identity()
    begun = Front(module, trunk.preprocessing, "none", trunk.address, f"{trunk.content} front {kinds}", trunk)
    return Cut(trunk, unfreeze, begun, rest, names, note)


class Tail(nn.Module):
    """The rest of a trunk, its pooling, and a head: what the front gives (B, ...) to the head's outputs.

    Features are standardised before the head, as those of a frozen trunk are; here they change, and a BatchNorm without
    weights, which begins at the pretrained features' mean and standard deviation, follows them.
    """

    def __init__(
        self,
        rest: nn.Module,
        pool: str,
        head: nn.Module,
        features: int,
        stats: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        """rest: applied first."""
        super().__init__()
        self.rest, self.pool, self.norm, self.head = rest, pool, nn.BatchNorm1d(features, affine=False), head
        if stats is not None:
            mean, std = (torch.as_tensor(values, dtype=torch.float32) for values in stats)
            self.norm.load_state_dict({"running_mean": mean, "running_var": std.square()}, strict=False)
        self.head_name = ".".join(filter(None, ("head", find_head(head))))

    def train(self, mode: bool = True) -> Self:
        """BatchNorm of the trunk keeps its pretrained statistics, and nothing drops out: only weights are trained.

        So members begin at what the trunk gives.
        """
        super().train(mode)
        self.rest.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) to (B, ...)."""
        found: Tensor = self.head(self.norm(_pooled(self.rest(x), self.pool, len(x))))
        return found


@dataclass(frozen=True, eq=False)
class MakeTail:
    """Builds a member of a partly frozen trunk, at every call anew. It travels to other processes."""

    rest: Layers
    trained: frozenset[str]
    pool: str
    make_head: Callable[[], nn.Module]
    features: int
    stats: tuple[Sequence[float], Sequence[float]] | None = None

    def __call__(self) -> Tail:
        """With the pretrained weights; only those that are named are trained."""
        layers = copy.deepcopy(self.rest)
        for name, module in layers:
            for full, parameter in _named(name, module):
                parameter.requires_grad_(full in self.trained)
        return Tail(nn.Sequential(*(m for _, m in layers)), self.pool, self.make_head(), self.features, self.stats)


def slower(net: nn.Module) -> list[nn.Parameter]:
    """The trained parameters of ``net`` that were pretrained, which learn at a tenth of the rate."""
    tails = (module for module in net.modules() if isinstance(module, Tail))
    return [p for tail in tails for p in tail.rest.parameters() if p.requires_grad]


def _named(name: str, module: nn.Module) -> Iterable[tuple[str, nn.Parameter]]:
    """The parameters of a layer of the trunk by their names in it."""
    return ((f"{name}.{n}" if name else n, p) for n, p in module.named_parameters())


def _ids(layers: Layers) -> set[int]:
    return {id(p) for _, module in layers for p in module.parameters()}


def _in_turn(layers: Layers, x: Tensor) -> Tensor:
    first = next((p for _, module in layers for p in module.parameters()), None)
    x = x if first is None else x.to(first.device)
    for _, module in layers:
        x = module(x)
    return x


def _matching(module: nn.Module, unfreeze: str) -> frozenset[str]:
    """Parameters whose name, or the name of a module that holds them, matches one of the patterns."""
    every = [name for name, _ in module.named_parameters()]
    found: set[str] = set()
    for pattern in filter(None, map(str.strip, unfreeze.split(","))):
        hits = {n for n in every if any(fnmatchcase(part, pattern) for part in _ways(n))}
        if not hits:
            raise ArgumentError(
                "unfreeze", f"unfreeze must name layers of the trunk, and {pattern!r} matches none"
                f"{did_you_mean(pattern, {way for n in every for way in _ways(n)})}; it has {_some(every)}"
            )  # fmt: skip
        found |= hits
    return frozenset(found)


def _ways(name: str) -> list[str]:
    """``a``, ``a.b`` and ``a.b.weight`` of ``a.b.weight``."""
    return list(accumulate(name.split("."), lambda a, b: f"{a}.{b}"))


def _some(names: Sequence[str]) -> str:
    """The modules that hold parameters, the last of them first: these are what one unfreezes."""
    modules = list(dict.fromkeys(name.rpartition(".")[0] or name for name in reversed(names)))
    return ", ".join(modules[:SHOWN]) + (", ..." if len(modules) > SHOWN else "")


def _last_block(module: nn.Module) -> frozenset[str]:
    """Parameters from the last block on: of a chain its last layer with a matrix of weights, or the one it names.

    Of any other module those from the last entry of its last list of layers on, in the order in which it has them.
    """
    if layers := chain(module):
        named = getattr(module, "last_block", None)
        found = [i for i, (n, m) in enumerate(layers) if (n == named if named else _has_matrix(m))]
        if found:
            return frozenset(n for name, m in layers[found[-1] :] for n, _ in _named(name, m))
    every = [name for name, _ in module.named_parameters()]
    lists = [name for name, m in module.named_modules() if isinstance(m, nn.ModuleList) and list(m.parameters())]
    outer = [name for name in lists if not any(name.startswith(f"{other}.") for other in lists)]
    if outer:
        count = len(module.get_submodule(outer[-1])._modules)
        start = next((i for i, n in enumerate(every) if n.startswith(f"{outer[-1]}.{count - 1}.")), None)
        if start is not None:
            return frozenset(every[start:])
    raise ArgumentError(
        "unfreeze", f"unfreeze='last_block' needs a trunk that is a chain or has a list of layers, and "
        f"{type(module).__name__} is and has none: give a pattern of names; it has {_some(every)}"
    )  # fmt: skip


def _has_matrix(module: nn.Module) -> bool:
    return any(p.ndim > 1 for p in module.parameters())
