"""Real Ray on loopback: two nodes, of which one dies. Skipped where Ray is missing (pip install 'credro[ray]')."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import nn

import credro
from credro._names import ArgumentError
from credro.data import as_data
from credro.training.cluster import Begun, _as_array, _as_tensor, _Hearing, _tensors_as_arrays, _train
from credro.training.job import TrainingError
from credro.training.loop import Progress
from credro.training.recipe import Recipe
from credro.training.run import Run
from tests.training.common import assert_bitwise, blobs, job_of, small_net, tiny_images, trained, weights

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray's own switch for 127.0.0.1 and nothing else
try:
    import ray
    from ray.cluster_utils import Cluster
except ModuleNotFoundError:
    ray = None
needs_ray = pytest.mark.skipif(ray is None, reason="Ray is missing: pip install 'credro[ray]'")

FAST = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
"""A dead node is noticed within a second or so, not in half a minute."""


def slow_loss(output, target):
    """So that there is a middle of training to be killed in."""
    if torch.is_grad_enabled():
        time.sleep(0.02)
    return nn.functional.cross_entropy(output, target, reduction="none")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU each, on 127.0.0.1; the caller is on a third without any, so that either may die."""
    found = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0, "include_dashboard": False, "_system_config": FAST,
            "object_store_memory": 100 << 20,
        },
    )  # fmt: skip
    for _ in range(2):
        add_node(found)
    yield found
    ray.shutdown()
    found.shutdown()


def add_node(cluster):
    return cluster.add_node(num_cpus=1, object_store_memory=100 << 20)


class Kill:
    """A callback that takes a node away when both members are in the middle of training."""

    def __init__(self, cluster):
        self.cluster, self.epochs, self.done = cluster, {}, False

    def on_epoch(self, epoch):
        self.epochs[epoch.member] = epoch.record.epoch
        if not self.done and len(self.epochs) == 2 and min(self.epochs.values()) >= 3:
            self.done = True
            self.cluster.remove_node(list(self.cluster.worker_nodes)[-1], allow_graceful=False)
            add_node(self.cluster)


@needs_ray
def test_a_node_that_dies_changes_no_weight(cluster, tmp_path, capfd):
    options = {"members": 2, "recipe": Recipe(epochs=12, batch_size=16, lr=0.05), "loss": slow_loss}
    trained(small_net, blobs(), tmp_path / "alone", **options)
    kill = Kill(cluster)
    trained(
        small_net, blobs(), tmp_path / "ray", executor=credro.Ray(cluster.address), checkpoint_seconds=0,
        progress="plain", callbacks=[kill], **options,
    )  # fmt: skip
    assert kill.done
    said = capfd.readouterr().err
    lost = [line for line in said.splitlines() if "was lost with its process or node" in line]
    assert len(lost) == 1, said
    assert int(lost[0].rpartition(" ")[2]) >= 3, "from its checkpoint, not from the beginning"
    assert "24/24 epochs" in said
    assert_bitwise(weights(tmp_path / "alone"), weights(tmp_path / "ray"))
    assert [len((Run(tmp_path / "ray").member(i) / "history.jsonl").read_text().splitlines()) for i in (0, 1)] == [
        12,
        12,
    ]


class KillOften(Kill):
    """Takes a node away after every fifth epoch that is new."""

    kills = 0

    def on_epoch(self, epoch):
        self.epochs[epoch.member] = epoch.record.epoch
        if sum(self.epochs.values()) // 15 > self.kills:
            self.kills += 1
            nodes = sorted(self.cluster.worker_nodes, key=lambda node: node.node_id)
            self.cluster.remove_node(nodes[self.kills % 2], allow_graceful=False)
            add_node(self.cluster)


@needs_ray
@pytest.mark.slow
def test_nodes_that_die_again_and_again_change_no_weight(cluster, tmp_path):
    """Five ResNet-8 of CreDRO with augmentation on two nodes, of which one is taken away five times or more."""
    recipe = Recipe(epochs=20, batch_size=16, lr=0.05, augment="crop-flip")
    options = {"members": 5, "recipe": recipe, "loss": slow_loss}
    trained("resnet8", tiny_images(), tmp_path / "alone", **options)
    kill = KillOften(cluster)
    trained(
        "resnet8", tiny_images(), tmp_path / "ray", executor=credro.Ray(cluster.address, retries=-1),
        checkpoint_seconds=0, callbacks=[kill], **options,
    )  # fmt: skip
    assert kill.kills >= 5
    assert_bitwise(weights(tmp_path / "alone"), weights(tmp_path / "ray"))


