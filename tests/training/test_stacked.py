from dataclasses import dataclass

import pytest
import torch
from torch import nn

from credro.data import as_data
from credro.members import Softmax
from credro.methods import Method
from credro.training.executors import choose
from credro.training.job import TrainingError
from credro.training.recipe import Recipe
from credro.training.run import History, Run
from credro.training.stacked import Stack, _clip, why_not_stacked
from tests.training.common import blobs, digits, job_of, small_net, tiny_images, trained, weights
from tests.training.test_loop import nan_at


def batch_of(job, member, size=16):
    generator = torch.Generator().manual_seed(member)
    return job.inputs(job.data.batch(torch.randint(len(job.data), (size,), generator=generator)))


def normed_mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))


@pytest.mark.parametrize(
    ("net", "data"), [("mlp", digits(40)), (normed_mlp, digits(40)), ("resnet8", tiny_images()), ("cnn", tiny_images())]
)
def test_one_pass_is_that_of_each_network_alone(tmp_path, net, data):
    """Outputs in train and eval mode, and BatchNorm's running statistics after each."""
    job = job_of(tmp_path, net, data, members=3)
    stack, alone = Stack(job, [0, 1, 2]), [job.network(i) for i in range(3)]
    for training in (True, False, True, False):
        x = torch.stack([batch_of(job, i) for i in range(3)])
        together = stack.forward(x, training)
        for i, one in enumerate(alone):
            torch.testing.assert_close(together[i], one.train(training)(x[i]), rtol=1e-4, atol=1e-5)
    for i, one in enumerate(alone):
        for name, tensor in one.state_dict().items():
            torch.testing.assert_close(stack.network(i).state_dict()[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("net", "data", "options"),
    [
        ("mlp", digits(90), {"clip": 0.3}),
        ("mlp", digits(90), {"optimizer": "adamw", "lr": 1e-3}),
        (normed_mlp, digits(90), {}),
        ("resnet8", tiny_images(), {"augment": "crop-flip", "clip": 0.3}),
    ],
    ids=["mlp clip", "mlp adamw", "mlp batch norm", "resnet8"],
)
@pytest.mark.parametrize("method", ["credro", "creram"])
def test_training_agrees_with_the_loop(tmp_path, net, data, options, method):
    recipe = Recipe(**{"epochs": 2, "batch_size": 16, "lr": 0.02, **options})
    for executor in ("sequential", "stacked"):
        trained(net, data, tmp_path / executor, members=3, recipe=recipe, executor=executor, method=method)
    one, other = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=5e-3, atol=5e-4)
    for member in range(3):
        first, second = (
            History(tmp_path / e / f"members/{member:02d}/history.jsonl").read() for e in ("sequential", "stacked")
        )
        assert [e.loss for e in first] == pytest.approx([e.loss for e in second], rel=1e-3)
        assert [e.lr for e in first] == [e.lr for e in second]


def test_each_members_gradient_is_clipped_by_its_own_norm():
    generator = torch.Generator().manual_seed(0)
    params = [torch.zeros(3, 4, 5), torch.zeros(3, 6)]
    for p in params:
        p.grad = torch.randn(p.shape, generator=generator) * torch.tensor([0.01, 1.0, 100.0]).view(
            3, *[1] * (p.ndim - 1)
        )
    expected = []
    for i in range(3):
        alone = [nn.Parameter(p[i]) for p in params]
        for a, p in zip(alone, params, strict=True):
            a.grad = p.grad[i].clone()
        nn.utils.clip_grad_norm_(alone, 0.7)
        expected.append([a.grad for a in alone])
    _clip(params, 0.7)
    for i in range(3):
        for p, e in zip(params, expected[i], strict=True):
            torch.testing.assert_close(p.grad[i], e)


def test_bf16(tmp_path):
    recipe = Recipe(epochs=10, batch_size=16, lr=0.05, precision="bf16")
    ensemble = trained(small_net, blobs(), tmp_path, recipe=recipe, executor="stacked")
    assert all(r.train.accuracy > 0.9 for r in ensemble.records)


def test_frozen_weights_stay(tmp_path):
    def net():
        made = small_net()
        made[0].weight.requires_grad_(False)
        return made

    job = job_of(tmp_path, net, as_data(blobs()), classes=3)
    trained(net, blobs(), tmp_path, executor="stacked")
    for i in range(2):
        start = job.network(i).state_dict()
        assert torch.equal(weights(tmp_path)[f"{i}.0.weight"], start["0.weight"])
        assert not torch.equal(weights(tmp_path)[f"{i}.2.weight"], start["2.weight"])


