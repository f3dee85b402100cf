import json
import math

import pytest
import torch
from torch import nn

from credro.members import CVaR, Risk
from credro.methods import Method, make
from credro.nets import make as make_network
from credro.training.feed import Feed, Inputs
from credro.training.job import TrainingError
from credro.training.recipe import Recipe, learning_rate
from credro.training.run import History, Run
from credro.training.streams import derive
from tests.training.common import assert_bitwise, blobs, digits, small_net, tiny_images, trained, weights

CPU = torch.device("cpu")


def bare_loop(net_name, data, recipe, member, delta=None):
    """What the engine should do, written out plainly for one member."""
    torch.manual_seed(derive(recipe.seed, member, "init"))
    net = make_network(net_name, len(data.classes), data.shape).to(memory_format=torch.channels_last).train()
    sgd = torch.optim.SGD(net.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    feed = Feed(data, Inputs.of(data), recipe, CPU, member)
    for epoch in range(recipe.epochs):
        for b, (x, y) in enumerate(feed.epoch(epoch)):
            for group in sgd.param_groups:
                group["lr"] = learning_rate(recipe, epoch + b / len(feed))
            losses = nn.functional.cross_entropy(net(x), y, reduction="none")
            if delta is not None:
                losses = losses.sort(descending=True).values[: math.floor(delta * len(losses) + 1e-9)]
            sgd.zero_grad()
            losses.mean().backward()
            if recipe.clip:
                nn.utils.clip_grad_norm_(net.parameters(), recipe.clip)
            sgd.step()
    return net.state_dict()


@pytest.mark.parametrize(("net", "data"), [("mlp", digits(90)), ("resnet8", tiny_images())])
def test_members_against_a_loop_written_out(tmp_path, net, data):
    recipe = Recipe(epochs=3, batch_size=16, lr=0.05, warmup=1, clip=0.5, augment="crop-flip", seed=4)
    trained(net, data, tmp_path, members=3, recipe=recipe, method=make("credro", delta_g=0.5))
    ours = weights(tmp_path)
    for member, delta in enumerate((0.5, 0.75, 1.0)):
        for name, tensor in bare_loop(net, data, recipe, member, delta).items():
            torch.testing.assert_close(ours[f"{member}.{name}"], tensor, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_delta_one_trains_bitwise_the_weights_of_the_mean(tmp_path, executor):
    data = digits(90)
    trained("mlp", data, tmp_path / "mean", method="de", executor=executor)
    trained("mlp", data, tmp_path / "cvar", method=Method(risk=CVaR(delta_g=1.0), readout="mean"), executor=executor)
    assert_bitwise(weights(tmp_path / "mean"), weights(tmp_path / "cvar"))


def test_a_member_does_not_depend_on_the_others(tmp_path):
    data = digits(60)
    for members in (1, 3):
        trained("mlp", data, tmp_path / str(members), members=members, method="de")
    alone, among = weights(tmp_path / "1"), weights(tmp_path / "3")
    assert_bitwise(alone, {k: v for k, v in among.items() if k.startswith("0.")})
    # Member 1 once more, with its neighbours' results in place
    folder = tmp_path / "3" / "members" / "01"
    for path in folder.iterdir():
        path.unlink()
    trained("mlp", data, tmp_path / "3", members=3, method="de")
    assert_bitwise(among, weights(tmp_path / "3"))


def test_seeds_matter_and_repeat(tmp_path):
    data = digits(60)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        trained("mlp", data, tmp_path / name, recipe=Recipe(epochs=1, lr=0.05, seed=seed))
    assert_bitwise(weights(tmp_path / "a"), weights(tmp_path / "b"))
    first, other = weights(tmp_path / "a"), weights(tmp_path / "c")
    assert not any(torch.equal(first[k], other[k]) for k in first)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_the_users_generator_is_left_alone(executor):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    trained(small_net, blobs(), executor=executor).predict(blobs()[0])
    trained("mlp", digits(40), executor=executor)
    assert torch.equal(before, torch.get_rng_state())


def test_dropout_draws_from_the_members_stream(tmp_path):
    def net():
        return nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 3))

    for seed, name in enumerate(("a", "b")):
        torch.manual_seed(seed)
        trained(net, blobs(), tmp_path / name)
    assert_bitwise(weights(tmp_path / "a"), weights(tmp_path / "b"))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_learns_what_full_precision_does(precision):
    recipe = Recipe(epochs=12, batch_size=16, lr=0.05, precision=precision)
    record = trained("cnn", tiny_images(40, 8), recipe=recipe, members=1).records[0]
    full = trained("cnn", tiny_images(40, 8), recipe=recipe.with_(precision="fp32"), members=1).records[0]
    assert record.train.accuracy > 0.9
    assert record.train.loss == pytest.approx(full.train.loss, abs=0.15)


