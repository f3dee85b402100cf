"""Who trains which member when: one after another, several processes, or all at once.

Every executor gives every member the same random streams; what differs is speed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import traceback
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from credro.training.job import Job, TrainingError
from credro.training.loop import Progress, Report, train_member
from credro.training.stacked import train_stacked, why_not_stacked

EXECUTORS = ("auto", "sequential", "processes", "stacked")
STACK_LIMIT = 200_000
"""Parameters of a network up to which ``auto`` stacks: beyond it the stacked products gain nothing over the loop."""


def choose(job: Job, executor: str, workers: int) -> str:
    """The executor that ``auto`` stands for.

    Stacked where it was measured to be faster (``make bench``): several members of a small network without
    convolutions. Otherwise processes, if there is more than one worker and what they need can be sent to them.
    """
    if executor not in EXECUTORS:
        raise ValueError(f"executor must be one of {', '.join(EXECUTORS)}, got {executor!r}")
    if executor == "stacked" and (reason := why_not_stacked(job)):
        raise ValueError(f"executor='stacked' cannot train this run: {reason}")
    if executor != "auto":
        return executor
    if job.members > 1 and why_not_stacked(job) is None:
        net = job.network(0)
        plain = not any(isinstance(m, nn.Conv1d | nn.Conv2d | nn.Conv3d) for m in net.modules())
        if plain and sum(p.numel() for p in net.parameters()) <= STACK_LIMIT:
            return "stacked"
    if job.members > 1 and workers > 1 and job.device.type == "cpu" and why_not_sent(job) is None:
        return "processes"
    return "sequential"


def why_not_sent(job: Job) -> str | None:
    """Why ``job`` cannot be sent to another process, or None."""
    for name, part in (("make_net", job.make_net), ("the loss", job.own_loss), ("the data", job.data.samples)):
        try:
            if not isinstance(part, torch.Tensor):
                pickle.dumps(part)
        except Exception as error:  # pickle raises whatever the object's own code raises
            return f"{name} cannot be sent to another process ({error}); define it at the top of a module"
    return None


def order(job: Job) -> list[int]:
    """Members that are not done, those first that others wait for."""
    todo = [i for i in range(job.members) if job.run.done(i) is None]
    return sorted(todo, key=lambda i: (len(job.rule.waits_for(i)), i))


def run_sequential(job: Job, report: Report) -> None:
    """One member after another; one that fails does not take the others with it."""
    failures: list[str] = []
    for member in order(job):
        if all(job.run.done(i) is not None for i in job.rule.waits_for(member)):
            try:
                train_member(job, member, report)
            except TrainingError as error:
                failures.append(str(error))
    _raise(failures)


def run_stacked(job: Job, report: Report) -> None:
    """All members at once."""
    _raise(train_stacked(job, report))


def run_processes(job: Job, report: Report, workers: int) -> None:
    """``workers`` processes, each training one member at a time. They end when this process does, however it ends."""
    if reason := why_not_sent(job):
        raise ValueError(f"executor='processes': {reason}, or use executor='sequential'")
    context = multiprocessing.get_context("spawn")
    events = context.Queue()
    todo, failures = order(job), list[str]()
    idle: list[_Worker] = []
    busy: dict[int, _Worker] = {}
    try:
        while todo or busy:
            ready = [i for i in todo if all(job.run.done(j) is not None for j in job.rule.waits_for(i))]
            for member in ready[: workers - len(busy)]:
                todo.remove(member)
                busy[member] = idle.pop() if idle else _Worker(context, job, events)
                busy[member].tasks.put(member)
            if not busy:  # the rest waits for a member that failed
                failures += [f"member {i} was not trained: it needs member {job.rule.waits_for(i)[0]}" for i in todo]
                break
            for event in _heard(events):
                if isinstance(event, Progress):
                    report(event)
                    continue
                member, failure = event
                idle.append(busy.pop(member))
                failures += [failure] if failure else []
            for member, worker in list(busy.items()):
                if not worker.process.is_alive():
                    del busy[member]
                    failures.append(f"member {member}: its process ended with exit code {worker.process.exitcode}")
    finally:
        for worker in [*idle, *busy.values()]:
            worker.process.terminate()
            worker.process.join()
    _raise(failures)


class _Worker:
    """A process that trains the members it is told to."""

    def __init__(self, context: Any, job: Job, events: Any) -> None:
        self.tasks = context.Queue()
        self.process = context.Process(target=_work, args=(job, self.tasks, events, os.getpid()), daemon=True)
        self.process.start()


def _heard(events: Any, wait: float = 0.2) -> Iterator[Any]:
    """What the workers have said; waits a little for the first word."""
    while True:
        try:
            yield events.get(timeout=wait) if wait else events.get_nowait()
        except queue.Empty:
            return
        wait = 0.0


def _work(job: Job, tasks: Any, events: Any, parent: int) -> None:
    """A worker's life. After each member it says which one, and what went wrong if anything did."""

    def alive() -> bool:
        return os.getppid() == parent

    while alive():
        try:
            member = tasks.get(timeout=1.0)
        except queue.Empty:
            continue
        failure = None
        try:
            train_member(job, member, events.put, alive)
        except TrainingError as error:
            failure = str(error)
        except Exception:
            failure = f"member {member}: {traceback.format_exc()}"
        events.put((member, failure))


def _raise(failures: list[str]) -> None:
    if failures:
        raise TrainingError("\n".join(failures))
