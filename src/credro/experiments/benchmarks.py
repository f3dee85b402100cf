"""Where methods are compared: the benchmarks by name. A preset is the name of one."""

from __future__ import annotations

from credro.data.corruptions import CORRUPTIONS
from credro.experiments._benchmark import Benchmark
from credro.training.recipe import PRESETS, Recipe

TITLES = {
    "svhn": "SVHN",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar10-c": "CIFAR-10-C",
    "cifar100-c": "CIFAR-100-C",
    "places365": "Places365",
    "imagenet": "ImageNet",
    "fmnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "notmnist": "notMNIST",
    "camelyon17": "Camelyon17",
    "breakhis": "BreaKHis",
    "breakhis/breakhis400_64.npz": "BreaKHis",
    "heart": "heart disease",
    "tabular/heart_4sites.npz": "heart disease",
    "fashion-mini": "Fashion-MNIST",
    "fashion-mini-letters": "notMNIST",
    "fashion-mini-digits": "digits",
}
"""Data sets as tables and figures write them."""


def title(name: str) -> str:
    """A data set's name as tables and figures write it; a name that is not known stays as it is."""
    return TITLES.get(name, name)


COLOUR = ("svhn", "places365", "cifar100", "fmnist", "imagenet")
"""The paper's five OOD sets."""

PAPER = Benchmark("paper", "cifar10", "resnet18", PRESETS["paper-cifar10"], COLOUR, held_out=5000, members=20)
CPU = Benchmark("cpu", "cifar10", "resnet8", PRESETS["cpu"], COLOUR, samples=1200, held_out=1000, test=1500)
FASHION = Benchmark(
    "fashion",
    "fmnist",
    "cnn",
    PRESETS["fashion"],
    ("mnist", "notmnist", "svhn", "cifar100", "places365"),
    samples=5000,
    held_out=2000,
    test=3000,
)
FEATURES = Benchmark(
    "features",
    "cifar10",
    "mlp",
    Recipe(epochs=20, batch_size=256, optimizer="adamw", lr=1e-3, weight_decay=0.01),
    COLOUR,
    held_out=5000,
    test=5000,
    trunk="efficientnet-lite0",
    trunk_size=(96, 96),
)
"""All of CIFAR-10 through a frozen ImageNet trunk: an ensemble in about a minute on two cores."""
DEMO = Benchmark(
    "demo",
    "fashion-mini",
    "cnn",
    PRESETS["fashion"],
    ("fashion-mini-letters", "fashion-mini-digits"),
    samples=6000,
    held_out=2000,
    corruptions=("gaussian_noise", "defocus_blur"),
    severities=(5,),
    corrupted=None,
    runs=1,
)
"""All of it comes with the package."""
NOISY = FASHION.with_(name="fashion-noise", samples=0.2, epochs=2.0, test=1000)
"""For label noise: few enough images, often enough, that members fit the wrong labels too."""
BENCHMARKS: dict[str, Benchmark] = {
    "fashion": FASHION,
    "features": FEATURES,
    "cpu": CPU,
    "paper": PAPER,
    "demo": DEMO,
}
"""The benchmarks of the main comparison, by preset; an experiment may bring its own."""

BREAKHIS = Benchmark(
    "breakhis",
    "breakhis/breakhis400_64.npz",
    "cnn",
    Recipe(epochs=30, batch_size=32, lr=0.02, weight_decay=5e-4, warmup=1),
    groups=0.7,
    held_out=200,
    size=(3, 32, 32),
)
HEART = Benchmark(
    "heart",
    "tabular/heart_4sites.npz",
    "mlp",
    Recipe(epochs=60, batch_size=32, lr=0.05, weight_decay=5e-4, warmup=1),
    reader={"group": "site", "missing": "keep"},
    train_groups=(0,),
)
CAMELYON = Benchmark(
    "camelyon17",
    "camelyon17",
    "resnet34",
    PRESETS["paper-camelyon17"],
    reader={"size": (224, 224)},
    held_out=5000,
    runs=5,
)
ALL = tuple(CORRUPTIONS)
CIFAR10_C = Benchmark(
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
CIFAR100_C = Benchmark(
    "cifar100-c", "cifar100", "wrn28-4", PRESETS["paper-cifar100-c"], corruptions=ALL, corrupted="cifar100-c", runs=15
)
