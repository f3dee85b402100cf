"""Who trains which member when: one after another, several processes, or all at once.

Every executor gives every member the same random streams; what differs is speed.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from types import FunctionType
from typing import Any

import torch
from torch import nn

from credro._names import one_of
from credro.nets import multiply_adds
from credro.nets.tail import slower
from credro.training.abreast import goes_abreast, train_abreast
from credro.training.devices import next_device, only
from credro.training.feed import layout
from credro.training.job import Job, TrainingError
from credro.training.loop import Progress, Report, train_member
from credro.training.memory import keep_memory
from credro.training.recipe import FUNCTIONS
from credro.training.stacked import stack_is_over, train_stacked, why_not_stacked
from credro.training.threads import threads

EXECUTORS = ("auto", "sequential", "processes", "stacked", "ray")
STACK_LIMIT = 200_000
"""Parameters of a network up to which ``auto`` stacks: beyond it the stacked products gain nothing over the loop."""


SMALL_STEP = 10_000_000
"""Multiply-adds of a batch, forward, below which one thread does a step sooner than several that wait for another."""


class NoWorkers(RuntimeError):  # noqa: N818 (read as a sentence)
    """Processes could not be started; the message says what to do."""


class NotSent(NoWorkers, ValueError):  # noqa: N818 (read as a sentence)
    """What processes need cannot be sent to them."""


def choose(job: Job, executor: str, workers: int) -> str:
    """The executor that ``auto`` stands for.

    Stacked where it was measured to be faster (``make bench``): several members of a small network without
    convolutions, and heads on features, which go side by side (``abreast``).
    Otherwise processes, if there is more than one worker and what they need can be sent to them.
    """
    one_of("executor", executor, EXECUTORS)
    if executor == "stacked" and (reason := why_one_by_one(job)):
        raise ValueError(f"executor='stacked' cannot train this run: {reason}")
    if executor != "auto":
        return executor
    if job.members > 1 and goes_abreast(job):
        return "stacked"
    if job.members > 1 and _stacks_well(job):
        return "stacked" if job.members > 2 else "sequential"  # two gain nothing, and processes take long to start
    return "processes" if wants_processes(job, workers) and why_not_sent(job) is None else "sequential"


def why_one_by_one(job: Job) -> str | None:
    """Why the members of ``job`` cannot be trained at once, by what the recipe asks or the network is; or None."""
    if goes_abreast(job):
        return None
    if job.recipe.accumulate > 1:
        return f"accumulate={job.recipe.accumulate} is for members trained one by one"
    if callable(job.recipe.optimizer):
        return "an optimizer of your own may not keep the members of a stack apart"
    if slower(job.network(0)):
        return "layers of a trunk have a learning rate of their own"
    return why_not_stacked(job)


def wants_processes(job: Job, workers: int) -> bool:
    """Whether processes would be faster than one member after another, or all at once."""
    return job.members > 1 and workers > 1 and job.device.type in ("cpu", "cuda") and not _stacks_well(job)


def _stacks_well(job: Job) -> bool:
    """Whether the network can be stacked, and is one that gains by it: small, and without convolutions, or a head."""
    if goes_abreast(job):
        return True
    if why_one_by_one(job) is not None:
        return False
    net = job.network(0)
    plain = not any(isinstance(m, nn.Conv1d | nn.Conv2d | nn.Conv3d) for m in net.modules())
    return plain and sum(p.numel() for p in net.parameters()) <= STACK_LIMIT


def own_threads(job: Job, executor: str, workers: int) -> int:
    """The threads per member that 0 stands for: the cores by the processes, and one for a small network."""
    if executor == "processes":
        return max(1, (os.cpu_count() or 1) // min(workers, job.members))
    if job.device.type != "cpu":
        return torch.get_num_threads()
    if executor == "stacked" and goes_abreast(job):
        return torch.get_num_threads()
    size = min(job.recipe.batch_size, len(job.data)) * (job.members if executor == "stacked" else 1)
    x = job.inputs(job.data.batch(torch.arange(min(2, len(job.data)))).to(job.device))
    return 1 if size * multiply_adds(job.network(0), layout(x, job.recipe)) < SMALL_STEP else torch.get_num_threads()


def why_not_sent(job: Job) -> str | None:
    """Why ``job`` cannot be sent to another process, or None."""
    parts: dict[str, Any] = {"make_net": job.make_net, "the loss": job.own_loss, "the method": job.method}
    parts |= {name: getattr(job.recipe, name) for name in FUNCTIONS}
    parts |= {"the data": job.data.samples, "held_out": job.held_out and job.held_out.samples}
    for name, part in parts.items():
        try:
            if not isinstance(part, torch.Tensor):
                _Sender(io.BytesIO()).dump(part)
        except Exception as error:  # pickle raises whatever the object's own code raises
            return f"{name} cannot be sent to another process ({error}); define it at the top of a module"
    return None


class _Sender(pickle.Pickler):
    """Refuses what was defined in a notebook or at a prompt: pickle names it, and a new process cannot find it."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType) and obj.__module__ == "__main__" and _no_file():
            raise pickle.PicklingError(f"{obj.__qualname__} was defined in a notebook or at a prompt, not in a file")
        return NotImplemented


