"""Few photographs: from scratch against heads on a frozen or partly frozen trunk, and what inference of M heads costs.

``python -m benchmarks trunks --root DIR [--runs 3] [--only TITLE]``; ``--heads``: how fast heads train, and no more.
1,250 images of CIFAR-10 (``cifar-10-batches-py`` in DIR), tested on 1,000 others and, where DIR has them, against
Places365, SVHN and blurred images. Needs ``credro[trunks]``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import torch

from credro.data import Data, DataNotFound, corrupt_data, limit, load
from credro.ensemble import fit
from credro.evaluation import evaluate
from credro.nets.trunks import on
from credro.training.recipe import Recipe

TRAIN, TEST = 1250, 1000


def some(name: str, split: str, count: int, root: str) -> Data:
    data = load(name, split=split, root=root)
    return data.subset(limit(len(data), count, 0))


def photographs(root: str, runs: int, only: str = "") -> None:
    train, test = some("cifar10", "train", TRAIN, root), some("cifar10", "test", TEST, root)
    ood = {"blur": corrupt_data(test, "defocus_blur", 5, seed=0)}
    for title, name in (("Places365", "places365"), ("SVHN", "svhn")):
        try:
            ood[title] = some(name, "test", TEST, root)
        except DataNotFound:
            print(f"{title}: not in {root}, left out")
    trunk = on("efficientnet-lite0").trunk
    print(f"| members | method | accuracy | {' | '.join(f'AUROC {n}' for n in ood)} | seconds |")
    ways: dict[str, Callable[[], Any]] = {"from scratch, resnet8": lambda: "resnet8"}
    ways["heads on efficientnet-lite0"] = lambda: on(trunk)
    ways["efficientnet-lite0, unfreeze=last_block"] = lambda: on(trunk, unfreeze="last_block")
    ways["heads on efficientnet-lite0, views=4"] = lambda: on(trunk, views=4, augment="flip")
    for title, net in ways.items():
        if only and only not in title:
            continue
        found: dict[str, list[list[float]]] = {}
        for run in range(runs):
            begin = time.perf_counter()
            part = train.subset(limit(len(train), len(train), run))  # another order, so other members
            made = net()
            ens = fit(made, part, early_stop=True if isinstance(made, str) else None, progress="none")
            seconds = time.perf_counter() - begin
            for result in evaluate(ens, test, ood).results:
                row = [100 * result.accuracy, *(100 * result.ood[n].auroc for n in ood), seconds]
                found.setdefault(result.label, []).append(row)
        for label, rows in found.items():
            columns = [f"{mean(c):.1f} ± {stdev(c) if runs > 1 else 0:.1f}" for c in zip(*rows, strict=True)]
            print(f"| {title} | {label} | {' | '.join(columns)} |", flush=True)


def inference(members: int = 20, count: int = 256, rounds: int = 5) -> None:
    """The trunk alone and the trunk with its heads, in turns: the best of several."""
    images = torch.randint(0, 256, (count, 3, 128, 128), dtype=torch.uint8)
    chain = on("efficientnet-lite0")
    data = (images[:64], torch.arange(64) % 10)
    ens = fit(chain, data, members=members, recipe=Recipe(epochs=1), progress="none")
    alone, whole = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        for part in torch.split(images, 512):
            chain.trunk.features(part)
        alone.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        ens.scores(images)
        whole.append(time.perf_counter() - begin)
    print(f"{members} heads with their trunk over the trunk alone: {min(whole) / min(alone):.2f} "
          f"({1000 * min(alone) / count:.2f} ms an image for the trunk)")  # fmt: skip


def heads(members: int, count: int = 20_000, rounds: int = 3, goal: float = 1.5) -> None:
    """Heads of 1280 -> 256 -> 10 one by one over all at once, in turns; and how much of the products' peak each has."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 10, (count,), generator=generator)
    centres = 0.2 * torch.randn(10, 1280, generator=generator)
    features = (centres[labels] + torch.randn(count, 1280, generator=generator)).relu()
    data = Data("features", features, labels, (1280,), tuple("0123456789"))
    recipe = Recipe(epochs=1, batch_size=256, optimizer="adamw", lr=1e-3, weight_decay=0.01)
    times: dict[str, list[float]] = {"sequential": [], "stacked": []}
    for turn in range(rounds):
        for executor in list(times) if turn % 2 else list(times)[::-1]:
            begin = time.perf_counter()
            fit("mlp-256", data, members=members, recipe=recipe, executor=executor, progress="none")
            times[executor].append(time.perf_counter() - begin)
    work = members * count * 2 * 2 * 1280 * 256 + members * count * 2 * 1280 * 256  # two products, and one to look
    rates = ", ".join(f"{name} {work / min(t) / 1e9:.0f} GFLOP/s" for name, t in times.items())
    ratio = min(times["sequential"]) / min(times["stacked"])
    print(f"{members} heads one by one over all at once: {ratio:.2f} (goal: at least {goal:g}); {rates}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks trunks")
    parser.add_argument("--root", default="data")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose title has this in it, and no inference")
    parser.add_argument("--heads", action="store_true", help="nothing but how fast heads train")
    given = parser.parse_args(arguments or [])
    warnings.simplefilter("ignore")
    if not given.only:
        heads(5)
        heads(20, goal=3.0)
        if given.heads:
            return
        inference()
    try:
        photographs(given.root, given.runs, given.only)
    except DataNotFound as error:
        print(f"photographs: left out, {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