def test_fp16_resumes_with_its_loss_scale(tmp_path):
    from credro.training.loop import Trainer
    from tests.training.common import job_of

    recipe = Recipe(epochs=4, batch_size=16, lr=0.05, precision="fp16")
    job = job_of(tmp_path, "mlp", digits(40), recipe=recipe, checkpoint_seconds=0.0)
    trainer = Trainer(job, 0)
    trainer.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    trainer.train_epoch(lambda: True)
    assert Trainer(job, 0).scaler.get_scale() == trainer.scaler.get_scale() == 1024.0


def test_optimizers_resume_bitwise(tmp_path):
    """Every optimizer's whole state travels through a checkpoint: an epoch, a fresh start, and the rest."""
    from credro.training.loop import Trainer
    from tests.training.common import job_of

    for name, recipe in {
        "sgd": Recipe(epochs=3, lr=0.05, nesterov=True),
        "plain": Recipe(epochs=3, lr=0.05, momentum=0.0),
        "adam": Recipe(epochs=3, optimizer="adam", lr=1e-3),
        "adamw": Recipe(epochs=3, optimizer="adamw", lr=1e-3),
    }.items():
        whole = Trainer(job_of(tmp_path / name / "a", "cnn", tiny_images(40, 8), recipe=recipe), 0)
        for _ in range(3):
            whole.train_epoch(lambda: True)
        job = job_of(tmp_path / name / "b", "cnn", tiny_images(40, 8), recipe=recipe, checkpoint_seconds=0.0)
        for _ in range(3):
            parts = Trainer(job, 0)
            parts.train_epoch(lambda: True)
        assert_bitwise(whole.net.state_dict(), parts.net.state_dict())


def nan_at(step, times):
    """Cross-entropy that is not a number at one step, so many times in this process."""
    count, given = [0], [0]

    def loss(output, target):
        value = nn.functional.cross_entropy(output, target, reduction="none")
        count[0] += torch.is_grad_enabled()
        if count[0] == step and given[0] < times:
            given[0] += 1
            return value * float("nan")
        return value

    return loss


def test_a_loss_that_is_not_finite_stops_its_member_only(tmp_path):
    """64 samples in batches of 16, two epochs: step 14 is member 1's second epoch, batch 2."""
    recipe = Recipe(epochs=2, batch_size=16, lr=0.05, schedule="constant")
    options = {"members": 3, "recipe": recipe, "checkpoint_seconds": 0.0}
    with pytest.raises(TrainingError) as error:
        trained(small_net, blobs(), tmp_path / "nan", loss=nan_at(14, 1), **options)
    said = str(error.value)
    assert "member 1: the loss became nan in epoch 2, batch 2, at learning rate 0.05" in said
    assert "member 0" not in said
    run = Run(tmp_path / "nan")
    assert [run.is_done(i) for i in range(3)] == [True, False, True]
    assert run.state(1).exists()
    # The next call has no such accident: it goes on from the last good checkpoint, to the weights of a good run.
    trained(small_net, blobs(), tmp_path / "nan", loss=nan_at(10**9, 1), **options)
    trained(small_net, blobs(), tmp_path / "good", loss=nan_at(10**9, 1), **options)
    assert_bitwise(weights(tmp_path / "nan"), weights(tmp_path / "good"))


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_learning_rate_that_explodes(tmp_path, executor):
    with pytest.raises(TrainingError, match=r"member 0: the loss became (nan|inf) in epoch \d+, batch \d+, at"):
        trained(small_net, blobs(), tmp_path, recipe=Recipe(epochs=30, lr=1e20, batch_size=16), executor=executor)
    assert not Run(tmp_path).is_done(0)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_last_step_that_explodes_is_no_success(tmp_path, executor):
    """One batch, one epoch: every loss of the training was finite."""
    recipe = Recipe(epochs=1, lr=1e30, batch_size=64, momentum=0.0, weight_decay=0.0)
    with pytest.raises(TrainingError, match=r"member 1: the loss on the training set is (nan|inf) after"):
        trained(small_net, blobs(), tmp_path, recipe=recipe, executor=executor)
    assert not Run(tmp_path).is_done(0)


