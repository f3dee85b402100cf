"""What each of the ten methods costs beside a deep ensemble: time to train and to predict, memory, disk.

One recipe, one network (ResNet-8), one problem (fashion-mini), five members, one thread. An epoch is one epoch of all
five members, one after another; CreRL's includes the pass over the training set by which a member learns whether to
stop. Methods that differ in the read-out alone have the same networks, so training, networks' outputs, memory and disk
are measured once for them, under the name of the first. They and the read-outs take turns, round after round, by
processor time: medians, and medians of the rounds' ratios to DE. Memory is the peak of a fresh process while it trains
one member, less what it held before.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.training import in_turn, job
from credro.data import Data, limit, load
from credro.ensemble import Ensemble
from credro.methods import METHODS, label, make
from credro.training.files import write_json, write_tensors
from credro.training.loop import Trainer
from credro.training.recipe import Recipe
from credro.training.records import Fit, MemberRecord
from credro.training.threads import threads

MEMBERS = 5
TRAINED = {name: next(m for m in METHODS if make(m).training() == make(name).training()) for name in METHODS}
"""Each method, and the first of those with the same networks."""
FIRST = tuple(dict.fromkeys(TRAINED.values()))
HEADER = """\
| method | training, s per epoch | networks, s per 1,000 images | with read-out | peak memory, MB | on disk, MB |
|---|---|---|---|---|---|"""
Row = dict[str, Any]


def images(split: str, count: int) -> Data:
    data = load("fashion-mini", split=split)
    return data.subset(limit(len(data), count, 0))


def trainers(folder: Path, method: str, data: Data, epochs: int) -> list[Trainer]:
    """The members of ``method``, untrained."""
    given = job(folder, "resnet8", data, method, MEMBERS, Recipe(epochs=epochs, augment="crop-flip"))
    # A reference that nobody reaches: CreRL's members compare themselves after every epoch, and none stops.
    write_json(given.run.record_path(0), MemberRecord(0, train=Fit(loss=-1.0, nll=-1.0)).to_json())
    return [Trainer(replace(given, checkpoint_seconds=float("inf")), i) for i in range(MEMBERS)]


def train_epoch(members: list[Trainer]) -> None:
    for trainer in members:
        trainer.train_epoch(lambda: True)


def memory(method: str, count: int) -> None:
    """Print, as JSON, by how many bytes training a member raises this process's peak; to be run in a fresh process."""
    torch.set_num_threads(1)
    data = images("train", count)
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainers(Path(folder), method, data, 2)[1]
        before = resident("VmRSS")
        trainer.train_epoch(lambda: True)
        print(json.dumps(resident("VmHWM") - before))


def resident(entry: str) -> int:
    """Bytes of memory that this process holds (VmRSS) or has held at most (VmHWM).

    ru_maxrss alone would not do on Linux: a new process inherits the peak of the one that started it. Elsewhere it has
    to serve for both.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return 1024 * int(next(line for line in lines if line.startswith(entry)).split()[1])


def memory_of(method: str, count: int) -> int:
    """``memory`` in a process of its own, which gives every freed tensor back: fragments would differ by chance."""
    code = f"from benchmarks.costs import memory; memory({method!r}, {count})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(json.loads(done.stdout))


def on_disk(folder: Path, members: list[Trainer]) -> int:
    """Bytes of the members' weights as a run stores them."""
    for i, trainer in enumerate(members):
        write_tensors(folder / f"{i}.safetensors", trainer.net.state_dict())
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def train(folder: Path, data: Data, rounds: int) -> tuple[dict[str, list[Trainer]], dict[str, list[float]]]:
    """The members of all that are trained, and the seconds of their epochs in every round."""
    members = {name: trainers(folder / name, name, data, rounds + 2) for name in FIRST}
    return members, in_turn({name: partial(train_epoch, m) for name, m in members.items()}, rounds, time.process_time)


def predict(
    members: dict[str, list[Trainer]], test: Data, few: int, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds per 1,000 images in every round: of the networks, on ``few`` images, and of every read-out."""
    ensembles = {name: ensemble(name, members[TRAINED[name]]) for name in METHODS}
    some = test.subset(range(few))
    scores = {name: ensembles[name].scores(test) for name in FIRST}
    networks = in_turn({name: partial(ensembles[name].scores, some) for name in FIRST}, rounds, time.process_time)
    readouts = in_turn(
        {name: partial(read, e, scores[TRAINED[name]]) for name, e in ensembles.items()}, rounds, time.process_time
    )
    return per_thousand(networks, few), per_thousand(readouts, len(test))


def ensemble(name: str, members: list[Trainer]) -> Ensemble:
    """Without a run, so that nothing it predicts is cached."""
    job = members[0].job
    return Ensemble([t.net.eval() for t in members], make(name), job.inputs, job.data.classes, job.device)


def read(ensemble: Ensemble, scores: torch.Tensor) -> None:
    """From the networks' outputs to the three uncertainties."""
    prediction = ensemble.method.readout(ensemble.probs(scores))
    _ = prediction.epistemic, prediction.aleatoric, prediction.total


def per_thousand(seconds: dict[str, list[float]], count: int) -> dict[str, list[float]]:
    return {name: [t * 1000 / count for t in times] for name, times in seconds.items()}


def run(count: int = 512, tested: int = 500, few: int = 128, rounds: int = 5) -> list[Row]:
    """One row per method. count: training images. tested: images that are read; few: that the networks are timed on."""
    with tempfile.TemporaryDirectory() as temporary, threads(1), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore", UserWarning)  # how well these members fit is not the matter here
        folder = Path(temporary)
        peak = {name: memory_of(name, count) for name in FIRST}
        members, epochs = train(folder, images("train", count), rounds)
        disk = {name: on_disk(folder / name, m) for name, m in members.items()}
        networks, readouts = predict(members, images("test", tested), few, rounds)
    columns: dict[str, Callable[[str], list[float]]] = {
        "training": lambda name: epochs[TRAINED[name]],
        "networks": lambda name: networks[TRAINED[name]],
        "with_readout": lambda name: [a + b for a, b in zip(networks[TRAINED[name]], readouts[name], strict=True)],
        "memory": lambda name: [peak[TRAINED[name]] / 1e6],
        "disk": lambda name: [disk[TRAINED[name]] / 1e6],
    }
    return [
        {"method": name} | {key: beside(values(name), values("de")) for key, values in columns.items()}
        for name in METHODS
    ]


def beside(values: list[float], reference: list[float]) -> tuple[float, float]:
    """The median, and the median of the ratios to the reference's value in the same round."""
    ratios = [a / b for a, b in zip(values, reference, strict=True)]
    return statistics.median(values), statistics.median(ratios)


def line(row: Row) -> str:
    """A row of the table, as Markdown: the value, and how many times that of DE it is."""
    digits = {"training": 2, "networks": 3, "with_readout": 3, "memory": 0, "disk": 2}
    cells = [f"{row[key][0]:.{d}f} ({row[key][1]:.2f})" for key, d in digits.items()]
    return f"| {label(row['method'])} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table; in brackets, how many times DE's."""
    print(HEADER)
    for row in run():
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
