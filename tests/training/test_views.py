"""Views: by a trunk that only takes means, so that every feature of every view is computed by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import credro
from credro.data import Data
from credro.nets import make, make_under_seed
from credro.nets.trunk import Trunk
from credro.training import stacked
from credro.training.feed import Feed, Inputs
from credro.training.loop import Trainer
from credro.training.streams import derive, generator
from credro.training.views import with_views, without_views
from tests.training.common import assert_bitwise, weights
from tests.training.test_features import Counting, images

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")
RECIPE = credro.Recipe(epochs=3, batch_size=16, lr=0.05)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))


def darker(x, draws):
    """Each image by a factor of its own."""
    return (x * torch.rand(len(x), 1, 1, 1, generator=draws)).to(x.dtype)


def brighter(x, draws):
    return 255 - darker(255 - x, draws)


def by_hand(data, views):
    """(N, V, 3): the channels' means of the image, and of the image made darker."""
    plain = data.samples.double() / 255
    out = [plain.mean((-2, -1))]
    for view in range(1, views):
        factors = torch.stack([torch.rand(1, generator=generator(0, "view", view, i)) for i in range(len(data))])
        dark = (data.samples * factors.view(-1, 1, 1, 1)).to(torch.uint8)
        out.append(dark.double().mean((-2, -1)) / 255)
    return torch.stack(out, 1)


def test_the_features_of_all_views_by_hand():
    data = images(40)
    found = with_views(Trunk(Counting()), data, 3, darker)
    assert torch.allclose(found.views.double(), by_hand(data, 3), atol=1e-6)
    assert torch.equal(found.samples, found.views[:, 0])
    assert torch.equal(found.batch(torch.tensor([4])), found.views[4:5, 0])
    part = found.subset([7, 2])
    assert torch.equal(part.views, found.views[[7, 2]])
    assert torch.equal(found.content(), data.content())


def test_they_are_computed_once_and_known_by_what_made_them():
    data, module = images(40), Counting()
    found = with_views(Trunk(module), data, 3, darker)
    assert module.seen == 3 * 40
    assert torch.equal(with_views(Trunk(module), data, 3, darker).views, found.views)
    with_views(Trunk(module), data, 2, darker)
    assert module.seen == 3 * 40
    other = with_views(Trunk(module), data, 3, brighter)
    assert module.seen == 5 * 40, "the plain ones were there"
    names = {with_views(Trunk(module), data, v, f).fingerprint() for v, f in ((1, "none"), (2, darker), (3, darker))}
    assert len(names | {other.fingerprint()}) == 4
    plain = without_views(found)
    assert (plain.views, plain.fingerprint()) == (None, with_views(Trunk(module), data, 1, "none").fingerprint())


def test_a_member_draws_one_view_of_each_sample_in_each_epoch():
    data = with_views(Trunk(Counting()), images(64), 4, darker)
    inputs = Inputs(data.shape)
    drawn = {}
    for member in range(2):
        feed = Feed(data, inputs, RECIPE, torch.device("cpu"), member)
        for epoch in range(2):
            order = feed.order(epoch)
            x = torch.cat([x for x, _ in feed.epoch(epoch)])
            which = (data.views[order] == x[:, None]).all(-1)
            assert bool(which.any(1).all()), "each is a view of its sample"
            drawn[member, epoch] = which.double().argmax(1)[order.argsort()]
            assert torch.equal(x, torch.cat([x for x, _ in feed.epoch(epoch)])), "again the same"
            assert len(drawn[member, epoch].unique()) == 4
    assert len({tuple(d.tolist()) for d in drawn.values()}) == 4
    count = torch.cat(list(drawn.values())).bincount(minlength=4).double()
    assert float((count - 64).abs().max()) < 5 * (256 * 0.25 * 0.75) ** 0.5  # five standard deviations


def fitted(out=None, views=3, augment=darker, **options):
    options = {"recipe": RECIPE, "progress": "none", "threads": 1, "members": 3, **options}
    on = credro.on(Counting(), "linear", views=views, augment=augment)
    return credro.fit(on, images(60), out=out, **options)


def test_one_by_one_all_at_once_and_in_processes(tmp_path):
    for executor in ("sequential", "processes", "stacked"):
        fitted(tmp_path / executor, executor=executor, workers=2)
    assert_bitwise(weights(tmp_path / "sequential"), weights(tmp_path / "processes"))
    one, other = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=1e-4)
    fitted(tmp_path / "plain", views=1, augment=None, executor="sequential")
    assert any(not torch.equal(t, one[name]) for name, t in weights(tmp_path / "plain").items())


