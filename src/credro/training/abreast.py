"""Members side by side, a core each: for heads on features, whose large products leave nothing to gain by stacking.

Weights of one member stay in its core's cache; cores never wait for each other within a step; and each core takes
the member that is furthest behind for an epoch, so that none idles. A member's arithmetic is its own, whatever the
others do: it learns what it learns alone, up to rounding, and resumes to the same weights.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace

import torch
from torch import Tensor, nn

from credro.data.base import Data
from credro.nets import multiply_adds
from credro.nets.products import with_fast_products
from credro.training.feed import Inputs
from credro.training.job import Job, TrainingError
from credro.training.loop import Progress, Report, Trainer, own_randomness
from credro.training.recipe import FUNCTIONS
from credro.training.threads import threads

PLAIN = (nn.Linear, nn.ReLU, nn.Flatten, nn.Identity, nn.BatchNorm1d)
"""Layers known to draw nothing at random and to share nothing between networks."""
LARGE_STEP = 4_000_000
"""Multiply-adds of a member's batch, forward, from which products and not calls are what a step costs."""


def goes_abreast(job: Job) -> bool:
    """Whether the members of ``job`` train fastest side by side: plain layers, on the CPU, and large products.

    Nothing of the user's own is called from several threads.
    """
    recipe = job.recipe
    if job.device.type != "cpu" or job.own_loss is not None or not isinstance(job.data.samples, Tensor):
        return False
    if recipe.precision != "fp32" or recipe.compile or any(callable(getattr(recipe, name)) for name in FUNCTIONS):
        return False
    choices = (job.method.start, job.method.risk, job.method.head, job.method.stop)
    if not all(type(choice).__module__.startswith("credro.") for choice in choices):
        return False
    net = job.network(0)
    if not all(type(m) in PLAIN if not list(m.children()) else _ours(m) for m in net.modules()):
        return False
    x = job.inputs(job.data.batch(torch.arange(min(2, len(job.data)))))
    return min(recipe.batch_size, len(job.data)) * multiply_adds(net, x) >= LARGE_STEP


def _ours(module: nn.Module) -> bool:
    """Whether what joins the layers is credro's own, or torch's."""
    return type(module) is nn.Sequential or type(module).__module__.startswith("credro.")


class FastTrainer(Trainer):
    """A member's training with faster products and a fused optimizer: one pass over weights, gradients and moments."""

    fused = True

    def __init__(self, job: Job, i: int) -> None:
        """job: of samples that are prepared (``prepared``)."""
        super().__init__(job, i)
        with_fast_products(self.net)


def prepared(job: Job) -> Job:
    """The same job on samples that are network input already: normalised once, and not in every epoch of each member.

    Where an augmentation comes before, or samples are stored in fewer bytes than floats, they stay as they are.
    """
    samples = job.data.samples
    if job.recipe.augment != "none" or not isinstance(samples, Tensor) or samples.dtype != torch.float32:
        return job
    if job.data.views is not None or (job.held_out is not None and not isinstance(job.held_out.samples, Tensor)):
        return job

    def ready(data: Data) -> Data:
        assert isinstance(data.samples, Tensor)
        return replace(data, samples=job.inputs(data.samples))

    held_out = None if job.held_out is None else ready(job.held_out)
    return replace(job, data=ready(job.data), held_out=held_out, inputs=Inputs(job.inputs.shape))


def train_abreast(job: Job, todo: Iterable[int], report: Report) -> list[str]:
    """Train the members ``todo`` of ``job``; what went wrong with which, in words."""
    given, failures, stop = prepared(job), list[str](), threading.Event()
    cores = job.threads or torch.get_num_threads()
    left, busy = list(todo), dict[Future[Progress | None], FastTrainer]()
    idle: list[FastTrainer] = []

    def epoch(trainer: FastTrainer) -> Progress | None:
        progress = None if trainer.over else trainer.train_epoch(lambda: not stop.is_set())
        if trainer.over:
            trainer.finish()
        return progress

    with (
        ExitStack() as locks,  # let go after the threads have ended
        own_randomness(job),
        threads(0),
        ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        ExitStack() as ending,
    ):
        ending.callback(stop.set)  # should anything go wrong here, the pool does not wait for whole epochs
        while left or idle or busy:
            for i in [i for i in left if all(job.run.is_done(j) for j in job.member(i).stop.waits_for)]:
                left.remove(i)
                locks.enter_context(job.run.lock(f"members/{i:02d}/lock", wait=60))
                if not job.run.is_done(i):
                    idle.append(FastTrainer(given, i))
            idle.sort(key=lambda trainer: trainer.epoch)
            while idle and len(busy) < cores:
                trainer = idle.pop(0)
                busy[pool.submit(epoch, trainer)] = trainer
            if not busy:
                failures += [f"member {i} was not trained: it needs another, which failed" for i in left]
                break
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                trainer = busy.pop(future)
                try:
                    progress = future.result()
                except TrainingError as error:
                    failures.append(str(error))
                    continue
                if progress is not None:
                    report(progress)
                if not job.run.is_done(trainer.i):
                    idle.append(trainer)
    return failures
