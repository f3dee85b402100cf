"""What the members say is their own, and computed once: kept answers are those of these weights and samples."""

import os
from dataclasses import replace

import pytest
import torch
from torch import nn

import credro
from credro.data import Data, load
from tests.training.common import blobs, trained

HELD = load("digits").subset(range(300, 420))


def calls(ensemble):
    """How often each member's network is called from now on."""
    count = [0]
    for net in ensemble.nets:
        net.register_forward_hook(lambda *_: count.__setitem__(0, count[0] + 1))
    return count


def test_predictions_are_the_networks_own(ensemble):
    prediction = ensemble.predict(HELD)
    x = HELD.samples.float() / 255
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (ensemble.inputs.mean, ensemble.inputs.std))
    with torch.no_grad():
        expected = torch.stack([net((x - mean) / std).softmax(-1) for net in ensemble.nets])
    torch.testing.assert_close(prediction.probs, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(prediction.mean, expected.double().mean(0), rtol=1e-4, atol=1e-6)
    gap = credro.epistemic(credro.Box.of(expected))
    torch.testing.assert_close(prediction.epistemic, gap, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1, 7, 119, 1000])
def test_chunks_give_the_same_as_the_whole(ensemble, size):
    whole = ensemble.scores(HELD, cache=False, batch_size=120)
    torch.testing.assert_close(ensemble.scores(HELD, cache=False, batch_size=size), whole, rtol=1e-5, atol=1e-5)


def test_networks_see_one_batch_at_a_time(ensemble):
    seen = []
    for net in ensemble.nets:
        net.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    ensemble.predict(HELD, batch_size=50, cache=False)
    assert seen == [50] * 3 + [50] * 3 + [20] * 3


def test_a_second_prediction_is_read_from_the_run(ensemble):
    first, count = ensemble.predict(HELD), calls(ensemble)
    again = ensemble.predict(HELD)
    assert count[0] == 0
    assert torch.equal(first.probs, again.probs)
    other = credro.load(ensemble.run.folder, device="cpu")  # and by another process, or under another read-out
    count = calls(other)
    assert torch.equal(other.read_as("en-dro").predict(HELD).probs, first.probs)
    assert count[0] == 0
    ensemble.predict(HELD.subset(range(50)))
    assert len(list((ensemble.run.folder / "predictions").iterdir())) == 2
    count = calls(ensemble)
    ensemble.predict(HELD, cache=False)
    assert count[0] == 3


def test_the_cache_is_not_stale_when_weights_or_samples_change(ensemble):
    first = ensemble.predict(HELD)
    with torch.no_grad():
        ensemble.nets[0].head.weight.mul_(2)
    assert not torch.equal(ensemble.predict(HELD).probs, first.probs)
    changed = HELD.samples.clone()
    changed[5] = 255 - changed[5]
    other = Data("digits", changed, HELD.labels, HELD.shape, HELD.classes)
    again = ensemble.predict(other)
    assert not torch.equal(again.probs[:, 5], ensemble.predict(HELD).probs[:, 5])
    torch.testing.assert_close(again.probs[:, 6:], ensemble.predict(HELD).probs[:, 6:])


def kept_files(ensemble):
    return {path.name: path for path in (ensemble.run.folder / "predictions").glob("*")}


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.head.weight.data.mul_(2),  # behind autograd's back
        lambda net: net.head.weight.detach().mul_(2),
        lambda net: setattr(net.head, "weight", nn.Parameter(2 * net.head.weight.detach())),
        lambda net: net.load_state_dict({k: 2 * v for k, v in net.state_dict().items()}),
    ],
    ids=["data", "detached", "exchanged", "loaded"],
)
def test_networks_that_were_changed_are_asked_and_leave_nothing_behind(ensemble, change):
    first, files = ensemble.scores(HELD), kept_files(ensemble).keys()
    change(ensemble.nets[1])
    count = calls(ensemble)
    changed = ensemble.scores(HELD)
    assert count[0] == 3
    assert [torch.equal(a, b) for a, b in zip(first, changed, strict=True)] == [True, False, True]
    assert kept_files(ensemble).keys() == files
    assert torch.equal(credro.load(ensemble.run.folder, device="cpu").scores(HELD), first)


