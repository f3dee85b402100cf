"""Heads on a frozen trunk: trained, resumed, loaded, saved, evaluated, and predicted with one pass of the trunk."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import credro
from credro.data import Data
from credro.methods import METHODS, make

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")
RECIPE = credro.Recipe(epochs=3, batch_size=32, lr=0.05)


class Backbone(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv = nn.Conv2d(3, 12, 3, stride=2)
        self.seen = 0

    def forward(self, x):
        self.seen += len(x)
        return self.conv(x).relu()


def images(count, seed=0, size=12):
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % 3
    x = torch.randint(0, 120, (count, 3, size, size), generator=draw, dtype=torch.uint8)
    x[torch.arange(count), y] += 80
    return Data("images", x, y, (3, size, size), ("red", "green", "blue"))


TRAIN, TEST = images(120), images(60, seed=1)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))


def trained(module, out=None, method="credro", members=4, **options):
    options = {"recipe": RECIPE, "progress": "none", "threads": 1, **options}
    return credro.fit(credro.on(module), TRAIN, method=method, members=members, out=out, **options)


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_train_on_features_and_are_loaded(tmp_path, method):
    module = Backbone()
    chosen = make(method, samples=2) if method == "crebnn" else make(method)
    ens = trained(module, tmp_path / "run", chosen)
    again = credro.load(tmp_path / "run", trunk=module)
    assert torch.equal(ens.predict(TEST.samples).mean, again.predict(TEST).mean)
    assert (ens.shape, ens.inputs.shape) == ((3, 12, 12), (12,))


def test_the_heads_see_what_the_trunk_gives():
    module = Backbone()
    ens = trained(module)
    with torch.no_grad():
        features = module(TEST.samples.float() / 255).mean((-2, -1))
        expected = torch.stack([net(ens.inputs(features)).softmax(-1) for net in ens.nets])
    assert torch.allclose(ens.predict(TEST).probs, expected, atol=1e-5)
    assert float((ens.predict(TEST).label == TEST.labels).double().mean()) > 0.9


def test_the_trunk_runs_once_however_many_members():
    module = Backbone()
    ens = trained(module, members=6)
    assert module.seen == len(TRAIN)
    ens.predict(TEST.samples)
    assert module.seen == len(TRAIN) + len(TEST)
    credro.evaluate(ens, TEST, {"noise": torch.randint(0, 256, (30, 3, 12, 12), dtype=torch.uint8)})
    assert module.seen == len(TRAIN) + 2 * len(TEST) + 30


def test_samples_that_were_trained_on_are_recognised_as_images():
    ens = trained(Backbone())
    with pytest.raises(ValueError, match="120 of 120 samples were trained on"):
        credro.evaluate(ens, TRAIN)
    both = Data("both", torch.cat([TRAIN.samples[:20], TEST.samples]), torch.cat([TRAIN.labels[:20], TEST.labels]),
                TEST.shape, TEST.classes)  # fmt: skip
    with pytest.warns(UserWarning, match="20 of 80 samples were trained on"):
        assert credro.evaluate(ens, both).samples == 60


def test_another_trunk_is_refused(tmp_path):
    trained(Backbone(), tmp_path / "run")
    with pytest.raises(ValueError, match="stands on a trunk of your own: give trunk"):
        credro.load(tmp_path / "run")
    with pytest.raises(ValueError, match=r"is not the one that .* was trained on"):
        credro.load(tmp_path / "run", trunk=Backbone(1))
    with pytest.raises(credro.training.run.RunError, match=r"trunk\.digest"):
        trained(Backbone(1), tmp_path / "run")


def test_a_trunk_that_was_changed_is_not_answered_from_what_was_kept(tmp_path):
    module = Backbone()
    ens = trained(module, tmp_path / "run")
    before = ens.predict(TEST).mean
    with torch.no_grad():
        module.conv.weight.mul_(3)
    after = ens.predict(TEST).mean
    assert torch.allclose(after, ens.predict(TEST.samples).mean, atol=1e-6)
    assert not torch.equal(before, after)


def test_saved_with_its_trunk(tmp_path):
    ens = trained(Backbone(), tmp_path / "run")
    ens.save(tmp_path / "light")
    ens.save(tmp_path / "whole", with_trunk=True)
    again = credro.load(tmp_path / "whole", trunk=lambda: Backbone(5))  # its weights are in the folder
    assert torch.equal(again.predict(TEST.samples).mean, ens.predict(TEST.samples).mean)
    with pytest.raises(ValueError, match="is not the one"):
        credro.load(tmp_path / "light", trunk=lambda: Backbone(5))
    ens.without_run().save(tmp_path / "alone", with_trunk=True)
    again = credro.load(tmp_path / "alone", trunk=lambda: Backbone(5))
    assert torch.equal(again.predict(TEST.samples).mean, ens.predict(TEST.samples).mean)


def test_it_is_resumed_and_calibrated(tmp_path):
    module = Backbone()
    ens = trained(module, tmp_path / "run", held_out=images(40, seed=3), calibrate=images(50, seed=2))
    assert ens.calibrated
    again = trained(module, tmp_path / "run", held_out=images(40, seed=3))
    assert again.temperatures == ens.temperatures
    assert all(torch.equal(a, b) for x, y in zip(ens.nets, again.nets, strict=True)
               for a, b in zip(x.parameters(), y.parameters(), strict=True))  # fmt: skip
    with pytest.raises(ValueError, match="50 of 50 samples were calibrated on"):
        credro.evaluate(ens, images(50, seed=2))


def test_images_of_other_sizes_need_a_trunk_that_resizes():
    ens = trained(Backbone())
    with pytest.raises(ValueError, match=r"samples must have shape \(3, 12, 12\)"):
        ens.predict(images(5, size=20).samples)
    sized = credro.fit(credro.on(Backbone(), size=(12, 12)), TRAIN, recipe=RECIPE, progress="none")
    assert len(sized.predict(images(5, size=20).samples)) == 5
    with pytest.raises(ValueError):
        ens.predict(torch.rand(5, 12))  # features are no samples


def test_heads_of_ones_own(tmp_path):
    def head(features, classes):
        return nn.Sequential(nn.Linear(features, 7), nn.Tanh(), nn.Linear(7, classes))

    module = Backbone()
    ens = credro.fit(credro.on(module, head=head), TRAIN, recipe=RECIPE, progress="none", out=tmp_path / "run")
    again = credro.load(tmp_path / "run", trunk=module, make_net=lambda: head(12, 3))
    assert torch.equal(again.predict(TEST).mean, ens.predict(TEST).mean)
    linear = credro.fit(credro.on(module, head="linear"), TRAIN, recipe=RECIPE, progress="none")
    assert sum(p.numel() for p in linear.nets[0].parameters()) == 12 * 3 + 3