def _no_file() -> bool:
    """Whether the main module is one that no other process can read."""
    return not hasattr(sys.modules["__main__"], "__file__")


def order(job: Job) -> list[int]:
    """Members that are not done, those first that others wait for."""
    todo = [i for i in range(job.members) if not job.run.is_done(i)]
    return sorted(todo, key=lambda i: (len(job.member(i).stop.waits_for), i))


def ready(job: Job, i: int) -> bool:
    """Whether the members that member i waits for are done."""
    return all(job.run.is_done(j) for j in job.member(i).stop.waits_for)


def unmet(job: Job, todo: list[int]) -> list[str]:
    """What to say of members that wait for one that failed."""
    return [f"member {i} was not trained: it needs member {job.member(i).stop.waits_for[0]}" for i in todo]


def run_sequential(job: Job, report: Report) -> None:
    """One member after another; one that fails does not take the others with it."""
    failures: list[str] = []
    for member in order(job):
        if ready(job, member):
            try:
                train_member(job, member, report)
            except TrainingError as error:
                failures.append(str(error))
    raise_failures(failures)


def run_stacked(job: Job, report: Report) -> None:
    """All members at once, by one pass or side by side; those that fell out of an earlier stack, one after another."""
    if goes_abreast(job) and not job.run.stack_state.exists():
        raise_failures(train_abreast(job, order(job), report))
    elif stack_is_over(job):
        run_sequential(job, report)
    else:
        with threads(job.threads):
            raise_failures(train_stacked(job, report))


def run_processes(job: Job, report: Report, workers: int, devices: Sequence[str] = ()) -> None:
    """``workers`` processes, each training one member at a time. They end when this process does, however it ends.

    devices: GPUs that they are placed on in turn (``devices.gpus``); each sees its own alone.
    """
    if reason := why_not_sent(job):
        raise NotSent(f"executor='processes': {reason}, or use executor='sequential'")
    context = multiprocessing.get_context("spawn")
    todo, failures = order(job), list[str]()
    idle: list[_Worker] = []
    busy: dict[int, _Worker] = {}
    try:
        while todo or busy:
            for member in [i for i in todo if ready(job, i)][: workers - len(busy)]:
                todo.remove(member)
                if not idle:
                    taken = [worker.gpu for worker in busy.values() if worker.gpu is not None]
                    idle.append(_Worker(context, job, next_device(devices, taken) if devices else None))
                busy[member] = idle.pop()
                busy[member].pipe.send(member)
            if not busy:  # the rest waits for a member that failed
                failures += unmet(job, todo)
                break
            speaking = wait([worker.pipe for worker in busy.values()])
            for member, worker in [(i, w) for i, w in busy.items() if w.pipe in speaking]:
                said = worker.hear()
                if isinstance(said, Progress):
                    report(said)
                elif isinstance(said, Finished):
                    idle.append(busy.pop(member))
                    failures += [said.failure] if said.failure else []
                elif said is None:
                    del busy[member]
                    failures.append(f"member {member}: its process ended with exit code {worker.exit_code()}")
    finally:
        for worker in [*idle, *busy.values()]:
            worker.process.terminate()
            worker.process.join()
    raise_failures(failures)


@dataclass(frozen=True)
class Finished:
    """What a worker says after a member, and what went wrong if anything did."""

    failure: str | None


class _Worker:
    """A process that trains the members it is told to. Each has a pipe of its own, so one that dies harms no other."""

    def __init__(self, context: Any, job: Job, gpu: str | None) -> None:
        self.pipe, theirs = context.Pipe()
        self.gpu = gpu
        if job.device.type == "cuda":
            job = replace(job, device=torch.device("cuda"))  # the only one that it sees
        self.process = context.Process(target=_work, args=(job, theirs, os.getpid()), daemon=True)
        with only(gpu):
            self.process.start()
        theirs.close()  # so that the pipe ends when the process does
        self.ready = False

    def hear(self) -> Any:
        """The next thing it says; None when it has ended."""
        try:
            said = self.pipe.recv()
        except (EOFError, OSError):
            if self.ready:
                return None
            raise NoWorkers(
                f"a worker process ended with exit code {self.exit_code()} before it could train anything. A script "
                f"that trains by several processes must call fit under `if __name__ == '__main__':`"
            ) from None
        self.ready = True
        return said

    def exit_code(self) -> int | None:
        """Of a process that has ended or is about to."""
        self.process.join(10)
        code: int | None = self.process.exitcode
        return code


def _work(job: Job, pipe: Any, parent: int) -> None:
    """A worker's life."""

    def alive() -> bool:
        return os.getppid() == parent

    keep_memory()
    try:
        pipe.send("ready")
        while alive():
            if not pipe.poll(1.0):
                continue
            member, failure = pipe.recv(), None
            try:
                train_member(job, member, pipe.send, alive)
            except TrainingError as error:
                failure = str(error)
            except Exception:
                if not alive():
                    return
                failure = f"member {member}: {traceback.format_exc()}"
            pipe.send(Finished(failure))
    except (EOFError, ConnectionError):
        return  # the parent is gone


def raise_failures(failures: list[str]) -> None:
    """One error for all that went wrong, if anything did."""
    if failures:
        raise TrainingError("\n".join(failures))
