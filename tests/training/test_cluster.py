"""Real Ray on loopback: two nodes, of which one dies. Skipped where Ray is missing (pip install 'credro[ray]')."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import credro
from credro._names import ArgumentError
from credro.training.cluster import Begun, _as_array, _as_tensor, _Hearing
from credro.training.job import TrainingError
from credro.training.loop import Progress
from credro.training.recipe import Recipe
from credro.training.run import Run
from tests.training.common import assert_bitwise, blobs, small_net, tiny_images, trained, weights

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
    assert [len((Run(tmp_path / "ray").member(i) / "history.jsonl").read_text().splitlines()) for i in (0, 1)] == [12, 12]