def test_history_has_a_line_per_epoch_and_done_the_fit(tmp_path):
    recipe = Recipe(epochs=3, batch_size=16, lr=0.05, schedule="step", milestones=(2,), per_step=False)
    ensemble = trained("mlp", digits(60), tmp_path, recipe=recipe, held_out=load_tail())
    lines = [json.loads(line) for line in (tmp_path / "members/01/history.jsonl").read_text().splitlines()]
    assert [e["epoch"] for e in lines] == [1, 2, 3]
    assert [e["lr"] for e in lines] == pytest.approx([0.05, 0.05, 0.005])
    for entry in lines:
        assert set(entry) >= {"loss", "accuracy", "seconds", "held_out_loss", "held_out_accuracy"}
        assert 0 <= entry["accuracy"] <= 1
    record = ensemble.records[1]
    assert record.delta == 1.0
    assert record.epochs == 3
    assert record.held_out.loss == pytest.approx(lines[-1]["held_out_loss"], rel=1e-6)
    assert None not in (record.train.loss, record.train.nll, record.train.accuracy, record.train.confidence)


def load_tail():
    from credro.data import load

    return load("digits").subset(range(200, 260))


def test_the_recorded_loss_is_the_mean_over_samples(tmp_path):
    """With so small a step the network stands still, so the epoch's mean loss is that of the whole set."""
    recipe = Recipe(epochs=1, batch_size=16, lr=1e-12)
    ensemble = trained(small_net, blobs(50), tmp_path, method="de", recipe=recipe)  # batches of 16, 16, 18
    (entry,) = History(tmp_path / "members/00/history.jsonl").read()
    assert entry.loss == pytest.approx(ensemble.records[0].train.loss, rel=1e-5)
    assert entry.accuracy == pytest.approx(ensemble.records[0].train.accuracy)


def test_plateau_reduces_when_the_held_out_loss_stands_still(tmp_path):
    recipe = Recipe(epochs=6, lr=1e-9, schedule="plateau", patience=1, gamma=0.1, per_step=False)
    trained("mlp", digits(40), tmp_path, members=1, recipe=recipe, held_out=load_tail())
    rates = [e.lr for e in History(tmp_path / "members/00/history.jsonl").read()]
    assert rates == pytest.approx([1e-9, 1e-9, 1e-9, 1e-10, 1e-10, 1e-11])


def focal_of_own(output, target):
    p = output.softmax(-1).gather(-1, target[:, None]).squeeze(-1)
    return -((1 - p) ** 2) * p.log()


def test_ones_own_loss_is_the_named_one(tmp_path):
    """focal by name and by a function of the user's give the same members."""
    recipe = Recipe(epochs=3, batch_size=16, lr=0.05)
    trained(small_net, blobs(), tmp_path / "named", recipe=recipe.with_(loss="focal"))
    trained(small_net, blobs(), tmp_path / "own", recipe=recipe, loss=focal_of_own)
    trained(small_net, blobs(), tmp_path / "other", recipe=recipe)
    named, own, other = (weights(tmp_path / n) for n in ("named", "own", "other"))
    for key in named:
        torch.testing.assert_close(named[key], own[key], rtol=1e-4, atol=1e-5)
    assert any((named[k] - other[k]).abs().max() > 1e-3 for k in named)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_soft_labels(tmp_path, executor):
    """One-hot soft labels are the labels."""
    x, y = blobs()
    trained(small_net, (x, y), tmp_path / "hard", executor=executor)
    trained(small_net, (x, nn.functional.one_hot(y, 3).float()), tmp_path / "soft", executor=executor)
    hard, soft = weights(tmp_path / "hard"), weights(tmp_path / "soft")
    for key in hard:
        torch.testing.assert_close(hard[key], soft[key], rtol=1e-5, atol=1e-6)


def test_regression_trains_with_held_out_data(tmp_path):
    x, _ = blobs(100)
    y = x @ torch.arange(6.0)
    recipe = Recipe(epochs=40, batch_size=20, lr=1e-2, optimizer="adam", loss="gaussian_nll", weight_decay=0.0)

    def net():
        return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))

    trained(net, (x, y), tmp_path, recipe=recipe, held_out=(x, y))
    entries = History(tmp_path / "members/00/history.jsonl").read()
    assert entries[-1].held_out_loss < entries[0].held_out_loss - 1
    assert entries[0].held_out_accuracy is None


class Doubled(Risk):
    """A user's own risk."""

    kind = "doubled"

    def reduce(self, losses, draws):
        return 2 * losses.mean()


def test_ones_own_risk(tmp_path):
    method = Method(risk=Doubled(), readout="mean", name="mine")
    recipe = Recipe(epochs=2, batch_size=16, lr=0.05, momentum=0.0, weight_decay=0.0)
    trained(small_net, blobs(), tmp_path / "own", method=method, recipe=recipe)
    trained(small_net, blobs(), tmp_path / "de", method="de", recipe=recipe.with_(lr=0.1))
    for key, tensor in weights(tmp_path / "de").items():
        torch.testing.assert_close(tensor, weights(tmp_path / "own")[key], rtol=1e-4, atol=1e-5)
