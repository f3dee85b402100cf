"""What several workers and several Ray nodes gain, and what a member costs beside its training.

Four ResNet-8 on synthetic images of CIFAR's size, one thread each: one after another, by two processes, by Ray with one
node and with two (of one CPU each, on this machine). Ways are timed in turn, best of the rounds. What a member costs
beside its training is the call's time less what the members recorded, so it has its share of starting up; starting the
cluster itself is not counted. ``plan`` computes the table in docs/scale.md.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training import images
from credro.data import Data
from credro.ensemble import fit
from credro.training.cluster import Ray
from credro.training.recipe import Recipe
from credro.training.run import Run

MEMBERS, ROUNDS = 4, 3


@dataclass(frozen=True)
class Took:
    """Seconds of a call, and those that its members recorded as training, summed."""

    seconds: float
    training: float


def main(options: list[str] | None = None) -> None:
    if options and options[0] == "--plan":
        plan()
        return
    try:
        import ray  # noqa: F401
    except ModuleNotFoundError:
        print("Ray is missing: pip install 'credro[ray]'")
        return
    scaling()
    print()
    plan()


def train_time(data: Data, **options: Any) -> Took:
    """A whole call of ``fit``."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe, started = Recipe(epochs=2, batch_size=64), time.perf_counter()
        fit(
            "resnet8", data, members=MEMBERS, recipe=recipe, out=Path(folder) / "run", threads=1,
            device="cpu", progress="none", **options,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        return Took(seconds, sum(record.seconds for record in Run(Path(folder) / "run").records()))


@contextmanager
def nodes(count: int) -> Iterator[str]:
    """A Ray cluster of ``count`` nodes of one CPU each, beside a head without any; gives its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray's switch for 127.0.0.1 and nothing else
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(count):
            cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        cluster.shutdown()


def scaling() -> None:
    data = images(2_000)
    ways: dict[str, tuple[int, Callable[[], Took]]] = {
        "one after another": (1, lambda: train_time(data, executor="sequential")),
        "1 process": (1, lambda: train_time(data, executor="processes", workers=1)),
        "2 processes": (2, lambda: train_time(data, executor="processes", workers=2)),
        "1 Ray node": (1, lambda: on_ray(1, data)),
        "2 Ray nodes": (2, lambda: on_ray(2, data)),
    }
    rounds: dict[str, list[Took]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (_, way) in ways.items():
            rounds[name].append(way())
    best = {name: min(took, key=lambda one: one.seconds) for name, took in rounds.items()}
    print(f"{MEMBERS} ResNet-8, 2 epochs of {len(data):,} images, one thread each; best of {ROUNDS}")
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| | seconds, best (worst) | speed-up | training, a member | beside it, a member |")
    print("|---|---:|---:|---:|---:|")
    for name, (at_once, _) in ways.items():
        took, worst = best[name], max(one.seconds for one in rounds[name])
        beside = (took.seconds - took.training / at_once) / MEMBERS  # its share of what is paid once included
        gain = best["one after another"].seconds / took.seconds
        print(
            f"| {name} | {took.seconds:.1f} ({worst:.1f}) | {gain:.2f} | {took.training / MEMBERS:.2f} | {beside:.2f} |"
        )


def on_ray(count: int, data: Data) -> Took:
    with nodes(count) as address:
        return train_time(data, executor=Ray(address))


HOURS_PAPER = 7 / 20
"""Assumed, not measured: hours of one ResNet-18 for 200 epochs of 50,000 images of CIFAR-10 on one large GPU."""
PLAN_OVERHEAD = 10.0
"""Assumed: seconds of a member beside its training on a GPU: a process, torch and CUDA."""


def hours(members: int, gpus: int, samples: int = 50_000, epochs: int = 200) -> float:
    """Rounds of members on the GPUs, each as long as one member."""
    one = HOURS_PAPER * samples / 50_000 * epochs / 200 + PLAN_OVERHEAD / 3600
    return math.ceil(members / gpus) * one


def plan() -> None:
    print("| run | GPUs | rounds | hours | GPU hours |")
    print("|---|---:|---:|---:|---:|")
    for what, members, count, epochs in (
        ("20 members x 200 epochs, 50,000 images", 20, 50_000, 200),
        ("100 members x 90 epochs, 1,000,000 images", 100, 1_000_000, 90),
    ):
        for gpus in (1, 8, 20) if members == 20 else (8, 20, 100):
            took = hours(members, gpus, count, epochs)
            used = members * hours(1, 1, count, epochs)
            print(f"| {what} | {gpus} | {math.ceil(members / gpus)} | {took:.1f} | {used:.0f} |")
