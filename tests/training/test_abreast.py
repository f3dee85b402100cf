import math

import pytest
import torch
from torch import nn

from credro.data import as_data
from credro.training.abreast import goes_abreast
from credro.training.executors import choose
from credro.training.job import TrainingError
from credro.training.recipe import Recipe
from credro.training.run import Run
from tests.training.common import blobs, job_of, trained, weights

DATA = blobs(400, 512, 5)
RECIPE = Recipe(epochs=3, batch_size=128, lr=0.02)
TWO = {"executor": "stacked", "threads": 2}


def of_ours(data=DATA):
    return as_data(data)


@pytest.mark.parametrize("method", ["de", "credro", "creram", "crerl", "crede"])
@pytest.mark.parametrize("changes", [{}, {"optimizer": "adam", "lr": 1e-4, "clip": 0.3}, {"accumulate": 2}])
def test_members_learn_what_they_learn_alone(tmp_path, method, changes):
    if method == "crede" and "optimizer" in changes:
        pytest.skip("Adam makes steps of the rounding in the gradient of a bias before BatchNorm, which is zero")
    recipe = RECIPE.with_(**changes)
    for name, options in (("alone", {}), ("abreast", TWO)):
        trained("mlp-256", DATA, tmp_path / name, members=3, method=method, recipe=recipe, **options)
    one, other = weights(tmp_path / "alone"), weights(tmp_path / "abreast")
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=1e-4)


class Killed(Exception):  # noqa: N818 (read as a sentence)
    pass


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path, monkeypatch, optimizer):
    from credro.training import abreast

    options = {"members": 3, "recipe": RECIPE.with_(optimizer=optimizer, lr=1e-3), "checkpoint_seconds": 0.0, **TWO}
    trained("mlp-256", DATA, tmp_path / "whole", **options)
    saved, seen = abreast.FastTrainer.train_epoch, []

    def killed(self, alive):
        seen.append(self.i)
        if len(seen) > 4:
            raise Killed
        return saved(self, alive)

    with monkeypatch.context() as patch:
        patch.setattr(abreast.FastTrainer, "train_epoch", killed)
        with pytest.raises(Killed):
            trained("mlp-256", DATA, tmp_path / "killed", **options)
    assert any(Run(tmp_path / "killed").state(i).exists() for i in range(3))
    trained("mlp-256", DATA, tmp_path / "killed", **options)
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_member_that_fails_is_said(tmp_path):
    recipe = RECIPE.with_(lr=1e30, schedule="constant")
    with pytest.raises(TrainingError, match=r"member 0: the loss became"):
        trained("mlp-256", DATA, tmp_path, members=2, recipe=recipe, **TWO)


def own_net():
    return nn.Sequential(nn.Linear(512, 256), nn.Tanh(), nn.Linear(256, 5))


@pytest.mark.parametrize(
    ("net", "changes", "expected"),
    [
        ("mlp-256", {}, True),
        (own_net, {}, False),  # a layer that is not on the list
        ("mlp-256", {"batch_size": 4}, False),  # small products
        ("mlp-256", {"precision": "bf16"}, False),
        ("mlp-256", {"schedule": math.cos}, False),  # a function of the user's own
    ],
)
def test_which_go_abreast(tmp_path, net, changes, expected):
    job = job_of(tmp_path, net, of_ours(), classes=5, recipe=RECIPE.with_(**changes))
    assert goes_abreast(job) is expected
    if expected:
        assert choose(job, "auto", 2) == "stacked"
