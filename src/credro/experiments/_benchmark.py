"""What a benchmark is: data, OOD sets, network and recipe, and how its data is read and told apart from other data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import nn

from credro._names import ArgumentError
from credro.data import Data, corrupt_data, data_root, load
from credro.data.conform import conform
from credro.data.noise import symmetric_noise
from credro.data.splits import limit, split_groups
from credro.nets import load_weights, make
from credro.nets.trunk import OnTrunk
from credro.nets.trunks import on
from credro.training.files import digest_of
from credro.training.job import MakeNet
from credro.training.recipe import Recipe

EVERYTHING = 50_000
"""Training samples of a benchmark that takes all: CIFAR's."""
_MEASURED = ("ood", "test", "corruptions", "severities", "corrupted")
_NOT_TRAINED_ON = ("name", "members", "runs", *_MEASURED)


@dataclass(frozen=True)
class OODSet:
    """An OOD set, read when it is asked for. made_of: tells its content where our own code makes it of other data."""

    read: Callable[[], Data]
    made_of: str = ""

    @property
    def fingerprint(self) -> str:
        """Changes with its content."""
        return self.made_of or self.read().fingerprint()


@dataclass(frozen=True)
class BenchmarkData:
    """What is trained and measured on, brought to one shape.

    held_out: of the training split, not trained on: for temperatures. stored: fingerprints of train, held_out and test
    before they were resized, and the digest of published weights that networks start from.
    """

    train: Data
    held_out: Data | None
    test: Data
    ood: Mapping[str, OODSet]
    stored: Mapping[str, str]

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """Of all that is trained and measured on."""
        return {**self.stored, **{f"ood/{name}": ood.fingerprint for name, ood in self.ood.items()}}


def pretrained(net: str, classes: int, shape: tuple[int, ...], path: Path) -> nn.Module:
    """A new network that starts from published weights; its last layer is fresh."""
    made = make(net, classes, shape)
    load_weights(made, path)
    return made


