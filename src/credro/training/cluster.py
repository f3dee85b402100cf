"""Members as tasks of Ray: on the cores and GPUs of this machine, or on a cluster of many.

Placement, retries, the object store and the end of tasks whose caller is gone are Ray's. A member is a task.
"""

from __future__ import annotations

import os
import platform
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from credro._names import Argument, ArgumentError, Message
from credro.data.base import Data
from credro.data.errors import need
from credro.training.executors import Finished, NotSent, order, raise_failures, ready, unmet
from credro.training.files import read_facts
from credro.training.job import Job, TrainingError
from credro.training.loop import Progress, Report, train_member
from credro.training.memory import keep_memory
from credro.training.run import Run

LOOK = 0.2
"""Seconds between two looks at what members report."""
GRACE = 15.0
"""Seconds that cancelled tasks have to end."""


@dataclass(frozen=True)
class Ray:
    """How Ray trains the members of a run: ``fit(..., executor=credro.Ray(address="auto"))``.

    address: None is the cluster that this process is connected to or, without one, a cluster of this machine alone,
    started for the run and ended with it; "auto" the running cluster that this machine belongs to (or
    ``RAY_ADDRESS``); else "host:port". cpus_per_member, gpus_per_member: what Ray keeps free for each; half a GPU is
    shared by two. retries: so often a member whose process or node died is begun again, from its last checkpoint;
    -1: without end.
    """

    address: str | None = None
    cpus_per_member: float = 1
    gpus_per_member: float = 0
    retries: int = 3

    def __post_init__(self) -> None:
        """Refuse what Ray would refuse after the data was read."""
        for name, least in (("cpus_per_member", 0), ("gpus_per_member", 0), ("retries", -1)):
            given, kinds = getattr(self, name), int if name == "retries" else int | float
            if isinstance(given, bool) or not isinstance(given, kinds) or not least <= given < float("inf"):
                what = "a whole number" if name == "retries" else "a number"
                raise ArgumentError(name, f"{name} must be {what} of at least {least}, got {given!r}")
        if self.gpus_per_member > 1 and self.gpus_per_member % 1:
            raise ArgumentError(
                "gpus_per_member",
                f"gpus_per_member must be a part of one GPU or whole ones, got {self.gpus_per_member!r}",
            )
        if self.address is not None and (not isinstance(self.address, str) or not self.address):
            raise ArgumentError("address", f"address must be None, 'auto' or 'host:port', got {self.address!r}")

    def device(self, asked: str | torch.device) -> torch.device:
        """Where its members train: a GPU if they are given one. asked: the ``device`` of ``fit``."""
        kind = str(asked).partition(":")[0]
        own = "cuda" if self.gpus_per_member else "cpu"
        if kind not in ("auto", own):
            raise ArgumentError(
                "device",
                f"device must be 'auto' or {own!r} where members have gpus_per_member={self.gpus_per_member:g}, "
                f"got {str(asked)!r}",
            )
        return torch.device(own)

    @property
    def threads(self) -> int:
        """Per member, where nothing is said: its CPUs."""
        return max(1, int(self.cpus_per_member))


@dataclass(frozen=True)
class Begun:
    """What a task says first. epoch: finished ones in the checkpoint that it goes on from."""

    member: int
    epoch: int
    node: str


class Inbox:
    """The actor that hears all members, on the node of the caller."""

    def __init__(self) -> None:
        """Empty."""
        self.said: list[Begun | Progress] = []

    def put(self, said: Begun | Progress) -> None:
        """From a member."""
        self.said.append(said)

    def take(self) -> list[Begun | Progress]:
        """All since the last time."""
        said, self.said = self.said, []
        return said


def run_ray(job: Job, report: Report, cluster: Ray, say: Callable[[str], None]) -> None:
    """Every member as a task. However this ends, no task goes on; the run's folder must be one that all nodes see."""
    ray = need("ray", "ray")
    with connected(cluster) as own:
        _check_room(cluster, own, say)
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        inbox = ray.remote(Inbox).options(num_cpus=0, scheduling_strategy=here).remote()
        sent = _put(replace(job, run=Run(job.run.folder.resolve())))
        task = ray.remote(_train).options(
            num_cpus=cluster.cpus_per_member, num_gpus=cluster.gpus_per_member, max_retries=cluster.retries
        )
        hear = _Hearing(report, say)
        todo, failures, busy = order(job), list[str](), dict[Any, int]()
        try:
            while todo or busy:
                for member in [i for i in todo if ready(job, i)]:
                    todo.remove(member)
                    busy[task.remote(*sent, member, inbox)] = member
                if not busy:
                    failures += unmet(job, todo)
                    break
                over, _ = ray.wait(list(busy), timeout=LOOK)
                hear(ray.get(inbox.take.remote()))
                failures += [text for ref in over if (text := _failure(job, busy.pop(ref), ref, cluster))]
        finally:
            for ref in busy:
                ray.cancel(ref, force=True)
            ray.wait(list(busy), num_returns=len(busy), timeout=GRACE) if busy else None
            ray.kill(inbox)
    raise_failures(failures)


