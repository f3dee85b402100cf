"""The time a run is said to take, against the time it takes."""

import time

import pytest
import torch

from credro.training import estimate as module
from credro.training.estimate import Estimate, estimate, spoken
from credro.training.executors import run_sequential, run_stacked
from credro.training.recipe import Recipe
from tests.training.common import digits, job_of, tiny_images


@pytest.mark.parametrize(
    ("net", "data", "run", "executor", "members", "epochs"),
    [
        ("mlp", digits(1000), run_sequential, "sequential", 2, 15),
        ("mlp", digits(1000), run_stacked, "stacked", 8, 15),
        ("resnet8", tiny_images(128, 16), run_sequential, "sequential", 2, 4),
    ],
)
def test_within_a_factor_of_three(tmp_path, net, data, run, executor, members, epochs):
    """On a machine that others use: the median of three goes, each against its own run."""
    recipe, ratios = Recipe(epochs=epochs, batch_size=32, lr=0.02, early_stop=epochs), []
    for i in range(3):
        job = job_of(tmp_path / str(i), net, data, members=members, recipe=recipe, held_out=data)
        said = estimate(job, executor, 1).seconds
        started = time.perf_counter()
        run(job, lambda _: None)
        ratios.append(said / (time.perf_counter() - started))
    assert 1 / 3 < sorted(ratios)[1] < 3, ratios


def test_it_leaves_the_generator_and_the_run_alone(tmp_path):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for executor in ("sequential", "stacked", "processes"):
        estimate(job_of(tmp_path / "run", "mlp", digits(60)), executor, 2)
    assert torch.equal(before, torch.get_rng_state())
    assert not (tmp_path / "run").exists()


def test_what_is_done_takes_no_time_and_more_workers_less(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_steps_of_one", lambda job: 0.5)
    job = job_of(tmp_path, "mlp", digits(64), members=4, recipe=Recipe(epochs=10, batch_size=16))
    assert estimate(job, "sequential", 1).seconds == pytest.approx(4 * 10 * 4 * 0.5)
    assert estimate(job, "sequential", 1, finished=30).seconds == pytest.approx(10 * 4 * 0.5)
    assert estimate(job, "sequential", 1, finished=40).seconds == 0
    two = estimate(job, "processes", 2).seconds - module.START
    assert two == pytest.approx(module.CROWDED * 2 * 10 * 4 * 0.5)  # two rounds
    waiting = job_of(tmp_path, "mlp", digits(64), members=4, recipe=Recipe(epochs=10, batch_size=16), method="crerl")
    monkeypatch.setattr(module, "_looks", lambda job: 0.0)
    assert estimate(waiting, "processes", 3).seconds - module.START == pytest.approx(two)  # the first alone, then three


def test_its_sentence():
    assert str(Estimate(250, 5, 40, 20, True)) == (
        "about 4 min on this machine (5 members, 40 epochs of 20 steps; early stopping may end sooner)"
    )
    assert str(Estimate(3, 1, 2, 1, False)) == "about 3 s on this machine (1 member, 2 epochs of 1 step)"
    assert [spoken(s) for s in (0.1, 89, 91, 3600, 7200)] == ["1 s", "89 s", "2 min", "60 min", "2.0 h"]
