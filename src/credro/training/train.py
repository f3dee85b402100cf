"""From data, network, method and recipe to trained members on disk."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from credro._names import ArgumentError
from credro.data.base import Data
from credro.data.fields import listed
from credro.members import PerSampleLoss
from credro.methods import Method
from credro.nets import make, make_gaussian, make_under_seed
from credro.nets.trunk import TrunkRecord
from credro.training.callbacks import check_callbacks, telling
from credro.training.cluster import Ray, run_ray
from credro.training.devices import gpus, places
from credro.training.diagnostics import warnings_for
from credro.training.estimate import estimate
from credro.training.executors import (
    NoWorkers,
    choose,
    own_threads,
    run_processes,
    run_sequential,
    run_stacked,
    wants_processes,
    why_not_sent,
)
from credro.training.feed import Inputs
from credro.training.files import read_facts
from credro.training.job import Job, MakeNet, check_job, count_classes, doubts, method_for
from credro.training.loop import Progress
from credro.training.own import check_names
from credro.training.progress import Display
from credro.training.recipe import PRESETS, Recipe
from credro.training.records import DataRecord, Execution, Network, RunConfig
from credro.training.reuse import reuse_members
from credro.training.run import Run
from credro.training.seen import note_seen, seen_path

WORTH_SAYING = 5.0
"""Seconds from which it is said beforehand how long training will take."""


class FitWarning(UserWarning):
    """The members are trained, but their uncertainty may mean less than it seems; the message says why."""


def pick_device(device: str | torch.device = "auto") -> torch.device:
    """``auto``: the accelerator that torch finds (of several GPUs, "cuda" stands for all), else the CPU."""
    if str(device) != "auto":
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def spread(data: Data) -> tuple[float, float]:
    """Mean and standard deviation of the targets of a regression; of equal ones the latter counts as 1."""
    targets = data.labels.double()
    return float(targets.mean()), float(targets.std(correction=0)) or 1.0


def net_factory(
    net: str | MakeNet, classes: int, shape: Sequence[int], target: Sequence[float] | None = None
) -> tuple[MakeNet, Network]:
    """A network's factory and what a run records of it: enough to build a named one again.

    target: mean and standard deviation of the targets of a regression.
    """
    if isinstance(net, str) and target is not None:
        mean, std = target
        return partial(make_gaussian, net, tuple(shape), mean, std), Network(net, target=(mean, std))
    if isinstance(net, str):
        return partial(make, net, classes=classes, shape=tuple(shape)), Network(net)
    if not callable(net):
        raise TypeError(f"make_net must be a network's name or a function that builds one, got {type(net).__name__}")
    if isinstance(net, torch.nn.Module):
        raise TypeError("make_net must build a new network at every call, not be one: members would share weights")
    first, second = make_under_seed(net, 0), make_under_seed(net, 1)
    if first is second:
        raise ValueError("make_net must build a new network at every call; it gave the same one twice")
    keys = {k: tuple(v.shape) for k, v in first.state_dict().items()}
    name = getattr(net, "__qualname__", type(net).__name__)
    return net, Network(own=f"{getattr(net, '__module__', '?')}.{name}", state=keys)


def train(
    make_net: str | MakeNet,
    data: Data,
    method: Method,
    *,
    members: int,
    recipe: Recipe,
    out: str | Path,
    executor: str | Ray = "auto",
    workers: int | None = None,
    threads: int = 0,
    device: str | torch.device = "auto",
    members_per_device: int = 1,
    held_out: Data | None = None,
    loss: PerSampleLoss | None = None,
    progress: str = "auto",
    checkpoint_seconds: float = 10.0,
    facts: dict[str, Any] | None = None,
    reuse: Iterable[str | Path] = (),
    notes: Sequence[str] = (),
    callbacks: Sequence[Any] = (),
    trunk: TrunkRecord | None = None,
) -> Run:
    """Train what is not yet trained of the run in ``out``; see ``credro.fit`` for the arguments.

    facts: anything else the run should remember, such as where its data came from. reuse: folders of other runs,
    whose members are taken where they are equal to one that this run needs. notes: what to say first.
    callbacks: functions of a ``MemberEpoch``, or objects such as ``credro.training.callbacks.Callback``.
    trunk: what computed the features that ``data`` holds.
    """
    check_recipe(recipe)
    check_callbacks(callbacks)
    cluster = executor if isinstance(executor, Ray) else Ray() if executor == "ray" else None
    executor = "ray" if isinstance(executor, Ray) else executor
    if cluster:
        cluster.device(device)  # raises where it is not the members'
    run, where = Run(out), pick_device("cpu" if cluster else device)  # of a cluster, the checks alone are made here
    devices = gpus(where)
    classes = count_classes(data)
    workers = places(devices, members_per_device, workers)
    method = method_for(data, method, "" if loss else recipe.loss)
    if isinstance(make_net, str) and data.fields:
        raise ArgumentError(
            "make_net",
            f"network {make_net!r} takes one tensor, the samples have the fields {listed(data.fields)}: give a "
            f"function that builds a network of your own, or put heads on one, credro.on(module)",
        )
    factory, network = net_factory(make_net, classes, data.shape, None if classes else spread(data))
    inputs = Inputs.of(data)
    job = Job(
        run,
        factory,
        data,
        inputs,
        method,
        members,
        recipe,
        classes,
        where,
        threads,
        held_out,
        loss,
        checkpoint_seconds,
    )
    job = check_job(job)
    inputs = job.inputs
    for text in doubts(job):
        warnings.warn(text, stacklevel=3)
    with run.lock():
        # A run goes on with the executor and threads it was started with, so that its weights stay the same.
        before = run.config().execution if run.config_path.exists() else None
        chosen = before.executor if before and executor == "auto" else choose(job, executor, workers)
        if not threads:
            own = cluster.threads if cluster else own_threads(job, chosen, workers)
            job = replace(job, threads=before.threads if before else own)
        config = RunConfig(
            method=method.config(),
            members=members,
            recipe=job.recipe.recorded(),
            network=network,
            classes=data.classes or tuple(str(i) for i in range(classes)),
            inputs=inputs,
            data=DataRecord(data.name, len(data), data.fingerprint(), data.spec),
            held_out=held_out.fingerprint() if held_out is not None else None,
            loss=getattr(loss, "__qualname__", str(loss)) if loss else recipe.loss,
            execution=Execution(chosen, job.threads),
            facts=facts or {},
            trunk=trunk,
            versions={"torch": torch.__version__, "python": platform.python_version()},
        )
        run.start(config)
        if not seen_path(run).exists():
            note_seen(run, trained=data, watched=held_out)
        reuse_members(run, map(Path, reuse), method, config)
        finished = sum(_epochs_done(job, i) for i in range(members))
        due, expected = finished < members * recipe.epochs, None
        if progress != "none" and due and not cluster:  # of which this machine knows nothing
            expected = estimate(job, chosen, min(workers, members), finished)
        alone = due and executor == "auto" and chosen == "sequential" and wants_processes(job, workers)
        with (
            Display(members, recipe.epochs, finished, progress) as display,
            telling(callbacks if due else (), run, config, finished) as told,
        ):

            def report(progress: Progress) -> None:
                display(progress)
                told.epoch(progress)

            for note in notes if due else ():
                display.say(note)
            if expected is not None and expected.seconds >= WORTH_SAYING:
                display.say(f"training takes {expected}")
            if alone and (reason := why_not_sent(job)):
                display.say(f"note: one member after another, since {reason}")
            if chosen == "ray":
                cluster = cluster or Ray()
                run_ray(replace(job, device=cluster.device(device)), report, cluster, display.say)
            elif chosen == "stacked":
                run_stacked(job, report)
            elif chosen == "processes":
                try:
                    run_processes(job, report, min(workers, members), devices)
                except NoWorkers as error:
                    if executor != "auto":
                        raise
                    warnings.warn(f"{error}. Training one member after another", stacklevel=3)
                    run_sequential(job, report)  # with as many threads each, so to the same weights
            else:
                run_sequential(job, report)
    for diagnosis in warnings_for(run.records()):
        warnings.warn(diagnosis.text, FitWarning, stacklevel=3)
    return run


def check_recipe(recipe: Any) -> None:
    """Raise unless ``recipe`` is one, with functions and not merely their names."""
    if not isinstance(recipe, Recipe):
        known = f": credro.PRESETS[{recipe!r}]" if isinstance(recipe, str) and recipe in PRESETS else ""
        raise TypeError(f"recipe must be a credro.Recipe, got {type(recipe).__name__}{known}")
    check_names(recipe)


def _epochs_done(job: Job, i: int) -> int:
    """Epochs that member ``i`` need not be trained any more."""
    if job.run.is_done(i):
        return job.recipe.epochs
    states = (job.run.state(i), job.run.stack_state)
    return max(int(read_facts(path).get("epoch", 0)) for path in states)
