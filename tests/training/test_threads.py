"""Members side by side: the same answers, in order, and the user's setting of the cores left alone."""

import threading

import pytest
import torch
from torch import nn

import credro
from credro.members import Member
from credro.training import executors, stacked
from credro.training.executors import own_threads
from credro.training.progress import Display
from credro.training.records import Execution
from credro.training.run import RunError
from credro.training.threads import side_by_side, threads
from tests.training.common import assert_bitwise, blobs, digits, job_of, tiny_images, trained, weights

CPU = torch.device("cpu")


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_answers_come_in_order_and_the_setting_is_put_back(cores):
    before = torch.get_num_threads()
    with threads(cores):
        with side_by_side(5, CPU) as each:
            assert each(lambda i: i * i, range(5)) == [0, 1, 4, 9, 16]
        assert torch.get_num_threads() == cores
    assert torch.get_num_threads() == before


def test_two_really_run_at_once_and_each_has_one_core():
    meeting = threading.Barrier(2, timeout=20)

    def work(_: int) -> int:
        meeting.wait()  # passes only if both are here
        return torch.get_num_threads()

    with threads(2), side_by_side(2, CPU) as each:
        assert each(work, [0, 1]) == [1, 1]


def test_a_failure_is_raised():
    def work(i: int) -> float:
        return 1 / i

    with pytest.raises(ZeroDivisionError), threads(2), side_by_side(2, CPU) as each:
        each(work, [1, 0])


def test_a_small_network_has_one_thread_and_a_larger_one_all(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(executors.os, "cpu_count", lambda: 4)
    small, large = job_of(tmp_path, "mlp", digits(200)), job_of(tmp_path, "resnet8", tiny_images(64, 32))
    assert own_threads(small, "sequential", 4) == own_threads(small, "stacked", 4) == 1
    assert own_threads(large, "sequential", 4) == 4
    assert own_threads(large, "processes", 2) == 2  # the cores by the processes
    many = job_of(tmp_path, "mlp", digits(200), members=200)
    assert own_threads(many, "stacked", 4) == 4  # all at once are not small
    assert own_threads(many, "sequential", 4) == 1


def larger_net():
    """One with so much to do that it is given all the threads there are."""
    return nn.Sequential(nn.Linear(6, 800), nn.ReLU(), nn.Linear(800, 800), nn.ReLU(), nn.Linear(800, 3))


def killed_after_an_epoch(folder, executor, monkeypatch):
    """A run of three epochs that stopped after its first checkpoint, and the threads that its steps were done with."""

    def killed(display, progress):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Display, "__call__", killed)
        with pytest.raises(KeyboardInterrupt):
            long_run(folder, executor)


def long_run(folder, executor, **options):
    recipe = credro.Recipe(epochs=3, batch_size=32, lr=0.01)
    options = {"threads": 0, "checkpoint_seconds": 0.0, **options}
    return trained(larger_net, blobs(), folder, recipe=recipe, executor=executor, **options)


@pytest.fixture
def used(monkeypatch):
    """The threads that were set whenever a batch's loss was computed."""
    found = set()
    loss = Member.loss

    def noted(*args):
        found.add(torch.get_num_threads())
        return loss(*args)

    monkeypatch.setattr(Member, "loss", noted)
    monkeypatch.setattr(stacked, "in_one_go", lambda _: False)  # a stack asks every member, too
    return found


@pytest.mark.parametrize("count", [1, 2])
def test_what_0_stood_for_is_recorded(tmp_path, count):
    with threads(count):
        large = trained(larger_net, blobs(), tmp_path / "large", threads=0).run.config()
        small = trained("mlp", digits(40), tmp_path / "small", threads=0).run.config()
    assert (large.execution.threads, small.execution.threads) == (count, 1)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_run_goes_on_with_the_threads_it_was_started_with(tmp_path, monkeypatch, used, executor):
    """On a machine with other cores: the same arithmetic, so the same weights."""
    monkeypatch.setattr(executors, "goes_abreast", lambda _: False)  # there each member has one thread, always
    with threads(2):
        long_run(tmp_path / "whole", executor)
        killed_after_an_epoch(tmp_path / "part", executor, monkeypatch)
        assert used == {2}
    used.clear()
    assert torch.get_num_threads() == 1
    run = long_run(tmp_path / "part", "auto").run
    assert used == {2}
    assert run.config().execution == Execution(executor, 2)
    assert torch.get_num_threads() == 1
    assert_bitwise(weights(tmp_path / "whole"), weights(tmp_path / "part"))


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_other_threads_that_are_asked_for_by_number_are_refused(tmp_path, monkeypatch, executor):
    with threads(2):
        killed_after_an_epoch(tmp_path, executor, monkeypatch)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.safetensors")}
    with pytest.raises(RunError, match=r"execution\.threads: 2 there, 1 now"):
        long_run(tmp_path, executor, threads=1)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.safetensors")} == before
    long_run(tmp_path, executor, threads=2)


@pytest.mark.parametrize("method", ["credro", "crebnn"])
def test_scores_do_not_depend_on_the_number_of_cores(method, tmp_path):
    data = credro.data.load("digits", split="train").subset(torch.arange(200))
    ens = credro.fit("mlp", data, method=method, members=3, recipe=credro.Recipe(epochs=1), out=tmp_path,
                     executor="sequential", progress="none")  # fmt: skip
    found = []
    for cores in (1, 2):
        with threads(cores):
            found.append(ens.scores(data, cache=False))
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)
    with torch.no_grad():  # and they are what the members say alone
        x = ens.inputs(data.batch(torch.arange(200)))
        alone = torch.stack([ens.method.head.scores(net, x) for net in ens.nets])
    torch.testing.assert_close(found[1], alone, rtol=1e-5, atol=1e-5)