@dataclass(frozen=True)
class Benchmark:
    """One network trained on one set by one recipe, and what it is tested on.

    data: the set's name; its "train" and "test" splits are used. reader: options of its reader. samples: how many
    training images, the first of a seeded shuffle; None takes all. held_out: how many of the rest fit temperatures.
    test: how many test images, and how many of each OOD set. corruptions: of the test images, as OOD sets, at these
    severities; corrupted: how many images of each (None: all), or the name of a published set of them.
    groups: divide by group instead (patient, hospital): the fraction of the groups that is trained on; train_groups:
    or which. size: what images are resized to as they are read. weights: a file below the data's root that the
    networks start from. trunk: a frozen backbone (``credro.on``) in front of the members, which are then heads ``net``
    on its features; ``trunk_size``: (height, width) of its images.
    """

    name: str
    data: str
    net: str
    recipe: Recipe
    ood: tuple[str, ...] = ()
    samples: int | None = None
    held_out: int = 0
    test: int | None = None
    reader: Mapping[str, Any] = field(default_factory=dict)
    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    corrupted: int | str | None = 1000
    size: tuple[int, int, int] | None = None
    weights: str = ""
    trunk: str = ""
    trunk_size: tuple[int, int] | None = None
    groups: float | None = None
    train_groups: tuple[int, ...] = ()
    members: int = 5
    runs: int = 3

    def with_(self, **changes: Any) -> Benchmark:
        """The same benchmark with some things changed. ``samples`` and ``epochs``: as floats, fractions of its own."""
        if isinstance(fraction := changes.get("samples"), float):
            changes["samples"] = self.samples if fraction == 1 else round(fraction * (self.samples or EVERYTHING))
        if (epochs := changes.pop("epochs", None)) is not None:
            whole = round(epochs * self.recipe.epochs) if isinstance(epochs, float) else epochs
            changes["recipe"] = self.recipe.with_(epochs=max(1, whole))
        return replace(self, **changes)

    @property
    def network_name(self) -> str:
        """As a table's note writes it."""
        return f"heads ({self.net}) on {self.trunk}" if self.trunk else self.net

    def trained_on(self) -> dict[str, Any]:
        """The fields that decide which networks are trained, but for their number and seed."""
        return {k: v for k, v in asdict(self).items() if k not in _NOT_TRAINED_ON}

    def measured_on(self) -> dict[str, Any]:
        """The fields that decide what they are measured on."""
        return {k: v for k, v in asdict(self).items() if k in _MEASURED}

    def load(
        self,
        root: str | Path | None = None,
        noise: float = 0.0,
        seed: int = 0,
        kept: dict[tuple[Any, ...], Data] | None = None,
    ) -> BenchmarkData:
        """Read the data. noise: fraction of training labels replaced at random, by ``seed``. kept: OOD sets by name.

        Which samples are trained on does not depend on ``seed``: runs differ in initialisation, order and noise.
        """
        if self.groups is not None or self.train_groups:
            train, held_out, test = self._by_group(root, seed)
        else:
            whole, test = (load(self.data, split=part, root=root, **self.reader) for part in ("train", "test"))
            wanted = len(whole) - self.held_out if self.samples is None else self.samples
            order = limit(len(whole), min(len(whole), wanted + self.held_out), 0)
            train = whole.subset(order[:wanted])
            held_out = whole.subset(order[wanted:]) if len(order) > wanted else None
        test = _some(test, self.test)
        if noise:
            train = train.relabel(symmetric_noise(train.labels, noise, len(train.classes), seed=seed))
        parts = {"train": train, "held_out": held_out, "test": test}
        stored = {name: part.fingerprint() for name, part in parts.items() if part is not None}
        if self.weights and (weights := data_root(root) / self.weights).is_file():
            stored["weights"] = digest_of(weights)
        if self.trunk:
            stored["trunk"] = self._on_trunk().trunk.digest
        train, test = self._sized(train), self._sized(test)
        held_out = None if held_out is None else self._sized(held_out)
        keep: dict[tuple[Any, ...], Data] = {} if kept is None else kept
        ood = {name: OODSet(partial(_named, name, data_root(root), self.test, test.shape, keep)) for name in self.ood}
        for name, severity in product(self.corruptions, self.severities):
            ours = f"{stored['test']} {self.corrupted} {name} {severity} {_corruptions()}"
            made_of = "" if isinstance(self.corrupted, str) else ours
            ood[f"{name}-{severity}"] = OODSet(partial(self._corrupted, root, test, name, severity), made_of)
        return BenchmarkData(train, held_out, test, ood, stored)

    def _on_trunk(self) -> OnTrunk:
        return on(self.trunk, self.net, size=self.trunk_size)

    def network(self, classes: int, shape: tuple[int, ...], root: str | Path | None = None) -> str | MakeNet | OnTrunk:
        """What ``fit`` takes: a network's name, what builds it with the weights it starts from, or heads on a trunk."""
        if self.trunk:
            return self._on_trunk()
        if not self.weights:
            return self.net
        path = data_root(root) / self.weights
        if not path.is_file():
            raise FileNotFoundError(
                f"benchmark {self.name!r} starts from published weights of {self.net}, which are not at {path}: "
                f"put torchvision's file for it there"
            )
        return partial(pretrained, self.net, classes, shape, path)

    def _sized(self, data: Data) -> Data:
        """As large as wanted, resized batch by batch: a whole set at 224 x 224 would not fit into memory."""
        if self.size is None or data.shape == self.size:
            return data
        return conform(replace(data, samples=data.batch), self.size)

    def _corrupted(self, root: str | Path | None, test: Data, name: str, severity: int) -> Data:
        """The test images, or some of them, corrupted by our own code, or as published."""
        if isinstance(self.corrupted, str):
            published = load(self.corrupted, split="test", root=root, corruption=name, severity=severity)
            return self._sized(published)
        if self.corrupted is not None:
            test = test.subset(limit(len(test), min(self.corrupted, len(test)), 0))
        return corrupt_data(test, name, severity, seed=0)

    def _by_group(self, root: str | Path | None, seed: int) -> tuple[Data, Data | None, Data]:
        """No patient (or hospital) on two sides. Here runs differ in the division as well."""
        whole = load(self.data, root=root, **self.reader)
        if whole.groups is None:
            raise ArgumentError("data", f"{self.data!r} has no groups to divide by")
        if self.train_groups:
            inside = torch.isin(whole.groups, torch.tensor(self.train_groups))
            first, second = inside.nonzero()[:, 0], (~inside).nonzero()[:, 0]
        else:
            assert self.groups is not None
            first, second = split_groups(whole.groups, self.groups, seed=seed, labels=whole.labels)
        train, held_out = whole.subset(first), None
        if self.held_out and train.groups is not None and len(torch.unique(train.groups)) > 2:
            some, rest = split_groups(train.groups, self.held_out / len(train), seed=seed, labels=train.labels)
            train, held_out = train.subset(rest), train.subset(some)
        return train, held_out, whole.subset(second)


@lru_cache(maxsize=1)
def _corruptions() -> str:
    """Of the code that corrupts images: with another, what it makes is another set."""
    code = sorted(
        (p for p in files("credro.data.corruptions").iterdir() if p.name.endswith(".py")), key=lambda p: p.name
    )
    return hashlib.sha256(b"".join(p.read_bytes() for p in code)).hexdigest()[:12]


def _some(data: Data, count: int | None) -> Data:
    return data if count is None or count >= len(data) else data.subset(limit(len(data), count, 0))


def _named(name: str, root: Path, count: int | None, shape: tuple[int, ...], kept: dict[tuple[Any, ...], Data]) -> Data:
    """An OOD set, or ``count`` of it, in the shape of the test images: read once, since every ensemble needs it."""
    key = (name, count, shape)
    if key not in kept:
        data = _some(load(name, split="test", root=root), count)
        kept[key] = conform(data, shape) if data.shape != shape else data
    return kept[key]
