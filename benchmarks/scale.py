"""What several workers and several Ray nodes gain, and what a member costs beside its training.

Four ResNet-8 on synthetic images of CIFAR's size, one thread each: one after another, by two processes, by Ray with one
node and with two (of one CPU each, on this machine). Ways are timed in turn, best of the rounds. What a member costs
beside its training is measured on members that train next to nothing. ``plan`` computes the table in docs/scale.md.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.training import images
from credro.data import Data
from credro.ensemble import fit
from credro.training.cluster import Ray
from credro.training.recipe import Recipe

MEMBERS, ROUNDS, PER_MEMBER_GOAL = 4, 2, 2.0


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


def train_time(data: Data, epochs: int, members: int, **options: Any) -> float:
    """Seconds of a whole call of ``fit``."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe, started = Recipe(epochs=epochs, batch_size=64), time.perf_counter()
        fit(
            "resnet8", data, members=members, recipe=recipe, out=Path(folder) / "run", threads=1,
            device="cpu", progress="none", **options,
        )  # fmt: skip
        return time.perf_counter() - started


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
    big, small = images(2_000), images(64)
    ways: dict[str, Callable[[Data, int, int], float]] = {
        "one after another": lambda d, e, m: train_time(d, e, m, executor="sequential"),
        "1 process": lambda d, e, m: train_time(d, e, m, executor="processes", workers=1),
        "2 processes": lambda d, e, m: train_time(d, e, m, executor="processes", workers=2),
        "1 Ray node": lambda d, e, m: on_ray(1, d, e, m),
        "2 Ray nodes": lambda d, e, m: on_ray(2, d, e, m),
    }
    found: dict[str, float] = dict.fromkeys(ways, math.inf)
    short: dict[tuple[str, int], float] = {(name, m): math.inf for name in ways for m in (2, 6)}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            found[name] = min(found[name], way(big, 2, MEMBERS))
            for m in (2, 6):
                short[name, m] = min(short[name, m], way(small, 1, m))
            print(f"  {name}: {found[name]:.1f} s", flush=True)
    alone = found["one after another"]
    print(f"{MEMBERS} ResNet-8, 2 epochs of 2,000 images, one thread each; best of {ROUNDS}")
    print(f"{'':<20}{'seconds':>9}{'speed-up':>10}{'start':>8}{'per member':>12}")
    for name in ways:
        each = (short[name, 6] - short[name, 2]) / 4  # of members that train next to nothing
        start = short[name, 2] - 2 * each
        print(f"{name:<20}{found[name]:>9.1f}{alone / found[name]:>10.2f}{start:>8.1f}{each:>12.2f}")
    each = (short["1 Ray node", 6] - short["1 Ray node", 2]) / 4
    print(f"Ray's overhead per member: {each:.2f} s (goal: below {PER_MEMBER_GOAL:g} s)")


def on_ray(count: int, data: Data, epochs: int, members: int) -> float:
    with nodes(count) as address:
        return train_time(data, epochs, members, executor=Ray(address))


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
