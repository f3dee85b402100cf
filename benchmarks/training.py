"""The training engine against itself and against a bare loop: every claim a ratio of two things measured in turn.

Both sides do the same work on the same synthetic images of CIFAR's size with one thread, round after round, and the
median of the rounds' ratios counts. Where one process does the work its processor time is taken, so that other
programs on the machine do not matter; two processes against one are timed by the clock.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from credro.data import Data, load
from credro.data.augment import AUGMENTATIONS, normalise
from credro.ensemble import Ensemble, fit
from credro.members import answers
from credro.methods import make
from credro.nets import make as make_network
from credro.training.executors import run_sequential, run_stacked
from credro.training.feed import Inputs
from credro.training.job import Job, MakeNet
from credro.training.loop import Trainer
from credro.training.recipe import Recipe
from credro.training.run import Run
from credro.training.threads import threads
from credro.training.train import net_factory

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
GOALS = {
    "an epoch with CVaR over one with ERM": (1.02, "at most"),
    "an epoch of our loop over one of a bare loop": (1.05, "at most"),
    "20 small MLPs one by one over all at once": (3.0, "at least"),
    "two ResNet-8 one by one over two processes": (1.6, "at least"),
    "a ResNet-8 whose memory is given back over one whose is kept": (1.05, "at least"),
    "512 images through a ResNet-8 at once over in pieces": (1.2, "at least"),
    "UQ as a fraction of predicting 10,000 images, 5 ResNet-8": (0.02, "at most"),
}
Row = dict[str, Any]


def images(count: int) -> Data:
    """Random images with a pattern per class under noise: they can be learnt, but not at once."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 10, (count,), generator=generator)
    patterns = 255 * torch.rand(10, 3, 32, 32, generator=generator)
    noise = 255 * torch.rand(count, 3, 32, 32, generator=generator)
    samples = (0.15 * patterns[labels] + 0.85 * noise).to(torch.uint8)
    return Data("synthetic", samples, labels, (3, 32, 32), tuple("0123456789"), mean=MEAN, std=STD)


def job(folder: Path, net: str | MakeNet, data: Data, method: str, members: int, recipe: Recipe) -> Job:
    factory, _ = net_factory(net, len(data.classes), data.shape)
    chosen, device = make(method), torch.device("cpu")
    return Job(Run(folder), factory, data, Inputs.of(data), chosen, members, recipe, len(data.classes), device, 1)


def bare_epochs(data: Data, recipe: Recipe) -> Callable[[], None]:
    """The loop that one writes by hand; each call is an epoch."""
    net = make_network("resnet8", 10, data.shape).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    sgd = torch.optim.SGD(net.parameters(), lr=recipe.lr, momentum=0.9, weight_decay=5e-4)
    augment, draws = AUGMENTATIONS["crop-flip"], torch.Generator().manual_seed(0)
    samples, labels, size = data.batch(torch.arange(len(data))), data.labels, recipe.batch_size
    steps, done = math.ceil(len(data) / size), [0]

    def epoch() -> None:
        net.train()
        total, right = 0.0, 0
        for index in torch.split(torch.randperm(len(data), generator=draws), size):
            sgd.param_groups[0]["lr"] = recipe.lr * (1 + math.cos(math.pi * done[0] / steps / recipe.epochs)) / 2
            x = normalise(augment(samples[index], draws), MEAN, STD).contiguous(memory_format=torch.channels_last)
            y = labels[index]
            output: Tensor = net(x)
            loss = nn.functional.cross_entropy(output, y)
            sgd.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            sgd.step()
            total += loss.item() * len(y)
            right += int((output.argmax(1) == y).sum())
            done[0] += 1

    return epoch


