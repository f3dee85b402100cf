"""Callbacks are told what the run records, in the process that called, and can do training no harm."""

import os
import warnings

import pytest
import torch

from credro.data.adapt import as_data
from credro.methods import make
from credro.training.callbacks import Callback, CallbackWarning, MemberEpoch, RunEnd, RunStart
from credro.training.job import TrainingError
from credro.training.recipe import Recipe
from credro.training.records import Epoch
from credro.training.run import History, Run
from credro.training.train import train
from tests.training.common import assert_bitwise, blobs, small_net, weights

RECIPE = Recipe(epochs=3, batch_size=16, lr=0.05)


class Note(Callback):
    """Keeps all that it is told, and where."""

    def __init__(self):
        self.told, self.processes = [], set()

    def _note(self, event):
        self.told.append(event)
        self.processes.add(os.getpid())

    on_start = on_epoch = on_end = _note

    @property
    def epochs(self):
        return [event for event in self.told if isinstance(event, MemberEpoch)]


def run_with(out, *callbacks, executor="sequential", net=small_net, recipe=RECIPE, **options):
    options = {"threads": 1, "device": "cpu", "progress": "none", "workers": 2, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", CallbackWarning)
        data, method = as_data(blobs()), make("credro")
        return train(
            net, data, method, members=2, recipe=recipe, out=out, executor=executor, callbacks=callbacks, **options
        )


@pytest.mark.parametrize("executor", ["sequential", "processes", "stacked"])
def test_every_epoch_of_every_member_is_told_as_it_is_recorded(tmp_path, executor):
    note, calls = Note(), []
    run_with(tmp_path, note, calls.append, executor=executor, held_out=as_data(blobs(seed=1)))
    start, *epochs, end = note.told
    assert isinstance(start, RunStart)
    assert (start.config, start.epochs_done) == (Run(tmp_path).config(), 0)
    assert isinstance(end, RunEnd)
    assert (end.run.folder, end.error) == (tmp_path, None)
    assert epochs == calls
    for member in range(2):
        mine = [e for e in epochs if e.member == member]
        assert [e.record for e in mine] == History(Run(tmp_path).member(member) / "history.jsonl").read()
        assert [(e.record.epoch, e.epochs, e.done) for e in mine] == [(1, 3, False), (2, 3, False), (3, 3, True)]
        assert all(e.record.held_out_loss is not None for e in mine)
    assert note.processes == {os.getpid()}


def test_numbers_are_those_that_there_are():
    epoch = MemberEpoch(1, Epoch(4, 0.5, 0.75, 0.1, 2.0, held_out_loss=0.6, notes={"reached": False}), 9, False)
    assert epoch.numbers == {"loss": 0.5, "accuracy": 0.75, "lr": 0.1, "seconds": 2.0, "held_out_loss": 0.6}
    assert "accuracy" not in MemberEpoch(1, Epoch(4, 0.5, None, 0.1, 2.0), 9, False).numbers


@pytest.mark.parametrize("executor", ["sequential", "processes", "stacked"])
def test_what_a_callback_raises_or_draws_harms_nothing(tmp_path, executor):
    run_with(tmp_path / "alone", executor=executor)
    note = Note()

    class Bad:
        def on_start(self, start):
            raise OSError("disk full")

        def on_epoch(self, epoch):
            torch.manual_seed(7)
            torch.rand(5)
            raise ValueError(f"no epoch {epoch.record.epoch}")

        def on_end(self, end):
            raise KeyError("nothing")

    with pytest.warns(CallbackWarning) as said:
        run_with(tmp_path / "told", Bad(), note, executor=executor)
    texts = [str(w.message) for w in said if w.category is CallbackWarning]
    assert len(texts) == 1 + 2 * 3 + 1
    assert any("Bad raised OSError on_start: disk full" in text for text in texts)
    assert any("Bad raised ValueError on_epoch: no epoch 2" in text for text in texts)
    assert len(note.told) == 1 + 2 * 3 + 1  # the next in the list is told all the same
    assert_bitwise(weights(tmp_path / "alone"), weights(tmp_path / "told"))


def test_objects_with_some_of_the_moments_are_told_those(tmp_path):
    class OnlyEnd:
        ended = 0

        def on_end(self, end):
            self.ended += 1

    callback = OnlyEnd()
    run_with(tmp_path, callback)
    assert callback.ended == 1


def test_an_interrupted_run_ends_and_goes_on(tmp_path):
    note, again = Note(), Note()

    def stop(epoch):
        if (epoch.member, epoch.record.epoch) == (1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with(tmp_path / "cut", note, stop, checkpoint_seconds=0.0)
    assert isinstance(note.told[-1].error, KeyboardInterrupt)
    run_with(tmp_path / "cut", again)
    assert again.told[0].epochs_done == 3 + 2
    assert [(e.member, e.record.epoch) for e in again.epochs] == [(1, 3)]
    run_with(tmp_path / "whole")
    assert_bitwise(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_a_failure_is_told(tmp_path):
    note = Note()
    with pytest.raises(TrainingError):
        run_with(tmp_path, note, recipe=RECIPE.with_(lr=1e30))
    assert isinstance(note.told[-1].error, TrainingError)


def test_a_finished_run_tells_nothing(tmp_path):
    run_with(tmp_path)
    note = Note()
    run_with(tmp_path, note)
    assert note.told == []


@pytest.mark.parametrize(("given", "words"), [(print, "must be a list"), ([3], "must be a function"), ([Note], "Note")])
def test_what_is_no_callback_is_refused_before_any_work(tmp_path, given, words):
    options = {"members": 2, "recipe": RECIPE, "out": tmp_path, "callbacks": given}
    with pytest.raises(TypeError, match=words):
        train(small_net, as_data(blobs()), make("credro"), **options)
    assert not list(tmp_path.iterdir())
