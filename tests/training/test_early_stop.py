"""A member stops when its held-out loss does not get better, and keeps the weights of its best epoch."""

import pytest
import torch
from torch import nn

from credro.data import as_data
from credro.methods import make
from credro.training.diagnostics import fitness
from credro.training.executors import choose
from credro.training.job import check_job
from credro.training.loop import Trainer
from credro.training.recipe import Recipe
from credro.training.records import Epoch
from credro.training.run import History, Run
from credro.training.stopping import best_epoch, improved, kept_epoch, stopped_early
from tests.training.common import assert_bitwise, blobs, job_of, small_net, trained, weights

PATIENCE = 3


def noisy(count=48, seed=0):
    """Two clouds that overlap, some labels wrong: what can be learnt is learnt soon, and the rest is by heart."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % 3
    x = 0.8 * nn.functional.one_hot(y, 6).float() + torch.randn(count, 6, generator=generator)
    return x, torch.where(torch.rand(count, generator=generator) < 0.2, (y + 1) % 3, y)


def wide_net():
    return nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 3))


RECIPE = Recipe(epochs=25, batch_size=16, lr=0.02, optimizer="adamw", early_stop=PATIENCE)
OPTIONS = {"recipe": RECIPE, "held_out": noisy(90, seed=1), "members": 3}


def histories(folder):
    return [History(Run(folder).member(i) / "history.jsonl").read() for i in range(Run(folder).config().members)]


def by_hand(losses, patience):
    """Epochs trained and best epoch, step by step as one would keep count while training."""
    best, at, waited = float("inf"), 0, 0
    for epoch, loss in enumerate(losses, 1):
        if loss < best:
            best, at, waited = loss, epoch, 0
        else:
            waited += 1
        if waited == patience:
            return epoch, at
    return len(losses), at


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_it_stops_by_the_history_and_keeps_the_best(tmp_path, executor):
    ensemble = trained(wide_net, noisy(), tmp_path, executor=executor, **OPTIONS)
    stopped = 0
    for record, entries in zip(ensemble.records, histories(tmp_path), strict=True):
        losses = [e.held_out_loss for e in entries]
        epochs, best = by_hand(losses, PATIENCE)
        assert record.epochs == len(entries) == epochs
        assert record.best_epoch == best
        assert record.stopped_early == (epochs - best == PATIENCE)
        assert record.held_out.loss == pytest.approx(min(losses), rel=1e-5)
        stopped += record.stopped_early
    assert stopped  # the data is such that it matters


@pytest.mark.parametrize("method", ["credro", "creram", "de", "crede", "crebnn", "crerl"])
def test_the_weights_are_those_of_a_run_of_so_many_epochs(tmp_path, method):
    """A constant schedule does not know how long training is: a run that ends with the best epoch is the oracle."""
    recipe = RECIPE.with_(schedule="constant", epochs=14)
    ensemble = trained(wide_net, noisy(), tmp_path / "early", method=method, **{**OPTIONS, "recipe": recipe})
    for i, record in enumerate(ensemble.records):
        if method == "crerl" and i:
            continue  # measured against the reference, which would be another
        short = recipe.with_(epochs=record.best_epoch, early_stop=0)
        trained(wide_net, noisy(), tmp_path / f"short{i}", method=method, **{**OPTIONS, "recipe": short})
        own = {k: v for k, v in weights(tmp_path / "early").items() if k.startswith(f"{i}.")}
        alone = {k: v for k, v in weights(tmp_path / f"short{i}").items() if k.startswith(f"{i}.")}
        assert_bitwise(own, alone)
        assert record.train == Run(tmp_path / f"short{i}").record(i).train


def test_a_member_that_its_own_stop_ends_is_kept_as_it_was_then(tmp_path):
    options = {**OPTIONS, "members": 4, "recipe": RECIPE.with_(epochs=60)}
    ensemble = trained(wide_net, noisy(), tmp_path, method=make("crerl", alpha=0.5), **options)
    by_stop = 0
    for record, entries in zip(ensemble.records, histories(tmp_path), strict=True):
        if entries[-1].stopped:
            by_stop += 1
            assert record.traits["reached"] is True
            assert record.best_epoch == record.epochs == len(entries)
        elif "reached" in record.traits:
            kept = entries[record.best_epoch - 1]
            assert record.traits["relative_likelihood"] == kept.notes["relative_likelihood"]
    assert by_stop


def test_processes_give_the_weights_of_one_after_another_and_stacked_those_up_to_rounding(tmp_path):
    for executor in ("sequential", "processes", "stacked"):
        trained(wide_net, noisy(), tmp_path / executor, executor=executor, workers=2, **OPTIONS)
    assert_bitwise(weights(tmp_path / "sequential"), weights(tmp_path / "processes"))
    one, other = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    assert [len(h) for h in histories(tmp_path / "sequential")] == [len(h) for h in histories(tmp_path / "stacked")]
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=5e-3, atol=5e-4)


def test_a_stack_goes_on_until_its_last_member_stops(tmp_path):
    trained(wide_net, noisy(), tmp_path, executor="stacked", **{**OPTIONS, "members": 6})
    lengths = [len(h) for h in histories(tmp_path)]
    assert min(lengths) < max(lengths)


def test_with_plateau_and_with_a_regression(tmp_path):
    recipe = RECIPE.with_(schedule="plateau", patience=1, per_step=False)
    ensemble = trained(wide_net, noisy(), tmp_path / "plateau", **{**OPTIONS, "recipe": recipe})
    for record, entries in zip(ensemble.records, histories(tmp_path / "plateau"), strict=True):
        assert (record.epochs, record.best_epoch) == by_hand([e.held_out_loss for e in entries], PATIENCE)
    x, _ = noisy()
    y = x[:, 0] + torch.randn(len(x), generator=torch.Generator().manual_seed(2))
    regression = RECIPE.with_(loss="gaussian_nll", epochs=60)
    for executor in ("sequential", "stacked"):
        folder = tmp_path / executor
        options = {"recipe": regression, "held_out": (x.flip(0), y), "executor": executor}
        ensemble = trained("mlp", (x, y), folder, **options)
        for record, entries in zip(ensemble.records, histories(folder), strict=True):
            losses = [e.held_out_loss for e in entries]
            assert (record.epochs, record.best_epoch) == by_hand(losses, PATIENCE)
            assert record.stopped_early
            assert record.held_out.accuracy is None


def test_it_needs_held_out_data(tmp_path):
    wanted = r"early_stop=3\) watches the held-out loss: give held_out.* or do without: early_stop=False"
    with pytest.raises(ValueError, match=wanted):
        check_job(job_of(tmp_path, small_net, as_data(blobs()), classes=3, recipe=RECIPE))


def test_without_it_nothing_is_kept_aside(tmp_path):
    job = job_of(tmp_path, small_net, as_data(blobs()), classes=3, held_out=as_data(blobs(seed=1)))
    trainer = Trainer(job, 0)
    trainer.train_epoch(lambda: True)
    assert trainer.best == {}
    ensemble = trained(small_net, blobs(), held_out=blobs(seed=1))
    assert (ensemble.records[0].best_epoch, ensemble.records[0].stopped_early) == (None, None)


def test_best_weights_travel_through_a_checkpoint(tmp_path):
    """Every epoch by a trainer that reads the checkpoint of the one before: to the weights of one that did not."""
    data, held_out = as_data(noisy()), as_data(noisy(90, seed=1))
    jobs = [
        job_of(tmp_path / n, wide_net, data, classes=3, recipe=RECIPE, held_out=held_out, checkpoint_seconds=0.0)
        for n in ("a", "b")
    ]
    whole, parts = Trainer(jobs[0], 0), Trainer(jobs[1], 0)
    while not whole.over:
        whole.train_epoch(lambda: True)
    while not parts.over:
        parts.train_epoch(lambda: True)
        parts = Trainer(jobs[1], 0)
    assert whole.epoch == parts.epoch < RECIPE.epochs
    assert_bitwise(whole.best, parts.best)
    whole.finish()
    assert fitness(whole.net, jobs[0], 0, held_out).loss == min(e.held_out_loss for e in whole.entries)


def test_held_out_losses_that_are_never_finite_end_it_with_the_weights_there_are():
    entries = [Epoch(i, 1.0, 0.5, 0.1, 1.0, held_out_loss=float(bad)) for i, bad in ((1, "nan"), (2, "inf"))]
    recipe = Recipe(early_stop=2)
    assert best_epoch([e.held_out_loss for e in entries]) == 0
    assert improved(recipe, entries)
    assert stopped_early(recipe, entries)
    assert kept_epoch(recipe, entries) == 2


def test_what_is_the_best_of_equals():
    assert best_epoch([3.0, 2.0, 2.0, 5.0]) == 2
    assert best_epoch([]) == 0


def test_it_can_be_stacked_and_members_of_other_patience_are_not_reused(tmp_path):
    job = job_of(tmp_path, wide_net, as_data(noisy()), classes=3, members=3, recipe=RECIPE, held_out=as_data(noisy(9)))
    assert choose(job, "auto", 2) == "stacked"
    trained(wide_net, noisy(), tmp_path / "a", method="de", **OPTIONS)
    for patience, taken in ((PATIENCE, 3), (PATIENCE + 1, 0)):
        options = {**OPTIONS, "recipe": RECIPE.with_(early_stop=patience)}
        ensemble = trained(wide_net, noisy(), tmp_path / f"b{patience}", method="de", reuse=[tmp_path / "a"], **options)
        assert sum(r.trained_in is not None for r in ensemble.records) == taken
    other = {**OPTIONS, "held_out": noisy(90, seed=2)}
    ensemble = trained(wide_net, noisy(), tmp_path / "c", method="de", reuse=[tmp_path / "a"], **other)
    assert not any(r.trained_in for r in ensemble.records)
