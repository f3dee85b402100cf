"""Gradient accumulation: one step on the mean loss of k batches, each with a selection of its own."""

import pytest
import torch

from credro._names import ArgumentError
from credro.data.adapt import as_data
from credro.methods import make
from credro.training.estimate import estimate
from credro.training.executors import choose
from credro.training.feed import Feed
from credro.training.loop import Trainer
from credro.training.recipe import Recipe
from credro.training.run import RunError
from tests.training.common import assert_bitwise, blobs, job_of, small_net, trained, weights

RECIPE = Recipe(epochs=3, batch_size=8, lr=0.05, weight_decay=1e-3, accumulate=3, clip=0.5)  # 8 batches: 3 + 3 + 2


def by_hand(job, i):
    """Member i, by one graph for all batches of a step. Its CVaR: the mean of the largest losses, by sorting."""
    recipe, net = job.recipe, job.network(i).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    feed, delta = Feed(job.data, job.inputs, recipe, job.device, i), job.member(i).traits()["delta"]
    assert delta == 0.5
    steps = 0
    for epoch in range(recipe.epochs):
        batches = list(feed.epoch(epoch))
        for first in range(0, len(batches), 3):
            parts = []
            for x, y in batches[first : first + 3]:
                losses = torch.nn.functional.cross_entropy(net(x), y, reduction="none").sort(descending=True).values
                parts.append(losses[: len(x) // 2].mean())
            optimizer.zero_grad()
            torch.stack(parts).mean().backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), recipe.clip)
            progress = (epoch + first / len(batches)) / recipe.epochs
            cosine = 0.5 * (1 + torch.cos(torch.tensor(torch.pi * progress, dtype=torch.float64)))
            optimizer.param_groups[0]["lr"] = recipe.lr * float(cosine)
            optimizer.step()
            steps += 1
    assert steps == recipe.epochs * 3
    return net


def job(folder, **options):
    method = make("credro", delta_g=0.5)
    return job_of(folder, small_net, as_data(blobs()), method=method, recipe=RECIPE, classes=3, **options)


def test_it_is_one_step_on_the_mean_of_the_batches_losses(tmp_path):
    trainer = Trainer(job(tmp_path), 0)
    while not trainer.over:
        trainer.train_epoch(lambda: True)
    wanted = by_hand(job(tmp_path / "other"), 0).state_dict()
    for name, t in trainer.net.state_dict().items():
        torch.testing.assert_close(t, wanted[name], rtol=1e-4, atol=1e-6)


def test_with_the_mean_risk_it_is_the_large_batch(tmp_path):
    """Without a selection, and with batches of one size, k batches are one of k times the size."""
    for name, size, k in (("many", 8, 4), ("one", 32, 1)):
        recipe = Recipe(epochs=3, batch_size=size, accumulate=k, lr=0.05)
        trained(small_net, blobs(), tmp_path / name, method="de", recipe=recipe)
    many, one = weights(tmp_path / "many"), weights(tmp_path / "one")
    for name, t in one.items():
        torch.testing.assert_close(t, many[name], rtol=1e-4, atol=1e-6)


def test_resumed_it_is_bitwise_the_same(tmp_path):
    whole = Trainer(job(tmp_path / "whole"), 0)
    while not whole.over:
        whole.train_epoch(lambda: True)
    for _ in range(RECIPE.epochs):
        part = Trainer(job(tmp_path / "cut", checkpoint_seconds=0.0), 0)
        part.train_epoch(lambda: True)
    assert part.over
    assert_bitwise(dict(whole.net.state_dict()), dict(part.net.state_dict()))


def test_it_is_not_stacked_and_the_estimate_counts_steps(tmp_path):
    with pytest.raises(ValueError, match="accumulate=3 is for members trained one by one"):
        choose(job(tmp_path), "stacked", 2)
    assert choose(job(tmp_path, held_out=None), "auto", 1) == "sequential"
    assert estimate(job(tmp_path), "sequential", 1).steps == 3


def test_another_number_is_another_run(tmp_path):
    trained(small_net, blobs(), tmp_path, recipe=RECIPE)
    with pytest.raises(RunError, match=r"recipe\.accumulate: 3 there, 1 now"):
        trained(small_net, blobs(), tmp_path, recipe=RECIPE.with_(accumulate=1))
    with pytest.raises(ArgumentError, match="accumulate must be a whole number of at least 1"):
        Recipe(accumulate=0)