def test_a_run_that_is_trained_anew_in_the_same_folder_is_asked(ensemble):
    """Other weights of the same network, in the same place: the answers that were kept are none of theirs."""
    first = ensemble.scores(HELD)
    other = trained("mlp", HELD, members=3, recipe=credro.Recipe(epochs=2, lr=0.01, seed=9))
    for i in range(3):
        for name in ("weights.safetensors", "done.json"):
            os.replace(other.run.member(i) / name, ensemble.run.member(i) / name)
    again = credro.load(ensemble.run.folder, device="cpu")
    count = calls(again)
    assert not torch.equal(again.scores(HELD), first)
    assert count[0] == 3


def test_another_head_or_other_inputs_never_meet_the_same_file(tmp_path):
    """CreBNN's draws, and how samples go in, decide the scores as the weights do."""
    data = credro.data.as_data(blobs())
    ensemble = trained("mlp", data, tmp_path, method=credro.methods.make("crebnn", samples=2))
    few = ensemble.scores(data)
    head = replace(ensemble.method.head, samples=3)
    more = ensemble.read_as(ensemble.method)
    more.method = replace(more.method, head=head)
    count = calls(ensemble)
    assert not torch.equal(more.scores(data), few)
    assert count[0] == 2 * 3
    moved = ensemble.read_as(ensemble.method)
    moved.inputs = replace(moved.inputs, mean=(1.0,) * 6, std=(2.0,) * 6)
    assert not torch.equal(moved.scores(data), few)
    assert len(kept_files(ensemble)) == 3
    assert torch.equal(ensemble.scores(data), few)


def test_the_measure_and_a_temperature_do_not(ensemble):
    first = ensemble.scores(HELD)
    ensemble.calibrate(HELD)
    count = calls(ensemble)
    assert torch.equal(ensemble.read_as("credro-hull").scores(HELD), first)
    assert torch.equal(ensemble.plain().scores(HELD), first)
    assert count[0] == 0


def flipped(content):
    """One bit of the last number: the file is still one of tensors."""
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [flipped, lambda c: c[: len(c) // 2], lambda c: b"", lambda c: b"\xff" * len(c), lambda c: c[:8] + b"[" + c[9:]],
    ids=["one bit", "cut off", "empty", "noise", "header"],
)
def test_a_damaged_answer_is_computed_anew_with_a_warning(ensemble, damage):
    first = ensemble.scores(HELD)
    (path,) = kept_files(ensemble).values()
    path.write_bytes(damage(path.read_bytes()))
    count = calls(ensemble)
    with pytest.warns(UserWarning, match="outputs that were kept are damaged and are computed anew") as said:
        again = ensemble.scores(HELD)
    assert str(path) in str(said[0].message)
    assert torch.equal(again, first)
    assert count[0] == 3
    assert torch.equal(ensemble.scores(HELD), first)  # and the file is whole again
    assert count[0] == 3


def test_a_file_of_other_tensors_is_no_answer(ensemble):
    from credro.training.files import write_tensors

    first = ensemble.scores(HELD)
    (path,) = kept_files(ensemble).values()
    write_tensors(path, {"other": torch.zeros(3)})
    with pytest.warns(UserWarning, match="computed anew"):
        assert torch.equal(ensemble.scores(HELD), first)


def test_a_folder_that_cannot_be_written_to_only_warns(ensemble, monkeypatch):
    """Root may write anywhere, so the system's own refusal is played."""

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("credro.ensemble._scores.write_tensors", refuse)
    with pytest.warns(UserWarning, match="the outputs could not be kept for another time: .*Permission denied"):
        first = ensemble.scores(HELD)
    assert torch.equal(first, ensemble.scores(HELD, cache=False))


def test_a_file_in_the_place_of_the_folder_only_warns(ensemble):
    (ensemble.run.folder / "predictions").write_text("mine")
    with pytest.warns(UserWarning, match="the outputs could not be kept"):
        assert len(ensemble.predict(HELD)) == 120
    assert (ensemble.run.folder / "predictions").read_text() == "mine"


def test_samples_that_come_out_otherwise_each_time_are_not_kept(ensemble):
    noisy = Data("noisy", lambda i: torch.rand(len(i), 1, 8, 8), HELD.labels, HELD.shape, HELD.classes)
    assert not torch.equal(ensemble.scores(noisy), ensemble.scores(noisy))
    assert kept_files(ensemble) == {}
