"""What is frozen stays as it is: weights, BatchNorm's statistics, and no dropout inside."""

import pytest
import torch
from torch import nn

from credro.data import as_data
from credro.nets import train_mode
from credro.training.recipe import Recipe
from credro.training.stacked import why_not_stacked
from tests.training.common import assert_bitwise, blobs, job_of, trained, weights

RECIPE = Recipe(epochs=3, batch_size=16, lr=0.05)


def backbone(dropout=0.0):
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(dropout), nn.ReLU())


def with_frozen_backbone(dropout=0.0):
    net = nn.Sequential(backbone(dropout), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    net[0].requires_grad_(False)
    net[0][1].running_mean.fill_(0.3)  # statistics of the data that it was trained on elsewhere
    net[0][1].running_var.fill_(2.0)
    return net


def with_frozen_dropout():
    return with_frozen_backbone(dropout=0.5)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_nothing_of_a_frozen_part_moves_and_the_rest_does(tmp_path, executor):
    job = job_of(tmp_path / "start", with_frozen_backbone, as_data(blobs()), classes=3)
    trained(with_frozen_backbone, blobs(), tmp_path / "run", executor=executor, recipe=RECIPE)
    after = weights(tmp_path / "run")
    for i in range(2):
        for name, start in job.network(i).state_dict().items():
            assert torch.equal(after[f"{i}.{name}"], start) == name.startswith("0."), name


def test_one_after_another_and_all_at_once_agree(tmp_path):
    for executor in ("sequential", "stacked"):
        trained(with_frozen_backbone, blobs(), tmp_path / executor, executor=executor, recipe=RECIPE)
    one, other = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_dropout_inside_a_frozen_part_drops_nothing(tmp_path, executor):
    trained(with_frozen_backbone, blobs(), tmp_path / "without", executor=executor, recipe=RECIPE)
    trained(with_frozen_dropout, blobs(), tmp_path / "with", executor=executor, recipe=RECIPE)
    assert_bitwise(weights(tmp_path / "without"), weights(tmp_path / "with"))
    assert why_not_stacked(job_of(tmp_path, with_frozen_dropout, as_data(blobs()), classes=3)) is None


def test_which_modules_are_in_which_mode():
    net = with_frozen_dropout()
    net[2].weight.requires_grad_(False)  # half frozen: its bias is trained
    train_mode(net.eval())
    assert not any(m.training for m in net[0].modules())
    assert all(m.training for m in (net, net[1], net[2], net[3], net[4]))
    net[2].bias.requires_grad_(False)
    train_mode(net)
    assert not net[2].training
    net.requires_grad_(True)
    train_mode(net)
    assert all(m.training for m in net.modules())