@contextmanager
def connected(cluster: Ray) -> Iterator[bool]:
    """Within: connected to Ray. Gives whether to a cluster of our own, which ends here."""
    ray = need("ray", "ray")
    if ray.is_initialized():
        if cluster.address not in (None, "auto"):
            raise ArgumentError(
                "address", "address must not be given where this process is connected to Ray already (ray.init)"
            )
        yield False
        return
    own = cluster.address is None
    quiet = {"log_to_driver": False, "logging_level": "warning"}
    try:
        if own:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # tells nobody
            ray.init("local", include_dashboard=False, **quiet)
        else:
            ray.init(cluster.address, **quiet)
    except (ConnectionError, ValueError) as error:
        raise ArgumentError(
            "address", f"address {cluster.address!r} cannot be reached ({error}): start a cluster by `ray start --head`"
        ) from error
    try:
        yield own
    finally:
        ray.shutdown()


def _check_room(cluster: Ray, own: bool, say: Callable[[str], None]) -> None:
    """A member that fits on no node would wait for ever. A cluster may yet grow; one of our own does not."""
    nodes = [node["Resources"] for node in need("ray", "ray").nodes() if node["Alive"]]
    cpus, gpus = cluster.cpus_per_member, cluster.gpus_per_member
    if any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
        return
    have = "; ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in nodes)
    text = f"a member needs {cpus:g} CPUs and {gpus:g} GPUs, and the nodes have {have}"
    if own:
        name = "gpus_per_member" if gpus else "cpus_per_member"
        raise ArgumentError(name, Message(Argument(name), f" is more than there is: {text}"))
    say(f"note: {text}; training waits until one is added")


class _Hearing:
    """Passes on what members report, each epoch once: after a loss those since the last checkpoint come again."""

    def __init__(self, report: Report, say: Callable[[str], None]) -> None:
        self.report, self.say = report, say
        self.begun: set[int] = set()
        self.epochs: dict[int, int] = {}

    def __call__(self, said: list[Begun | Progress]) -> None:
        for one in said:
            if isinstance(one, Progress):
                if one.epoch > self.epochs.get(one.member, 0):
                    self.epochs[one.member] = one.epoch
                    self.report(one)
            elif one.member in self.begun:
                self.say(f"member {one.member} was lost with its process or node; it goes on at {one.node} "
                         f"after epoch {one.epoch}")  # fmt: skip
            else:
                self.begun.add(one.member)


def _failure(job: Job, member: int, ref: Any, cluster: Ray) -> str | None:
    """What went wrong with a task that is over, or None."""
    ray = need("ray", "ray")
    try:
        said: str | None = ray.get(ref).failure
    except ray.exceptions.RayError as error:
        return f"member {member}: Ray gave it up ({type(error).__name__}, retries={cluster.retries}): {error}"
    if said is None and not job.run.is_done(member):
        return f"member {member} was trained, but its files are not in {job.run.folder}, as seen from here"
    return said


def _put(job: Job) -> tuple[Any, Any, Any]:
    """The job and its data in the object store, where all members of a node read the same copy."""
    ray = need("ray", "ray")
    bare = replace(job, data=None, held_out=None)  # type: ignore[arg-type]
    sent = []
    for name, part in (("the network, loss or recipe", bare), ("the data", job.data), ("held_out", job.held_out)):
        try:
            with _tensors_as_arrays(isinstance(part, Data) and part.in_memory):
                sent.append(ray.put(part))
        except Exception as error:  # pickle raises whatever the object's own code raises
            raise NotSent(f"executor='ray': {name} cannot be sent to another process ({error})") from error
    return sent[0], sent[1], sent[2]


@contextmanager
def _tensors_as_arrays(wanted: bool) -> Iterator[None]:
    """Within, tensors go to the object store as arrays, which its readers map into memory and do not copy."""
    if not wanted:
        yield
        return
    serialization = need("ray.util", "ray")
    serialization.register_serializer(Tensor, serializer=_as_array, deserializer=_as_tensor)
    try:
        yield
    finally:
        serialization.deregister_serializer(Tensor)


def _as_array(tensor: Tensor) -> tuple[Any, torch.dtype, tuple[int, ...]]:
    """As bytes: arrays do not know every type."""
    plain = tensor.detach().cpu().contiguous()
    return plain.reshape(-1).view(torch.uint8).numpy(), plain.dtype, tuple(plain.shape)


def _as_tensor(packed: tuple[Any, torch.dtype, tuple[int, ...]]) -> Tensor:
    array, dtype, shape = packed
    if not array.size:
        return torch.empty(shape, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # not to be written to, and samples never are
        return torch.from_numpy(array).view(dtype).reshape(shape)


def _train(bare: Job, data: Data, held_out: Data | None, member: int, inbox: Any) -> Finished:
    """A task's life. Ray begins it again when its process or node dies; what the member raises is told and no more."""
    ray, node = need("ray", "ray"), platform.node()
    keep_memory()
    job = replace(bare, data=data, held_out=held_out)
    if not job.run.config_path.exists():
        return Finished(
            f"member {member}: node {node} does not see {job.run.folder}: the run's folder must lie on storage that "
            f"all nodes see at the same path"
        )

    def report(progress: Progress) -> None:
        heard = inbox.put.remote(progress)
        if progress.done:
            ray.get(heard)  # before the task is over

    inbox.put.remote(Begun(member, int(read_facts(job.run.state(member)).get("epoch", 0)), node))
    try:
        train_member(job, member, report)
    except TrainingError as error:
        return Finished(str(error))
    except Exception:
        return Finished(f"member {member}: {traceback.format_exc()}")
    return Finished(None)
