"""What is taken where nothing is said: the recipe by the data's kind and size, and the samples held out to stop by."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from credro.data import Data
from credro.training.defaults import IMAGES, LEAST, MOST, SMALL_IMAGES, TABLE, recipe_for, set_aside


def table(labels, groups=None, x=None):
    labels = torch.as_tensor(labels)
    x = torch.arange(len(labels)).float()[:, None] / 7 if x is None else torch.as_tensor(x).float()
    groups = None if groups is None else torch.as_tensor(groups)
    return Data("t", x, labels, tuple(x.shape[1:]), groups=groups)


def images(count, size=8):
    samples = torch.zeros(1, 3, size, size, dtype=torch.uint8).expand(count, -1, -1, -1)
    return Data("i", samples, torch.arange(count) % 2, (3, size, size))


@pytest.mark.parametrize("count", [60, 300, 1_000, 5_000, 50_000])
@pytest.mark.parametrize(
    ("make", "plan"),
    [
        (lambda n: table([0, 1] * (n // 2)), TABLE),
        (images, SMALL_IMAGES),
        (lambda n: images(n, 64), IMAGES),
    ],
)
def test_steps_are_enough_and_epochs_within_bounds(make, plan, count):
    recipe = recipe_for(make(count))
    steps = math.ceil(count / recipe.batch_size)
    assert plan.epochs[0] <= recipe.epochs <= plan.epochs[1]
    assert recipe.epochs * steps >= plan.steps or recipe.epochs == plan.epochs[1]
    assert recipe.epochs * steps >= 200  # "some hundreds" even for the smallest
    assert steps >= 4
    assert 3 <= recipe.early_stop < recipe.epochs


def test_a_loaders_batch_size_counts_and_regression_has_its_own_loss():
    data = table([0, 1] * 100)
    assert recipe_for(data, batch_size=50).batch_size == 50
    assert recipe_for(data, held_out=False).early_stop == 0
    assert recipe_for(data, seed=5).seed == 5
    assert recipe_for(data).loss == "cross_entropy"
    assert recipe_for(table(torch.rand(200))).loss == "gaussian_nll"
    assert recipe_for(table(torch.full((200, 2), 0.5))).loss == "cross_entropy"  # soft labels


def content_of(data):
    return set(data.content().tolist())


@settings(max_examples=40, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=LEAST, max_size=120),
    copies=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_nothing_is_on_both_sides_and_no_class_is_lost(labels, copies, seed):
    """Some rows are copies of others, with whatever label."""
    x = torch.arange(len(labels)).float()[:, None] % (len(labels) - copies % (len(labels) - 2))
    parts = set_aside(table(labels, x=x), 0.2, seed=seed)
    if parts.held_out is None:
        assert "No samples are held out" in parts.note
        assert len(parts.train) == len(labels)
        return
    assert not content_of(parts.train) & content_of(parts.held_out)
    assert len(parts.train) + len(parts.held_out) == len(labels)
    assert set(parts.train.labels.tolist()) == set(labels)


def test_classes_give_their_part_and_the_only_sample_of_one_stays():
    labels = torch.tensor([0] * 300 + [1] * 100 + [2])
    for seed in range(5):
        parts = set_aside(table(labels), 0.2, seed=seed)
        counts = torch.bincount(parts.held_out.labels, minlength=3).tolist()
        assert counts == [60, 20, 0]
    assert parts.note == "80 of 401 samples are held out of training to decide when to stop."


def test_other_seeds_hold_out_others_and_the_same_seed_the_same():
    data = table([0, 1] * 100)
    one, again, other = (set_aside(data, seed=s).held_out.samples for s in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_groups_stay_whole_and_so_do_groups_that_hold_a_copy_of_each_other():
    generator = torch.Generator().manual_seed(0)
    groups = torch.arange(200) // 10
    x = torch.rand(200, 2, generator=generator)
    x[15] = x[3]  # group 1 has a sample of group 0 ...
    x[29] = x[11]  # ... and group 2 one of group 1
    for seed in range(8):
        parts = set_aside(table([0, 1] * 100, groups, x), 0.2, seed=seed)
        inside = set(parts.held_out.groups.tolist())
        assert inside.isdisjoint(parts.train.groups.tolist())
        assert len(inside & {0, 1, 2}) in (0, 3)
        assert "whole groups" in parts.note
    assert set_aside(table([0, 1] * 100, x=x), groups=groups).held_out is not None  # groups by hand


def test_what_cannot_be_divided_is_said():
    few = set_aside(table([0, 1] * 20))
    assert few.held_out is None
    assert few.note == "No samples are held out to stop by: there are 40, and at least 50 are needed."
    one_group = set_aside(table([0, 1] * 50, groups=[3] * 100))
    assert one_group.held_out is None
    assert "the groups cannot be divided" in one_group.note
    same = set_aside(table([0, 1] * 50, x=torch.zeros(100, 1)))
    assert same.held_out is None
    each_class_a_group = set_aside(table([0] * 50 + [1] * 50, groups=[0] * 50 + [1] * 50))
    assert each_class_a_group.held_out is None
    with pytest.raises(ValueError, match=r"fraction must lie in \(0, 1\), got 1.5"):
        set_aside(table([0, 1] * 50), 1.5)


def test_no_more_than_needed_is_held_out_of_a_large_set():
    parts = set_aside(table([0, 1] * 30_000), 0.5)
    assert len(parts.held_out) == MOST


def test_targets_of_a_regression_are_divided_by_size():
    parts = set_aside(table(torch.arange(300).float()), 0.2)
    assert torch.bincount((parts.held_out.labels // 100).long()).tolist() == pytest.approx([20, 20, 20], abs=1)