class Scaled(nn.Module):
    """A buffer that is not saved with the weights."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.register_buffer("scale", torch.ones(6), persistent=False)

    def forward(self, x):
        return self.layer(x * self.scale)


class Tied(nn.Module):
    """Two layers with the same weights."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 6), nn.Linear(6, 3)
        self.again = self.inner

    def forward(self, x):
        return self.outer(self.again(self.inner(x).relu()))


def test_buffers_that_are_not_saved(tmp_path):
    for executor in ("sequential", "stacked"):
        trained(Scaled, blobs(), tmp_path / executor, executor=executor)
    one, other = weights(tmp_path / "sequential"), weights(tmp_path / "stacked")
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=1e-4)


def test_tied_weights_stay_tied_by_the_loop(tmp_path):
    trained(Tied, blobs(), tmp_path, executor="auto", workers=1)
    assert torch.equal(weights(tmp_path)["0.inner.weight"], weights(tmp_path)["0.again.weight"])


class Branching(nn.Module):
    """A network that looks at its numbers, which one pass for all members cannot."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(x) if float(x.sum()) > 1e9 else -self.layer(x)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(nn.functional.dropout(x, 0.5, self.training))


def dropping():
    return nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5))


@dataclass(frozen=True)
class Penalised(Softmax):
    """A user's own head: a stack would train it without its penalty."""

    def penalty(self, net, samples):
        return next(net.parameters()).square().sum()


@dataclass(frozen=True)
class Spared(Softmax):
    """A stack's one optimizer would let the first layer decay."""

    def without_decay(self, net):
        return [next(net.parameters())]


@pytest.mark.parametrize(
    ("net", "changes", "words"),
    [
        (small_net, {"schedule": "plateau"}, "plateau"),
        (small_net, {"precision": "fp16"}, "fp16"),
        (small_net, {"compile": True}, "compile"),
        (dropping, {}, "dropout"),
        (Tied, {}, "share weights"),
        (Noisy, {}, "torch.func cannot run"),
        (Branching, {}, "torch.func cannot run"),
    ],
)
def test_what_cannot_be_stacked_is_said_and_auto_trains_it_otherwise(tmp_path, net, changes, words):
    recipe = Recipe(epochs=1, lr=0.05, **changes)
    held_out = as_data(blobs()) if changes.get("schedule") else None
    job = job_of(tmp_path, net, as_data(blobs()), classes=3, recipe=recipe, held_out=held_out)
    assert words in why_not_stacked(job)
    assert choose(job, "auto", 1) == "sequential"
    with pytest.raises(ValueError, match="executor='stacked' cannot train this run"):
        choose(job, "stacked", 1)


@pytest.mark.parametrize("head", [Penalised(), Spared()])
def test_a_head_with_a_penalty_is_not_stacked(tmp_path, head):
    assert why_not_stacked(job_of(tmp_path, small_net, as_data(blobs()), classes=3)) is None
    job = job_of(tmp_path, small_net, as_data(blobs()), classes=3, method=Method(head=head))
    assert "one by one" in why_not_stacked(job)
    assert choose(job, "auto", 1) == "sequential"


def test_a_member_that_fails_leaves_the_stack_and_can_go_on_alone(tmp_path):
    """Steps count members: 2 members, 4 batches, so call 10 is member 1's in epoch 2, batch 1."""
    recipe = Recipe(epochs=3, batch_size=16, lr=0.05, schedule="constant")
    options = {"recipe": recipe, "executor": "stacked", "checkpoint_seconds": 0.0}
    with pytest.raises(TrainingError, match=r"^member 1: the loss became nan in epoch 2, batch 1, at learning rate"):
        trained(small_net, blobs(), tmp_path / "nan", loss=nan_at(10, 1), **options)
    run = Run(tmp_path / "nan")
    assert [run.is_done(i) for i in range(2)] == [True, False]
    trained(small_net, blobs(), tmp_path / "nan", loss=nan_at(10**9, 1), **options)
    trained(small_net, blobs(), tmp_path / "good", loss=nan_at(10**9, 1), **options)
    failed, good = weights(tmp_path / "nan"), weights(tmp_path / "good")
    for name in good:
        torch.testing.assert_close(failed[name], good[name], rtol=1e-4, atol=1e-5)
    assert not run.stack_state.exists()
    assert [e.epoch for e in History(run.member(1) / "history.jsonl").read()] == [1, 2, 3]


def test_held_out_data_is_watched(tmp_path):
    trained(small_net, blobs(), tmp_path, executor="stacked", held_out=blobs(seed=1))
    for member in range(2):
        for entry in History(tmp_path / f"members/{member:02d}/history.jsonl").read():
            assert None not in (entry.held_out_loss, entry.held_out_accuracy)