def test_training_is_that_of_a_plain_loop_over_the_views(tmp_path):
    """By hand, for one linear member: SGD over the drawn rows, standardised by the plain samples."""
    recipe = credro.Recipe(epochs=2, batch_size=16, lr=0.1, momentum=0.0, weight_decay=0.0, schedule="constant")
    fitted(tmp_path / "run", method="de", members=1, recipe=recipe, executor="sequential")
    data = images(60)
    table = by_hand(data, 3).float()
    mean, std = table[:, 0].mean(0), table[:, 0].std(0, correction=0)
    feed = Feed(with_views(Trunk(Counting()), data, 3, darker), Inputs((3,)), recipe, torch.device("cpu"), 0)
    net = make_under_seed(lambda: make("linear", classes=3, shape=(3,)), derive(0, 0, "init"))
    for epoch in range(2):
        which = torch.randint(3, (60,), generator=generator(0, 0, "view", epoch))
        for index in feed.order(epoch).split(16):
            x = (table[index, which[index]] - mean) / std
            grads = torch.autograd.grad(nn.functional.cross_entropy(net(x), data.labels[index]), list(net.parameters()))
            with torch.no_grad():
                for p, g in zip(net.parameters(), grads, strict=True):
                    p -= 0.1 * g
    found = weights(tmp_path / "run")
    for name, p in net.named_parameters():
        torch.testing.assert_close(found[f"0.{name}"], p.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_resumed_bit_for_bit(tmp_path, monkeypatch, executor):
    options = {"executor": executor, "checkpoint_seconds": 0.0}
    fitted(tmp_path / "through", **options)
    alone, together = Trainer.train_epoch, stacked.train_epoch

    def stop_one(self, alive):
        if (self.i, self.epoch) == (1, 2):
            raise KeyboardInterrupt
        return alone(self, alive)

    def stop_all(stack, feeds, epoch, aside):
        if epoch == 2:
            raise KeyboardInterrupt
        return together(stack, feeds, epoch, aside)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", stop_one)
        patch.setattr(stacked, "train_epoch", stop_all)
        with pytest.raises(KeyboardInterrupt):
            fitted(tmp_path / "run", **options)
    fitted(tmp_path / "run", **options)
    assert_bitwise(weights(tmp_path / "through"), weights(tmp_path / "run"))
    with pytest.raises(credro.training.run.RunError, match=r"trunk\.views: 3 there, 2 now"):
        fitted(tmp_path / "run", views=2, **options)


def test_predictions_held_out_and_calibration_see_the_plain_sample(tmp_path):
    aside = images(30, seed=2)
    ens = fitted(tmp_path / "run", held_out=aside, calibrate=images(20, seed=3), early_stop=True)
    plain = aside.samples.float().mean((-2, -1)) / 255
    with torch.no_grad():
        expected = torch.stack([net(ens.inputs(plain)) for net in ens.nets])
    assert torch.allclose(ens.scores(aside), expected, atol=1e-4)
    assert (ens.config.trunk.views, ens.config.trunk.augment) == (3, f"{__name__}.darker")
    set_aside = fitted(early_stop=True)
    assert set_aside.records[0].held_out is not None


def test_views_of_maps():
    net = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(3, 4, 2))
    ens = credro.fit(
        credro.on(net, unfreeze="1", views=2, augment="flip"), images(60), members=2, recipe=RECIPE, progress="none"
    )
    assert ens.inputs.shape == (3, 3, 3)
    assert len(ens.predict(images(5, seed=9))) == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"views": 0}, "views must be a whole number of at least 1, got 0"),
        ({"views": True}, "views must be a whole number"),
        ({"views": 2, "augment": "flop"}, "augment must be one of none, flip, crop-flip, histology, got 'flop'"),
        ({"views": 2, "augment": "none"}, "augment='none' does not go with views=2"),
        ({"augment": "flip"}, "augment='flip' does not go with views=1"),
        ({"views": 2, "augment": 5}, "augment must be a name or a function, got 5"),
    ],
)
def test_what_makes_no_views(options, words):
    with pytest.raises(ValueError, match=words):
        credro.on(Counting(), **options)


def test_bad_augmentations_are_named():
    trunk = Trunk(Counting())
    with pytest.raises(ValueError, match="augment must give a batch like the one it gets"):
        with_views(trunk, images(), 2, lambda x, draws: x[:, :, 1:])
    with pytest.raises(ValueError, match=r"augment='flip' needs images \(C, H, W\)"):
        with_views(trunk, Data("rows", torch.rand(9, 4), torch.arange(9) % 3, (4,), ("a", "b", "c")), 2, "flip")
    features = with_views(trunk, images(), 1, "none")
    with pytest.raises(ValueError, match="holds features without 2 views"):
        with_views(trunk, features, 2, "flip")
    with pytest.raises(ValueError, match="views are computed by the frozen part of a trunk"):
        credro.fit(credro.on(nn.Sequential(nn.Conv2d(3, 4, 2)), unfreeze="0", views=2), images(), progress="none")
