"""A balanced sampler draws every class equally often, and the same at every reading of an epoch."""

from collections import Counter

import pytest
import torch

from credro._names import ArgumentError
from credro.data.adapt import as_data
from credro.training.balance import balanced_order
from credro.training.feed import Feed, Inputs
from credro.training.loop import Trainer
from credro.training.recipe import Recipe
from credro.training.run import RunError
from tests.training.common import assert_bitwise, blobs, job_of, small_net, trained, weights

RECIPE = Recipe(epochs=3, batch_size=16, lr=0.05, sampler="balanced")


def uneven():
    """Classes 0, 1 and 2 with 50, 10 and 4 samples."""
    return blobs()[0], torch.tensor([0] * 50 + [1] * 10 + [2] * 4)


def feed_of(member=0, recipe=RECIPE):
    data = as_data(uneven())
    return Feed(data, Inputs.of(data), recipe, torch.device("cpu"), member)


def test_every_class_is_equally_often_in_an_epoch():
    feed = feed_of()
    for epoch in range(5):
        counts = Counter(feed.data.labels[feed.order(epoch)].tolist())
        assert sorted(counts.values()) == [21, 21, 22]  # 64 draws
        assert sum(len(y) for _, y in feed.epoch(epoch)) == 64


def test_samples_of_a_class_are_drawn_evenly_and_with_replacement():
    labels = torch.tensor([0] * 50 + [7] * 4)
    draws = torch.Generator().manual_seed(0)
    counts = Counter(i for _ in range(400) for i in balanced_order(labels, draws).tolist())
    assert all(abs(counts[i] / 400 - 27 / 50) < 0.2 for i in range(50))
    assert all(abs(counts[i] / 400 - 27 / 4) < 0.6 for i in range(50, 54))


def test_the_order_is_mixed():
    y = feed_of().data.labels[feed_of().order(0)]
    assert int((y[1:] != y[:-1]).sum()) > 15  # sorted by class it would be 2


def test_orders_belong_to_member_and_epoch():
    assert torch.equal(feed_of().order(1), feed_of().order(1))
    assert not torch.equal(feed_of().order(1), feed_of().order(2))
    assert not torch.equal(feed_of(0).order(1), feed_of(1).order(1))


def test_soft_labels_count_as_their_largest_class():
    soft = torch.nn.functional.one_hot(uneven()[1], 3).float() * 0.7 + 0.1
    seeds = (torch.Generator().manual_seed(3) for _ in range(2))
    assert torch.equal(balanced_order(soft, next(seeds)), balanced_order(uneven()[1], next(seeds)))


def test_resumed_and_by_processes_it_is_bitwise_the_same(tmp_path):
    for executor in ("sequential", "processes"):
        trained(small_net, uneven(), tmp_path / executor, recipe=RECIPE, executor=executor, workers=2)
    assert_bitwise(weights(tmp_path / "sequential"), weights(tmp_path / "processes"))
    job = job_of(tmp_path / "cut", small_net, as_data(uneven()), recipe=RECIPE, classes=3, checkpoint_seconds=0.0)
    Trainer(job, 0).train_epoch(lambda: True)
    trainer = Trainer(job, 0)
    assert trainer.epoch == 1
    while not trainer.over:
        trainer.train_epoch(lambda: True)
    whole = {k[2:]: t for k, t in weights(tmp_path / "sequential").items() if k.startswith("0.")}
    assert_bitwise(whole, dict(trainer.net.state_dict()))


def test_stacked_trains_the_same(tmp_path):
    for executor in ("sequential", "stacked"):
        trained(small_net, uneven(), tmp_path / executor, recipe=RECIPE, executor=executor)
    one, stacked = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    for name, t in one.items():
        torch.testing.assert_close(t, stacked[name], rtol=1e-4, atol=1e-5)


def test_another_sampler_is_another_run(tmp_path):
    trained(small_net, uneven(), tmp_path, recipe=RECIPE)
    with pytest.raises(RunError, match=r"recipe\.sampler: 'balanced' there, 'shuffle' now"):
        trained(small_net, uneven(), tmp_path, recipe=RECIPE.with_(sampler="shuffle"))


def test_numbers_have_no_classes_to_balance():
    with pytest.raises(ArgumentError) as error:
        trained("mlp", (blobs()[0], torch.rand(64)), recipe=RECIPE.with_(loss="gaussian_nll"))
    assert error.value.argument == "sampler"


def test_balancing_twice_is_said(tmp_path):
    with pytest.warns(UserWarning, match="both make up for rare classes"):
        trained(small_net, uneven(), tmp_path, recipe=RECIPE.with_(class_weight="balanced"), quiet=False)