@dataclass(frozen=True)
class Dies:
    """A loss that takes its process with it: at its tenth step, ``times`` times over all processes."""

    marks: str
    times: int = 1
    calls: list = field(default_factory=list, repr=False, compare=False)

    def __call__(self, output, target):
        if torch.is_grad_enabled():
            self.calls.append(1)
            if len(self.calls) == 10 and len(os.listdir(self.marks)) < self.times:
                Path(self.marks, uuid.uuid4().hex).touch()
                os._exit(7)
        return nn.functional.cross_entropy(output, target, reduction="none")


@needs_ray
def test_a_process_that_dies_is_begun_again_and_given_up_after_its_retries(cluster, tmp_path, capfd):
    """A method in which all members wait for one, which dies: once, and once too often."""
    options = {"members": 2, "method": "crerl", "recipe": Recipe(epochs=4, batch_size=16, lr=0.05)}
    options |= {"checkpoint_seconds": 0, "progress": "plain"}
    for name in ("marks", "more"):
        (tmp_path / name).mkdir()
    trained(small_net, blobs(), tmp_path / "alone", loss=Dies(str(tmp_path / "marks"), 0), **options)
    capfd.readouterr()
    trained(
        small_net, blobs(), tmp_path / "ray", loss=Dies(str(tmp_path / "marks")), executor=credro.Ray(cluster.address),
        **options,
    )  # fmt: skip
    assert "was lost with its process or node" in capfd.readouterr().err
    assert_bitwise(weights(tmp_path / "alone"), weights(tmp_path / "ray"))
    with pytest.raises(
        TrainingError, match=r"member \d: Ray gave it up \(WorkerCrashedError, retries=0\)(?s:.*)it needs"
    ):
        trained(
            small_net, blobs(), tmp_path / "given up", loss=Dies(str(tmp_path / "more")),
            executor=credro.Ray(cluster.address, retries=0), **options,
        )  # fmt: skip


def diverges(output, target):
    return nn.functional.cross_entropy(output, target, reduction="none") * float("inf")


@needs_ray
def test_what_a_member_raises_is_told_once_and_not_tried_again(cluster, tmp_path):
    with pytest.raises(TrainingError, match="member 0: the loss became inf") as raised:
        trained(small_net, blobs(), tmp_path, loss=diverges, executor=credro.Ray(cluster.address))
    assert str(raised.value).count("member 0") == 1
    assert "Traceback" not in str(raised.value)


@needs_ray
def test_what_a_notebook_defines_is_sent_and_images_are_shared(cluster, tmp_path):
    """Functions without a name go along; images are augmented as by one process, and prediction is the same."""
    recipe = Recipe(epochs=2, batch_size=16, lr=0.05, augment="crop-flip")
    held_out = tiny_images(20)
    options = {"recipe": recipe, "members": 3, "held_out": held_out}
    loss = lambda output, target: nn.functional.cross_entropy(output, target, reduction="none")  # noqa: E731
    for name, executor in (("alone", "sequential"), ("ray", credro.Ray(cluster.address))):
        trained("resnet8", tiny_images(), tmp_path / name, executor=executor, loss=loss, **options)
    assert_bitwise(weights(tmp_path / "alone"), weights(tmp_path / "ray"))
    assert Run(tmp_path / "ray").config().execution.executor == "ray"


@needs_ray
def test_arrays_in_the_store_are_the_tensors_and_are_not_copied(cluster):
    ray.init(cluster.address, log_to_driver=False)
    try:
        data = tiny_images()
        with _tensors_as_arrays(True):
            ref = ray.put(data)
        one, other = ray.get(ref), ray.get(ref)
        assert torch.equal(one.samples, data.samples)
        assert torch.equal(one.labels, data.labels)
        assert one.samples.data_ptr() == other.samples.data_ptr()  # the store's own memory
        assert one.fingerprint() == data.fingerprint()
        plain = ray.put(data)
        assert ray.get(plain).samples.data_ptr() != ray.get(plain).samples.data_ptr()  # without it, one copy a reader
        with pytest.raises(ArgumentError, match="address must not be given where this process is connected"):
            trained(small_net, blobs(), executor=credro.Ray(cluster.address))
        trained(small_net, blobs(), executor="ray")  # the connection that is there, which stays
        assert ray.is_initialized()
    finally:
        ray.shutdown()


