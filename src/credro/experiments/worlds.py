"""Where an experiment takes place: data, strangers, network and recipe. A preset is a table of worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import nn

from credro.data import Data, corrupt_data, data_root, load
from credro.data.conform import conform
from credro.data.corruptions import CORRUPTIONS
from credro.data.noise import symmetric_noise
from credro.data.splits import limit, split_groups
from credro.nets import load_weights, make
from credro.training.recipe import PRESETS, Recipe

EVERYTHING = 50_000
"""Training samples of a world that takes all: CIFAR's."""


@dataclass(frozen=True)
class Sets:
    """What is read and trained on, brought to one shape. Strangers are read when they are asked for."""

    train: Data
    held_out: Data | None  # of the training split, not trained on: for temperatures
    test: Data
    ood: Mapping[str, Callable[[], Data]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pretrained:
    """Builds a network that starts from published weights; its last layer is fresh. It travels to other processes."""

    net: str
    classes: int
    shape: tuple[int, ...]
    path: Path

    def __call__(self) -> nn.Module:
        """A new one at every call."""
        made = make(self.net, self.classes, self.shape)
        load_weights(made, self.path)
        return made


@dataclass(frozen=True)
class World:
    """One network trained on one set by one recipe, and what it is tested on.

    data: the set's name; its "train" and "test" splits are used. reader: options of its reader. samples: how many
    training images, the first of a seeded shuffle; None takes all. held_out: how many of the rest fit temperatures.
    test: how many test images, and how many of each stranger. corruptions: of the test images, as strangers, at all
    five severities; corrupted: how many images of each, or the name of a published set of them.
    groups: divide by group instead (patient, hospital): the share of the groups that is trained on; train_groups:
    or which. size: what images are resized to as they are read. weights: a file below the data's root that the
    networks start from.
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
    corrupted: int | str = 1000
    size: tuple[int, int, int] | None = None
    weights: str = ""
    groups: float | None = None
    train_groups: tuple[int, ...] = ()
    members: int = 5
    runs: int = 3

    def with_(self, **changes: Any) -> World:
        """The same world with some things changed. ``samples`` and ``epochs`` may be shares of its own, as floats."""
        if isinstance(share := changes.get("samples"), float):
            changes["samples"] = self.samples if share == 1 else round(share * (self.samples or EVERYTHING))
        if (epochs := changes.pop("epochs", None)) is not None:
            whole = round(epochs * self.recipe.epochs) if isinstance(epochs, float) else epochs
            changes["recipe"] = self.recipe.with_(epochs=max(1, whole))
        return replace(self, **changes)

    def load(self, root: str | Path | None = None, noise: float = 0.0, seed: int = 0, ood: bool = True) -> Sets:
        """Read the sets. noise: share of training labels replaced at random, by ``seed``.

        Which samples are trained on does not depend on ``seed``: runs differ in initialisation, order and noise.
        """
        if self.groups is not None or self.train_groups:
            train, held_out, test = self._by_group(root, seed)
        else:
            whole, test = (load(self.data, split=part, root=root, **self.reader) for part in ("train", "test"))
            wanted = len(whole) - self.held_out if self.samples is None else self.samples
            order = limit(len(whole), min(len(whole), wanted + self.held_out), 0)
            train = whole.subset(order[:wanted])
            held_out = whole.subset(order[wanted:]) if self.held_out else None
        if self.test is not None and self.test < len(test):
            test = test.subset(limit(len(test), self.test, 0))
        if noise:
            train = train.relabel(symmetric_noise(train.labels, noise, len(train.classes), seed=seed))
        train, test = self._sized(train), self._sized(test)
        held_out = None if held_out is None else self._sized(held_out)
        strangers: dict[str, Callable[[], Data]] = {}
        if ood:
            strangers = {name: partial(_stranger, name, data_root(root), self.test, test.shape) for name in self.ood}
            for name, severity in product(self.corruptions, range(1, 6)):
                strangers[f"{name}-{severity}"] = partial(self._corrupted, root, test, name, severity)
        return Sets(train, held_out, test, strangers)

    def network(self, classes: int, shape: tuple[int, ...], root: str | Path | None = None) -> str | Pretrained:
        """What ``fit`` takes: the network's name, or what builds it with the weights it starts from."""
        if not self.weights:
            return self.net
        path = data_root(root) / self.weights
        if not path.is_file():
            raise FileNotFoundError(
                f"world {self.name!r} starts from published weights of {self.net}, which are not at {path}: "
                f"put torchvision's file for it there"
            )
        return Pretrained(self.net, classes, shape, path)

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
        some = test.subset(limit(len(test), min(self.corrupted, len(test)), 0))
        return corrupt_data(some, name, severity, seed=0)

    def _by_group(self, root: str | Path | None, seed: int) -> tuple[Data, Data | None, Data]:
        """No patient (or hospital) on two sides. Here runs differ in the division as well."""
        whole = load(self.data, root=root, **self.reader)
        if whole.groups is None:
            raise ValueError(f"{self.data!r} has no groups to divide by")
        if self.train_groups:
            inside = torch.isin(whole.groups, torch.tensor(self.train_groups))
            first, second = inside.nonzero()[:, 0], (~inside).nonzero()[:, 0]
        else:
            assert self.groups is not None
            first, second = split_groups(whole.groups, self.groups, seed=seed, labels=whole.labels)
        train, held_out = whole.subset(first), None
        if self.held_out and train.groups is not None and len(torch.unique(train.groups)) > 2:
            share = self.held_out / len(train)
            some, rest = split_groups(train.groups, share, seed=seed, labels=train.labels)
            train, held_out = train.subset(rest), train.subset(some)
        return train, held_out, whole.subset(second)


@lru_cache(maxsize=8)
def _stranger(name: str, root: Path, count: int | None, shape: tuple[int, ...]) -> Data:
    """An OOD set, or ``count`` of it, in the shape of the test images. Kept, since every cell of a world reads it."""
    data = load(name, split="test", root=root)
    if count is not None and count < len(data):
        data = data.subset(limit(len(data), count, 0))
    return conform(data, shape) if data.shape != shape else data


COLOUR = ("svhn", "places365", "cifar100", "fmnist", "imagenet")
"""The paper's five OOD sets."""

PAPER = World("paper", "cifar10", "resnet18", PRESETS["paper-cifar10"], COLOUR, held_out=5000, members=20)
CPU = World("cpu", "cifar10", "resnet8", PRESETS["cpu"], COLOUR, samples=1200, held_out=1000, test=1500)
FASHION = World(
    "fashion",
    "fmnist",
    "cnn",
    PRESETS["fashion"],
    ("mnist", "notmnist", "svhn", "cifar100", "places365"),
    samples=5000,
    held_out=2000,
    test=3000,
)
NOISY = FASHION.with_(name="fashion-noise", samples=0.2, epochs=2.0, test=1000)
"""For label noise: few enough images, often enough, that members fit the wrong labels too."""
WORLDS: dict[str, World] = {"fashion": FASHION, "cpu": CPU, "paper": PAPER}
"""The worlds of the main comparison, by preset; an experiment may bring its own."""

BREAKHIS = World(
    "breakhis",
    "breakhis/breakhis400_64.npz",
    "cnn",
    Recipe(epochs=30, batch_size=32, lr=0.02, weight_decay=5e-4, warmup=1),
    groups=0.7,
    held_out=200,
    size=(3, 32, 32),
)
HEART = World(
    "heart",
    "tabular/heart_4sites.npz",
    "mlp",
    Recipe(epochs=60, batch_size=32, lr=0.05, weight_decay=5e-4, warmup=1),
    reader={"group": "site", "missing": "keep"},
    train_groups=(0,),
)
CAMELYON = World(
    "camelyon17",
    "camelyon17",
    "resnet34",
    PRESETS["paper-camelyon17"],
    reader={"size": (224, 224)},
    held_out=5000,
    runs=5,
)
ALL = tuple(CORRUPTIONS)
CIFAR10_C = World(
    "cifar10-c",
    "cifar10",
    "resnet50",
    PRESETS["paper-cifar10-c"],
    corruptions=ALL,
    corrupted="cifar10-c",
    size=(3, 224, 224),
    weights="weights/resnet50.pth",
    runs=15,
)
CIFAR100_C = World(
    "cifar100-c", "cifar100", "wrn28-4", PRESETS["paper-cifar100-c"], corruptions=ALL, corrupted="cifar100-c", runs=15
)
