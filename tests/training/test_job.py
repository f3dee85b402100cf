"""What can be known to fail is found before the first step: no member's folder is made."""

import re
import warnings

import pytest
import torch
from torch import nn

from credro.data import Data
from credro.training.job import count_classes
from credro.training.recipe import Recipe
from credro.training.run import RunError
from tests.training.common import assert_bitwise, blobs, digits, job_of, small_net, tiny_images, trained, weights

X, Y = blobs()


def wide_net():
    return nn.Linear(6, 7)


def dict_net():
    class Net(nn.Module):
        def forward(self, x):
            return {"logits": x}

    return Net()


def flat_net():
    return nn.Sequential(nn.Linear(6, 3), nn.Flatten(0))


def mean_loss(output, target):
    return nn.functional.cross_entropy(output, target)


def labelled(labels):
    return Data("own", X, torch.as_tensor(labels), (6,), ("a", "b", "c"), prepared=True)


SOFT = torch.full((64, 3), 0.5)
BAD = {
    "label too large": (
        labelled([5, *Y.tolist()[1:]]),
        small_net,
        {},
        "label 5 of sample 0 is out of range: 3 classes",
    ),
    "label negative": (labelled([*Y.tolist()[:-1], -1]), small_net, {}, "label -1 of sample 63 is out of range"),
    "empty": (labelled(Y).subset([]), small_net, {}, "train_set is empty: 'own' has no samples"),
    "soft labels": (labelled(SOFT), small_net, {}, "soft label 0 is not a distribution over the classes"),
    "targets": (labelled([float("nan")] * 64), small_net, {}, "target 0 is not finite"),
    "too wide": ((X, Y), wide_net, {}, "the network gives 7 outputs, but the data has 3 classes"),
    "wrong shape": ((X[:, :5], Y), small_net, {}, r"the network does not take samples of shape \(5,\)"),
    "no tensor": ((X, Y), dict_net, {}, "one row per sample, got dict"),
    "no rows": ((X, Y), flat_net, {}, r"one row per sample, got \(6,\) for 2 samples"),
    "gaps": ((X, Y * 2), lambda: small_net_of(5)(), {}, "gives 5 outputs, but the data has 3 classes: .*classes=5"),
    "no class": ((X, Y), small_net, {"classes": 2}, r"label 2 of sample 2 is not one of the 2 classes: 0, 1"),
    "objects": ((X.numpy().astype(object), Y), small_net, {}, "x must hold numbers, got object$"),
    "lengths": ((X, Y[:-1]), small_net, {}, "same length, got 64 samples and 63 labels"),
    "one network": ((X, Y), small_net(), {}, "not be one: members would share weights"),
    "no members": ((X, Y), small_net, {"members": 0}, "members must be at least 1, got 0"),
    "loss": ((X, Y), small_net, {"loss": mean_loss}, r"the loss must give one number per sample, .* got \(\)"),
    "augment": ((X, Y), small_net, {"recipe": Recipe(augment="crop-flip")}, r"needs images \(C, H, W\)"),
    "no augment": ((X, Y), small_net, {"recipe": Recipe(augment="blurr")}, "augment must be one of"),
    "plateau": ((X, Y), small_net, {"recipe": Recipe(schedule="plateau")}, "give held_out"),
    "held out": ((X, Y), small_net, {"held_out": (X[:, :5], Y)}, r"held_out has samples of shape \(5,\)"),
    "held-out label": (
        (X, Y),
        small_net,
        {"held_out": (X, Y + 1)},
        "label 3 of sample 2 is not one of the 3",
    ),
    "calibrate label": (
        (X, Y),
        small_net,
        {"calibrate": (X, Y + 1)},
        "label 3 of sample 2 is not one of the 3",
    ),
    "calibrate shape": ((X, Y), small_net, {"calibrate": (X[:, :5], Y)}, r"has samples of shape \(5,\)"),
    "executor": ((X, Y), small_net, {"executor": "threads"}, "executor must be one of auto, sequential"),
    "method": ((X, Y), small_net, {"method": "credo"}, "did you mean 'credro'"),
    "net": ((X, Y), "resnet99", {}, "resnet8, .*got 'resnet99'"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_found_before_the_first_step(tmp_path, case):
    data, net, options, words = BAD[case]
    with pytest.raises((ValueError, TypeError), match=words):
        trained(net, data, tmp_path, **options)
    assert not (tmp_path / "members").exists()


def test_a_factory_that_gives_the_same_network_twice(tmp_path):
    net = small_net()
    with pytest.raises(ValueError, match="it gave the same one twice"):
        trained(lambda: net, (X, Y), tmp_path)


def test_a_loss_that_broadcasts_is_found(tmp_path):
    """(B, 1) outputs against (B,) targets would be a (B, B) table of errors."""

    def squared(output, target):
        return (output - target) ** 2

    with pytest.raises(ValueError, match=re.escape("got (2, 2)")):
        trained(lambda: nn.Linear(6, 1), (X, X[:, 0]), tmp_path, loss=squared)


def test_classes_are_counted():
    assert count_classes(digits(3)) == 10  # by name, even where some are missing
    assert count_classes(Data("own", X, Y, (6,))) == 3
    assert count_classes(Data("own", X, X[:, 0], (6,))) == 0
    assert count_classes(labelled(SOFT)) == 3


@pytest.mark.parametrize(("net", "data"), [("mlp", digits(20)), ("resnet8", tiny_images()), ("cnn", tiny_images())])
def test_every_random_tensor_differs_between_members(tmp_path, net, data):
    job = job_of(tmp_path, net, data, members=3)
    first, second, third = (dict(job.network(i).named_parameters()) for i in range(3))
    constant = {n for n, p in first.items() if p.numel() > 1 and bool((p == p.flatten()[0]).all())}  # BatchNorm's
    for name in first.keys() - constant:
        for one, other in ((first, second), (first, third), (second, third)):
            assert (one[name] != other[name]).float().mean() > 0.9, name
    assert all(torch.equal(p, dict(job.network(0).named_parameters())[n]) for n, p in first.items())


def test_what_is_hardly_meant_is_said(tmp_path):
    def ends_in_softmax():
        return nn.Sequential(nn.Linear(6, 3), nn.Softmax(-1))

    cases = {
        "one": (small_net_of(1), (X, Y * 0 + 7), "all 64 samples of train_set have class 7"),
        "softmax": (ends_in_softmax, (X, Y), "outputs sum to 1: it seems to end in a softmax"),
    }
    for name, (net, data, words) in cases.items():
        with pytest.warns(UserWarning, match=words):
            trained(net, data, tmp_path / name, quiet=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trained(small_net, (X, Y), tmp_path / "well", quiet=False)
        named = Data("own", X, Y + 1, (6,), ("a", "b", "c", "d"), prepared=True)
        trained(small_net_of(4), named, tmp_path / "named", quiet=False)
    assert not [w for w in said if "nothing to tell apart" in str(w.message) or "softmax" in str(w.message)]


def small_net_of(classes):
    return lambda: nn.Linear(6, classes)


def test_whole_numbers_that_are_one_hot_are_classes(tmp_path):
    hot = nn.functional.one_hot(Y, 3)
    trained(small_net, (X, hot), tmp_path / "whole")
    trained(small_net, (X, hot.float()), tmp_path / "float")
    assert_bitwise(weights(tmp_path / "whole"), weights(tmp_path / "float"))


@pytest.mark.parametrize(
    ("recipe", "said"), [({"epochs": 1}, "got dict$"), ("fashion", r"got str: credro.PRESETS\['fashion'\]")]
)
def test_a_recipe_is_a_recipe(tmp_path, recipe, said):
    with pytest.raises(TypeError, match=f"recipe must be a credro.Recipe, {said}"):
        trained(small_net, (X, Y), tmp_path, recipe=recipe)


def test_a_file_is_no_folder_for_a_run(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="is a file, not a folder"):
        trained(small_net, (X, Y), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def mean_and_variance():
    return nn.Linear(6, 2)


@pytest.mark.parametrize("loss", ["cross_entropy", "focal"])
@pytest.mark.parametrize("net", ["mlp", mean_and_variance])
def test_classes_as_floats_are_explained(tmp_path, net, loss):
    said = f"loss='{loss}' is for classes, and the targets are floats such as 0.*astype.*loss='gaussian_nll'"
    with pytest.raises(ValueError, match=said):
        trained(net, (X, Y.double()), tmp_path, recipe=Recipe(epochs=1, loss=loss))
    assert not (tmp_path / "members").exists()


class Flattened(nn.Module):
    """A network as many write it: ``view`` takes channels first only. first: no convolution before it."""

    def __init__(self, flatten, first):
        super().__init__()
        self.flatten = flatten
        self.body = nn.Identity() if first else nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(3 * 64 if first else 8 * 36, 4)

    def forward(self, x):
        return self.head(self.flatten(self.body(x).relu()))


@pytest.mark.parametrize("first", [True, False])
def test_a_network_that_needs_channels_first_gets_them(tmp_path, first):
    data = tiny_images(48, 8)
    recipe = Recipe(epochs=2, batch_size=16, lr=0.05)

    def viewing():
        return Flattened(lambda x: x.view(len(x), -1), first)

    def flattening():
        return Flattened(lambda x: x.flatten(1), first)

    mine = trained(viewing, data, tmp_path / "view", recipe=recipe)
    assert mine.run.config().recipe.channels_last is False
    same = trained(flattening, data, tmp_path / "flatten", recipe=recipe.with_(channels_last=False))
    assert torch.equal(mine.scores(data), same.scores(data))
    trained(viewing, data, tmp_path / "view", recipe=recipe)  # the same call goes on with it
    faster = trained(flattening, data, tmp_path / "last", recipe=recipe)
    assert faster.run.config().recipe.channels_last is True
    torch.testing.assert_close(faster.scores(data), mine.scores(data), rtol=1e-3, atol=1e-4)
