"""Members on several GPUs. The placement is shown by made-up devices on the CPU; real ones need a machine with two."""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from credro._names import ArgumentError
from credro.data import as_data
from credro.training import executors
from credro.training.devices import VISIBLE, gpus, next_device, only, places, visible
from credro.training.executors import choose, run_processes
from credro.training.recipe import Recipe
from tests.training.common import assert_bitwise, blobs, job_of, small_net, tiny_images, trained, weights


def test_visible_gpus_have_the_names_that_the_user_gave():
    assert visible(3, None) == ("0", "1", "2")
    assert visible(2, "5,2") == ("5", "2")
    assert visible(2, " GPU-8c1f, MIG-a/1/0") == ("GPU-8c1f", "MIG-a/1/0")
    assert visible(1, "3,-1,2") == ("3",)  # CUDA ends at the first that it does not know
    assert visible(0, "") == ()


@given(st.integers(1, 9), st.integers(0, 40))
def test_workers_go_round_the_devices(devices, workers):
    """Against the definition: worker k on device k mod D."""
    names = [f"gpu {i}" for i in range(devices)]
    taken = []
    for _ in range(workers):
        taken.append(next_device(names, taken))
    assert taken == [names[k % devices] for k in range(workers)]


@given(st.integers(1, 5), st.lists(st.integers(0, 50), max_size=60))
def test_the_place_of_a_worker_that_died_is_filled_again(devices, deaths):
    """No device has two workers more than another, whoever dies and is replaced."""
    names = [str(i) for i in range(devices)]
    taken = []
    for _ in range(2 * devices):
        taken.append(next_device(names, taken))
    for death in deaths:
        taken.pop(death % len(taken))
        taken.append(next_device(names, taken))
        load = Counter(taken)
        assert set(load.values()) == {2}


def test_how_many_workers_there_are():
    eight = [str(i) for i in range(8)]
    assert places(eight, 1, None) == 8
    assert places(eight, 3, None) == 24
    assert places(eight, 3, 5) == 5
    assert places(eight, 1, 20) == 8
    assert places((), 3, None) == os.cpu_count()
    assert places((), 1, 5) == 5
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(ArgumentError, match="members_per_device must be a whole number of at least 1"):
            trained(small_net, blobs(), members_per_device=wrong)


def test_auto_takes_processes_where_there_are_several_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setenv(VISIBLE, "3,4,5,6,7,0,1,2")
    assert gpus(torch.device("cuda")) == ("3", "4", "5", "6", "7", "0", "1", "2")
    assert gpus(torch.device("cuda:1")) == ("4",)
    assert gpus(torch.device("cpu")) == gpus(torch.device("mps")) == ()
    monkeypatch.setattr(executors, "_stacks_well", lambda job: False)
    job = replace(job_of(tmp_path, "resnet8", tiny_images(), members=8), device=torch.device("cuda"))
    assert choose(job, "auto", places(gpus(job.device), 1, None)) == "processes"
    assert choose(job, "auto", places(gpus(torch.device("cuda:1")), 1, None)) == "sequential"


def test_what_a_process_sees_is_put_back(monkeypatch):
    monkeypatch.delenv(VISIBLE, raising=False)
    with only("3"):
        assert os.environ[VISIBLE] == "3"
    assert VISIBLE not in os.environ
    monkeypatch.setenv(VISIBLE, "1,2")
    with pytest.raises(RuntimeError), only("2"):
        raise RuntimeError
    assert os.environ[VISIBLE] == "1,2"
    with only(None):
        assert os.environ[VISIBLE] == "1,2"


class Notes:
    """A loss that writes down which process sees which device."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, output, target):
        Path(self.folder, str(os.getpid())).write_text(json.dumps(os.environ.get(VISIBLE)))
        return nn.functional.cross_entropy(output, target, reduction="none")


def test_each_worker_sees_its_own_device(tmp_path):
    """Three made-up devices and four workers on the CPU: what they see, and that the weights are the same."""
    (tmp_path / "notes").mkdir()
    recipe = Recipe(epochs=3, batch_size=16, lr=0.05)
    trained(small_net, blobs(), tmp_path / "alone", members=4, recipe=recipe)
    job = job_of(
        tmp_path / "run", small_net, as_data(blobs()), members=4, classes=3, recipe=recipe,
        own_loss=Notes(str(tmp_path / "notes")),
    )  # fmt: skip
    before = os.environ.get(VISIBLE)
    run_processes(job, lambda progress: None, 4, devices=("7", "GPU-8c1f", "2"))
    seen = Counter(json.loads(path.read_text()) for path in (tmp_path / "notes").iterdir())
    assert seen == {"7": 2, "GPU-8c1f": 1, "2": 1}
    assert os.environ.get(VISIBLE) == before
    job.run.config_path.write_text((tmp_path / "alone" / "config.json").read_text())
    assert_bitwise(weights(tmp_path / "alone"), weights(tmp_path / "run"))


@pytest.mark.skipif(
    torch.cuda.device_count() < 2,
    reason="no two GPUs here: not shown that members trained on several are those of one after another on the first",
)
def test_members_on_all_gpus_are_those_of_one(tmp_path):
    recipe = Recipe(epochs=2, batch_size=16, lr=0.05)
    for name, options in (
        ("all", {"executor": "processes", "device": "auto"}),
        ("two each", {"executor": "processes", "device": "auto", "members_per_device": 2}),
        ("one", {"executor": "sequential", "device": "cuda:0"}),
    ):
        trained("resnet8", tiny_images(), tmp_path / name, members=4, recipe=recipe, **options)
    assert_bitwise(weights(tmp_path / "all"), weights(tmp_path / "one"))
    assert_bitwise(weights(tmp_path / "two each"), weights(tmp_path / "one"))