def in_turn(sides: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of every side in every round; who begins alternates, and an untimed round warms up."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for i in range(rounds + 1):
        for name in list(sides) if i % 2 else list(sides)[::-1]:
            started = clock()
            sides[name]()
            if i:
                times[name].append(clock() - started)
    return times


def row(what: str, ours: list[float], other: list[float], unit: float = 1.0) -> Row:
    goal, sense = GOALS[what]
    ratio = statistics.median(a / b for a, b in zip(ours, other, strict=True))
    met = ratio <= goal if sense == "at most" else ratio >= goal
    first, second = (unit * statistics.median(t) for t in (ours, other))
    return {"what": what, "seconds": first, "over": second, "ratio": ratio, "goal": f"{sense} {goal:g}", "met": met}


def epochs(folder: Path, count: int = 1024, rounds: int = 9) -> list[Row]:
    """CVaR against ERM, and our loop against a bare one, an epoch of each in turn."""
    data, recipe = images(count), Recipe(epochs=rounds + 1, augment="crop-flip")
    trainers = {m: Trainer(job(folder / m, "resnet8", data, m, 2, recipe), 0) for m in ("de", "credro")}
    sides: dict[str, Callable[[], object]] = {
        "erm": lambda: trainers["de"].train_epoch(lambda: True),
        "cvar": lambda: trainers["credro"].train_epoch(lambda: True),
        "bare": bare_epochs(data, recipe),
    }
    times = in_turn(sides, rounds, time.process_time)
    return [
        row("an epoch with CVaR over one with ERM", times["cvar"], times["erm"]),
        row("an epoch of our loop over one of a bare loop", times["erm"], times["bare"]),
    ]


def stacks(folder: Path, rounds: int = 5) -> list[Row]:
    """20 MLPs of 64-32-32-10 units on the digits in batches of 32: from nothing to finished members."""
    data, recipe, runs = load("digits"), Recipe(epochs=5, batch_size=32, lr=0.05), iter(range(1000))
    small = partial(make_network, "mlp", 10, data.shape, hidden=(32, 32))

    def train(run: Callable[[Job, Any], None]) -> None:
        run(job(folder / str(next(runs)), small, data, "credro", 20, recipe), lambda _: None)

    times = in_turn(
        {"loop": lambda: train(run_sequential), "stacked": lambda: train(run_stacked)}, rounds, time.process_time
    )
    return [row("20 small MLPs one by one over all at once", times["loop"], times["stacked"])]


def processes(folder: Path, count: int = 2048, epochs: int = 8) -> list[Row]:
    """Two members, start of the processes and checkpoints included. One round: it is long enough."""
    data, recipe, times = images(count), Recipe(epochs=epochs, augment="crop-flip"), {}
    for executor in ("sequential", "processes"):
        started = time.perf_counter()
        fit("resnet8", data, members=2, recipe=recipe, out=folder / executor, executor=executor, workers=2, threads=1,
            device="cpu", progress="none")  # fmt: skip
        times[executor] = [time.perf_counter() - started]
    return [row("two ResNet-8 one by one over two processes", times["sequential"], times["processes"])]


STEPS = """
import sys, time
from benchmarks.training import bare_epochs, images
from credro.training.memory import keep_memory
from credro.training.recipe import Recipe
from credro.training.threads import threads
if sys.argv[1] == "kept":
    keep_memory()
with threads(1):
    epoch = bare_epochs(images(512), Recipe(epochs=4, batch_size=32))
    epoch()
    started = time.process_time()
    epoch(), epoch()
    print(time.process_time() - started)
"""


def memory(folder: Path, rounds: int = 7) -> list[Row]:
    """The bare loop in batches of 32, in a process of its own: how memory is handled is settled once for each."""

    def seconds(how: str) -> float:
        return float(subprocess.run([sys.executable, "-c", STEPS, how], capture_output=True, check=True).stdout)

    times = [(seconds("given back"), seconds("kept")) for _ in range(rounds)]
    back, kept = ([t[i] for t in times] for i in (0, 1))
    return [row("a ResNet-8 whose memory is given back over one whose is kept", back, kept)]


def pieces(folder: Path, rounds: int = 9) -> list[Row]:
    """A network that only answers, on a batch of 512: whole, and as a prediction gives it."""
    net = make_network("resnet8", 10, (3, 32, 32)).eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.rand(512, 3, 32, 32)
    with torch.inference_mode():
        times = in_turn({"whole": lambda: net(x), "pieces": lambda: answers(net, x)}, rounds, time.process_time)
    return [row("512 images through a ResNet-8 at once over in pieces", times["whole"], times["pieces"])]


def uncertainty(folder: Path, count: int = 10_000) -> list[Row]:
    """Networks' outputs against everything that is computed of them: credal set, upper and lower entropy."""
    ensemble: Ensemble = fit("resnet8", images(1024), members=5, recipe=Recipe(epochs=4), out=folder, threads=1,
                             executor="sequential", device="cpu", progress="none")  # fmt: skip
    data = images(count)
    started = time.process_time()
    scores = ensemble.scores(data, cache=False)
    networks = time.process_time() - started
    uq = []
    for _ in range(5):
        started = time.process_time()
        _ = ensemble.method.readout(ensemble.probs(scores)).epistemic
        uq.append(time.process_time() - started)
    whole = [networks + u for u in uq]
    return [row("UQ as a fraction of predicting 10,000 images, 5 ResNet-8", uq, whole)]


def run() -> list[Row]:
    """One row per claim: what, seconds of both sides, their ratio, the goal, and whether it is met."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, threads(1), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore", UserWarning)  # how well these members fit is not the matter here
        for part in (epochs, stacks, processes, memory, pieces, uncertainty):
            rows += part(Path(folder) / part.__name__)
            print(line(rows[-1]) if len(rows) != 2 else "\n".join(map(line, rows)), flush=True)
    return rows


def line(row: Row) -> str:
    verdict = "" if row["met"] else "  <- missed"
    return f"{row['what']}: {row['seconds']:.2f} s / {row['over']:.2f} s = {row['ratio']:.3f} ({row['goal']}){verdict}"


def main() -> None:
    print(f"one thread, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    run()


if __name__ == "__main__":
    main()