@needs_ray
def test_a_folder_that_a_node_does_not_see_is_said_before_training(cluster, tmp_path):
    """As on a cluster whose nodes share no disk: the task's own first look."""
    job = job_of(tmp_path / "elsewhere", small_net, as_data(blobs()), classes=3)
    said = _train(job, job.data, None, 0, None)
    assert "does not see" in said.failure
    assert "all nodes see" in said.failure


SCRIPT = """
    import sys, credro
    sys.path.insert(0, {root!r})
    from tests.training.common import blobs, small_net
    from tests.training.test_cluster import slow_loss
    credro.fit(small_net, blobs(), members=2, recipe=credro.Recipe(epochs=120, batch_size=16, lr=0.05), loss=slow_loss,
               executor=credro.Ray({address!r}), threads=1, device="cpu", progress="plain", checkpoint_seconds=0,
               out={out!r})
"""


@needs_ray
@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_an_interrupted_run_leaves_no_task_behind_and_goes_on(cluster, tmp_path, stop):
    """Ctrl-C, and a caller that is killed."""
    script = tmp_path / "script.py"
    root = str(Path(__file__).parents[2])
    script.write_text(textwrap.dedent(SCRIPT.format(root=root, address=cluster.address, out=str(tmp_path / "run"))))
    run = Run(tmp_path / "run")
    caller = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    assert waited(lambda: all(epochs(run, i) >= 2 for i in range(2)), 60), caller.stderr
    caller.send_signal(stop)
    caller.wait(30)
    for i in range(2):  # whoever trained a member has let go of it
        with run.lock(f"members/{i:02d}/lock", wait=10):
            done = epochs(run, i)
            assert 2 <= done < 120
            assert run.state(i).exists()
            time.sleep(0.3)
            assert epochs(run, i) == done
    options = {"members": 2, "recipe": Recipe(epochs=120, batch_size=16, lr=0.05)}
    trained(small_net, blobs(), run.folder, executor=credro.Ray(cluster.address), loss=slow_loss, **options)
    trained(small_net, blobs(), tmp_path / "alone", **options)
    assert_bitwise(weights(run.folder), weights(tmp_path / "alone"))


def epochs(run, member):
    path = run.member(member) / "history.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def waited(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.05)
    return condition()


def test_each_epoch_is_reported_once_though_it_was_trained_twice():
    told, said = [], []
    hear = _Hearing(told.append, said.append)
    progress = [Progress(0, epoch, 5, 1.0, None, 0.1) for epoch in (1, 2, 3)]
    hear([Begun(0, 0, "a"), *progress])
    hear([Begun(0, 1, "b"), *progress[1:], Progress(0, 4, 5, 1.0, None, 0.1)])
    assert [one.epoch for one in told] == [1, 2, 3, 4]
    assert said == ["member 0 was lost with its process or node; it goes on at b after epoch 1"]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).reshape(3, 4),
        torch.randn(2, 3).to(torch.bfloat16),
        torch.zeros(0, 5),
        torch.tensor(3.0),
        torch.randn(4, 6).T,
        torch.tensor([True, False]),
    ],
)
def test_tensors_survive_the_way_as_arrays(tensor):
    back = _as_tensor(_as_array(tensor))
    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"cpus_per_member": -1}, "cpus_per_member"),
        ({"gpus_per_member": "1"}, "gpus_per_member"),
        ({"gpus_per_member": 1.5}, "gpus_per_member"),
        ({"cpus_per_member": float("inf")}, "cpus_per_member"),
        ({"cpus_per_member": float("nan")}, "cpus_per_member"),
        ({"retries": 1.5}, "retries"),
        ({"retries": -2}, "retries"),
        ({"address": ""}, "address"),
    ],
)
def test_what_ray_cannot_do_is_refused_at_once(given, name):
    with pytest.raises(ArgumentError) as raised:
        credro.Ray(**given)
    assert raised.value.argument == name


def test_the_device_is_the_members_and_not_the_callers():
    assert credro.Ray().device("auto") == torch.device("cpu")
    assert credro.Ray(gpus_per_member=0.5).device("auto") == torch.device("cuda")
    with pytest.raises(ArgumentError, match=r"device must be 'auto' or 'cpu'.*gpus_per_member=0, got 'cuda'"):
        trained(small_net, blobs(), executor="ray", device="cuda")
    with pytest.raises(ArgumentError, match="device must be 'auto' or 'cuda'"):
        trained(small_net, blobs(), executor=credro.Ray(gpus_per_member=1), device="cpu")
