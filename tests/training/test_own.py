"""A recipe with functions of the user's own: augmentation, optimizer, schedule."""

import math
from functools import partial

import pytest
import torch

from credro._names import ArgumentError
from credro.data.adapt import as_data
from credro.training.executors import why_not_sent
from credro.training.feed import Feed, Inputs
from credro.training.loop import Trainer
from credro.training.recipe import Recipe, learning_rate
from credro.training.run import Run, RunError
from tests.training.common import assert_bitwise, blobs, job_of, small_net, tiny_images, trained, weights

SMALL = {"epochs": 3, "batch_size": 16}


def jitter(x, generator, by=0.1):
    return x + by * torch.randn(x.shape, generator=generator)


def inverted(x, generator):
    return 255 - x


def rmsprop(parameters):
    return torch.optim.RMSprop(parameters, lr=0.004, momentum=0.5)


def two_rates(parameters):
    first, *rest = parameters
    return torch.optim.NAdam([{"params": [first], "lr": 0.001}, {"params": rest, "lr": 0.01}])


def halving(progress):
    return 0.5 ** (4 * progress)


OWN = Recipe(**SMALL, augment=partial(jitter, by=0.2), optimizer=rmsprop, schedule=halving)


class Counting(torch.optim.SGD):
    """Keeps a plain number in its state, which no checkpoint holds."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["count"] = 0.1


class Shrinking(torch.optim.SGD):
    """Changes its own settings as it goes."""

    def step(self, closure=None):
        super().step(closure)
        self.param_groups[0]["weight_decay"] += 0.1


def by_hand(job, epochs):
    """Member 0 by torch's own scheduler."""
    net = job.network(0).train()
    optimizer = rmsprop(net.parameters())
    feed = Feed(job.data, job.inputs, job.recipe, job.device, 0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: halving(step / (epochs * len(feed))))
    rates = []
    for epoch in range(epochs):
        for x, y in feed.epoch(epoch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
    return net, rates


def test_optimizer_and_schedule_are_those_given(tmp_path):
    job = job_of(tmp_path, small_net, as_data(blobs()), method="de", recipe=OWN, classes=3)
    trainer = Trainer(job, 0)
    while not trainer.over:
        trainer.train_epoch(lambda: True)
    net, rates = by_hand(job, 3)
    for name, t in net.state_dict().items():
        torch.testing.assert_close(trainer.net.state_dict()[name], t, rtol=1e-5, atol=1e-6)
    assert [e.lr for e in trainer.entries] == pytest.approx([rates[3], rates[7], rates[11]])


def test_every_group_keeps_its_own_rate_times_the_schedule(tmp_path):
    recipe = Recipe(**SMALL, optimizer=two_rates, schedule="step", milestones=(1,), gamma=0.5, lr=0.3)
    trainer = Trainer(job_of(tmp_path, small_net, as_data(blobs()), recipe=recipe, classes=3), 0)
    for wanted in ([0.001, 0.01], [0.0005, 0.005]):
        trainer.train_epoch(lambda: True)
        assert [group["lr"] for group in trainer.optimizer.param_groups] == pytest.approx(wanted)


def test_the_schedule_goes_from_0_to_1():
    recipe = Recipe(epochs=4, lr=0.3, schedule=lambda progress: progress)
    assert [learning_rate(recipe, e) for e in (0, 1, 2.5, 4)] == pytest.approx([0, 0.075, 0.1875, 0.3])
    slow = recipe.with_(warmup=2.0)
    assert learning_rate(slow, 1) == pytest.approx(0.15)  # halfway up
    assert learning_rate(recipe.with_(per_step=False), 2.9) == pytest.approx(0.15)


def test_augmentation_sees_stored_samples_and_the_members_stream():
    data = tiny_images()
    plain, own = (
        Feed(data, Inputs(data.shape, (0.0,) * 3, (1.0,) * 3), Recipe(batch_size=16, augment=a), torch.device("cpu"), 0)
        for a in ("none", inverted)
    )
    for (x, y), (inverse, same) in zip(plain.epoch(0), own.epoch(0), strict=True):
        assert torch.equal(y, same)
        torch.testing.assert_close(inverse, 1 - x)
    table = as_data(blobs())
    noisy = [Feed(table, Inputs.of(table), OWN, torch.device("cpu"), m) for m in (0, 0, 1)]
    first, again, other = (torch.cat([x for x, _ in feed.epoch(2)]) for feed in noisy)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("recipe", [OWN, OWN.with_(optimizer=two_rates), OWN.with_(optimizer=torch.optim.Adagrad)])
def test_resumed_it_is_bitwise_the_same(tmp_path, recipe):
    whole = Trainer(job_of(tmp_path / "a", small_net, as_data(blobs()), recipe=recipe, classes=3), 0)
    while not whole.over:
        whole.train_epoch(lambda: True)
    for _ in range(recipe.epochs):
        job = job_of(tmp_path / "b", small_net, as_data(blobs()), recipe=recipe, classes=3, checkpoint_seconds=0.0)
        part = Trainer(job, 0)
        part.train_epoch(lambda: True)
    assert part.over
    assert_bitwise(dict(whole.net.state_dict()), dict(part.net.state_dict()))


def test_functions_travel_to_processes(tmp_path):
    for executor in ("sequential", "processes"):
        trained(small_net, blobs(), tmp_path / executor, recipe=OWN, executor=executor, workers=2)
    assert_bitwise(weights(tmp_path / "sequential"), weights(tmp_path / "processes"))


@pytest.mark.parametrize("field", ["augment", "optimizer", "schedule"])
def test_what_cannot_travel_is_said_by_name(tmp_path, field):
    recipe = Recipe(**SMALL, **{field: lambda *_: None})
    said = why_not_sent(job_of(tmp_path, small_net, as_data(blobs()), recipe=recipe, classes=3))
    assert said.startswith(f"{field} cannot be sent")


def test_stacked_takes_own_augmentation_and_schedule_but_no_optimizer(tmp_path):
    recipe = OWN.with_(optimizer="sgd")
    for executor in ("sequential", "stacked"):
        trained(small_net, blobs(), tmp_path / executor, recipe=recipe, executor=executor)
    one, stacked = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    for name, t in one.items():
        torch.testing.assert_close(t, stacked[name], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="an optimizer of your own"):
        trained(small_net, blobs(), tmp_path / "refused", recipe=OWN, executor="stacked")


def test_functions_are_kept_by_name_and_the_same_name_goes_on(tmp_path):
    trained(small_net, blobs(), tmp_path, recipe=OWN)
    kept = Run(tmp_path).config().recipe
    here = f"function {__name__}"
    assert (kept.optimizer, kept.schedule) == (f"{here}.rmsprop", f"{here}.halving")
    assert kept.augment == f"{here}.jitter(by=0.2)"
    assert kept == OWN.recorded() == Recipe.from_json(OWN.to_json())
    trained(small_net, blobs(), tmp_path, recipe=OWN)
    for changes in ({"optimizer": two_rates}, {"optimizer": "sgd"}, {"augment": partial(jitter, by=0.3)}):
        with pytest.raises(RunError, match=rf"recipe\.{next(iter(changes))}: 'function"):
            trained(small_net, blobs(), tmp_path, recipe=OWN.with_(**changes))
    with pytest.raises(ArgumentError, match=r"test_own\.rmsprop; give the function itself") as error:
        trained(small_net, blobs(), tmp_path, recipe=kept)
    assert error.value.argument == "optimizer"


@pytest.mark.parametrize(
    ("field", "given", "words"),
    [
        ("augment", lambda x, generator: x[:, :2], "a batch of the shape it gets"),
        ("augment", lambda x, generator: None, "got NoneType"),
        ("augment", lambda x: x, "raised TypeError"),
        ("augment", 3, "a name or a function"),
        ("schedule", lambda progress: -1.0, "factors from 0 on"),
        ("schedule", lambda progress: math.nan, "factors from 0 on"),
        ("schedule", lambda progress: "fast", "raised ValueError"),
        ("optimizer", lambda parameters: None, "raised AttributeError"),
        ("optimizer", torch.optim.LBFGS, "raised TypeError"),
        ("optimizer", Counting, "state in tensors"),
        ("optimizer", Shrinking, "must not change its groups"),
    ],
)
def test_what_cannot_be_used_is_said_before_any_work(tmp_path, field, given, words):
    with pytest.raises(ArgumentError, match=words) as error:
        trained(small_net, blobs(), tmp_path, recipe=Recipe(**SMALL, **{field: given}))
    assert error.value.argument == field
    assert not tmp_path.joinpath("config.json").exists()


def test_parameters_that_must_not_decay_come_in_a_group_of_their_own(tmp_path):
    groups = []

    def sgd(parameters):
        groups.append(parameters)
        return torch.optim.SGD(parameters, lr=0.01, weight_decay=0.1)

    recipe = Recipe(epochs=1, batch_size=16, optimizer=sgd)
    trained(small_net, blobs(), tmp_path, method="crebnn", members=2, recipe=recipe)
    assert {len(given) for given in groups} == {2}
    assert all((decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0) for decayed, spared in groups)
