"""Members side by side: the same answers, in order, and the user's setting of the cores left alone."""

import json
import threading

import pytest
import torch

import credro
from credro.training import executors
from credro.training.executors import own_threads
from credro.training.threads import side_by_side, threads
from tests.training.common import digits, job_of, tiny_images, trained

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


def test_what_0_stood_for_is_recorded_and_kept(tmp_path):
    with threads(2):
        run = trained("mlp", digits(40), tmp_path, threads=0).run
        assert run.config()["execution"]["threads"] == 1
    (run.member(0) / "done.json").unlink()
    config = run.config()
    config["execution"]["threads"] = 2  # as if it had been started on another machine
    run.config_path.write_text(json.dumps(config))
    trained("mlp", digits(40), tmp_path, threads=0)
    assert run.config()["execution"]["threads"] == 2


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
        alone = torch.stack([ens.rule.scores(net, x) for net in ens.nets])
    torch.testing.assert_close(found[1], alone, rtol=1e-5, atol=1e-5)
