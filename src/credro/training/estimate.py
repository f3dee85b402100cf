"""How long a run will take on this machine: a few steps of a network that is thrown away, times what is left to do."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from credro.training.abreast import FastTrainer, goes_abreast
from credro.training.diagnostics import fitness
from credro.training.feed import Feed
from credro.training.job import Job
from credro.training.loop import Trainer
from credro.training.run import Run
from credro.training.stacked import Stack, train_epoch
from credro.training.threads import threads

BUDGET = 1.0  # seconds that timing may take, beyond a first step of training and one of prediction
START = 4.0  # seconds until worker processes have imported torch
CROWDED = 1.15  # how much longer a step takes beside those of other processes: they share the memory


@dataclass(frozen=True)
class Estimate:
    """Seconds until the run is done, and what of."""

    seconds: float
    members: int  # not yet done
    epochs: int
    steps: int  # an epoch
    early_stop: bool

    def __str__(self) -> str:
        """In words: "about 4 min on this machine (5 members, 40 epochs of 20 steps)"."""
        sooner = "; early stopping may end sooner" if self.early_stop else ""
        return (
            f"about {spoken(self.seconds)} on this machine ({self.members} member{'s' * (self.members > 1)}, "
            f"{self.epochs} epochs of {self.steps} step{'s' * (self.steps > 1)}{sooner})"
        )


def spoken(seconds: float) -> str:
    """A time as one says it: "40 s", "4 min", "2.5 h"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def estimate(job: Job, executor: str, workers: int, finished: int = 0) -> Estimate:
    """What the rest of ``job`` will take. executor: that ``choose`` gave. finished: epochs, over all members, done.

    An upper bound in epochs: members that stop early are sooner over.
    """
    steps = math.ceil(len(job.data) / job.recipe.batch_size)
    todo = [i for i in range(job.members) if not job.run.is_done(i)]
    left = max(0, job.members * job.recipe.epochs - finished)
    with (
        threads(job.threads),
        torch.random.fork_rng(devices=[job.device] if job.device.type == "cuda" else []),
        tempfile.TemporaryDirectory(prefix="credro-") as folder,
    ):
        one = replace(job, run=Run(folder), held_out=None, checkpoint_seconds=math.inf)
        step = _step(one, executor)
        seconds = left * (steps * step + _looks(job))
    if executor == "processes" and todo:
        wait = [i for i in todo if job.member(i).stop.waits_for]
        first = len(todo) - len(wait) if wait else 0
        rounds = first + math.ceil((len(todo) - first) / max(1, workers))
        seconds = START + CROWDED * seconds * rounds / len(todo)
    taken = math.ceil(steps / job.recipe.accumulate)
    return Estimate(seconds, len(todo), job.recipe.epochs, taken, bool(job.recipe.early_stop))


def timed(steps: Callable[[int], None]) -> float:
    """Seconds a step: the first is slower and counts only where it is all that there is time for."""
    started = time.perf_counter()
    steps(1)
    first = time.perf_counter() - started
    if first > BUDGET:
        return first
    count = min(50, max(2, int(0.5 * BUDGET / max(first, 1e-4))))
    started = time.perf_counter()
    steps(count)
    return (time.perf_counter() - started) / count


def _part(job: Job, steps: int) -> Job:
    """The same job with data for so many steps an epoch; a small set comes round again."""
    index = torch.arange(steps * min(job.recipe.batch_size, len(job.data))) % len(job.data)
    return replace(job, data=job.data.subset(index), recipe=job.recipe.with_(early_stop=0))


def _step(job: Job, executor: str) -> float:
    """Seconds of a member's step, by the clock of the whole run."""
    if executor != "stacked":
        return _steps_of_one(job)
    if not goes_abreast(job):
        return _steps_of_all(job) / job.members
    cores = min(job.members, job.threads or torch.get_num_threads())
    with threads(1):
        return CROWDED * _steps_of_one(job, FastTrainer) / cores


def _steps_of_one(job: Job, trainer: type[Trainer] = Trainer) -> float:
    def run(steps: int) -> None:
        trainer(_part(job, steps), 0).train_epoch(lambda: True)

    return timed(run)


def _steps_of_all(job: Job) -> float:
    stack = Stack(job, list(range(job.members)))

    def run(steps: int) -> None:
        part = _part(job, steps)
        feeds = [Feed(part.data, part.inputs, part.recipe, part.device, i) for i in range(job.members)]
        train_epoch(stack, feeds, 0, set())

    return timed(run)


def _looks(job: Job) -> float:
    """Seconds that a member looks at held-out data, and at the training data where its stop asks, in each epoch."""
    watched = len(job.held_out) if job.held_out is not None else 0
    asked = len(job.data) if job.members > 1 and job.member(1).stop.waits_for else 0
    if not watched + asked:
        return 0.0
    net, some = job.network(0), job.data.subset(torch.arange(min(len(job.data), 64)))

    def look(times: int) -> None:
        for _ in range(times):
            fitness(net, job, 0, some)

    return timed(look) / len(some) * (watched + asked)
