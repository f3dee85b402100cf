"""Samples of several tensors through fit, predict, calibrate, resume and save.

The oracle is the same network on the same numbers in one tensor: what it learns must be the same, bit for bit.
"""

import functools

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import credro
from credro.data import pad
from credro.training.loop import Trainer
from credro.training.recipe import Recipe
from tests.training.common import assert_bitwise, blobs, small_net, trained, weights

X, Y = blobs(60)


class Pair(nn.Module):
    """A network of two inputs; of one, it parts it itself."""

    def __init__(self):
        super().__init__()
        self.inner = small_net()

    def forward(self, first, second=None):
        return self.inner(first if second is None else torch.cat([first, second], -1))


class Tokens(nn.Module):
    """The mean of the embeddings that the mask leaves, by name."""

    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(20, 8), nn.Linear(8, 2)

    def forward(self, input_ids, attention_mask):
        kept = attention_mask[..., None].float()
        return self.last((self.table(input_ids) * kept).sum(1) / kept.sum(1))


def messages(count=40, longest=7, seed=0):
    """Token ids: of class 1 where the first is above 9. Pairs ({...}, label), of different lengths."""
    draws = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (count,), generator=draws).tolist()
    found = []
    for n in lengths:
        ids = torch.randint(0, 20, (n,), generator=draws)
        found.append(({"input_ids": ids, "attention_mask": torch.ones(n, dtype=torch.long)}, int(ids[0] > 9)))
    return found


IN_TWO = (X[:, :4], X[:, 4:])


@pytest.mark.parametrize("method", ["credro", "crede", "crebnn", "crerl", "creram"])
def test_two_inputs_learn_what_one_learns(tmp_path, method):
    one = trained(Pair, (X, Y), tmp_path / "one", method=method)
    two = trained(Pair, (IN_TWO, Y), tmp_path / "two", method=method)
    assert_bitwise(weights(tmp_path / "one"), weights(tmp_path / "two"))
    assert torch.equal(one.predict(X).probs, two.predict(IN_TWO).probs)


@pytest.mark.parametrize("executor", ["processes", "stacked"])
def test_two_inputs_in_other_executors(tmp_path, executor):
    trained(Pair, (X, Y), tmp_path / "one", executor=executor)
    trained(Pair, (IN_TWO, Y), tmp_path / "two", executor=executor)
    trained(Pair, ({"second": IN_TWO[1], "first": IN_TWO[0]}, Y), tmp_path / "named", executor=executor)
    assert_bitwise(weights(tmp_path / "one"), weights(tmp_path / "two"))
    assert_bitwise(weights(tmp_path / "one"), weights(tmp_path / "named"))


def test_a_run_of_fields_goes_on_where_it_stopped(tmp_path, monkeypatch):
    trained(Pair, (IN_TWO, Y), tmp_path / "whole", recipe=Recipe(epochs=4, batch_size=16))

    plain = Trainer.train_epoch

    def cut(trainer, alive):
        if (trainer.i, trainer.epoch) == (1, 2):
            raise KeyboardInterrupt
        return plain(trainer, alive)

    recipe = Recipe(epochs=4, batch_size=16)
    monkeypatch.setattr(Trainer, "train_epoch", cut)
    with pytest.raises(KeyboardInterrupt):
        trained(Pair, (IN_TWO, Y), tmp_path / "cut", recipe=recipe, checkpoint_seconds=0)
    assert (tmp_path / "cut" / "members" / "01" / "train_state.safetensors").exists()
    monkeypatch.undo()
    trained(Pair, (IN_TWO, Y), tmp_path / "cut", recipe=recipe)
    assert_bitwise(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_whatever_they_come_in_the_prediction_is_the_same(tmp_path):
    ensemble = trained(Pair, (IN_TWO, Y), tmp_path / "run")
    expected = ensemble.predict(IN_TWO).probs
    pairs = [((a, b), int(y)) for a, b, y in zip(*IN_TWO, Y, strict=True)]
    for x in (
        (IN_TWO, Y),
        credro.data.as_data((IN_TWO, Y)),
        pairs,
        DataLoader(pairs, batch_size=7),
        [sample for sample, _ in pairs],
        DataLoader([sample for sample, _ in pairs], batch_size=9),
        tuple(t.numpy() for t in IN_TWO),
        tuple(t.double() for t in IN_TWO),
    ):
        assert torch.allclose(ensemble.predict(x).probs, expected, atol=1e-6)
    loaded = credro.load(tmp_path / "run", make_net=Pair)
    assert torch.equal(loaded.predict(IN_TWO).probs, expected)
    assert torch.equal(loaded.predict(credro.data.as_data((IN_TWO, Y))).probs, expected)  # kept with the run
    assert torch.equal(loaded.predict(credro.data.as_data((IN_TWO, Y))).probs, expected)
    assert [f.shape for f in loaded.fields] == [(4,), (2,)]


def test_padding_is_no_part_of_a_sample(tmp_path):
    """Ragged samples by a collate function against the same in one width."""
    items = messages()
    loader = DataLoader(items, batch_size=16, collate_fn=pad)
    wide, labels = pad(items)
    ragged = trained(Tokens, loader, tmp_path / "ragged")
    fixed = trained(Tokens, (wide, labels), tmp_path / "fixed")
    kept = weights(tmp_path / "fixed")
    for name, t in weights(tmp_path / "ragged").items():
        assert torch.allclose(t, kept[name], atol=1e-5)
    expected = fixed.predict(wide).probs
    assert torch.allclose(ragged.predict(wide).probs, expected, atol=1e-5)
    assert torch.allclose(ragged.predict(loader).probs, expected, atol=1e-5)
    for i in (0, 3):
        alone = pad(items[i : i + 1])[0]
        assert torch.allclose(ragged.predict(alone).probs[:, 0], expected[:, i], atol=1e-5)
    with pytest.raises(ValueError, match="samples must have the fields input_ids \\(7\\)"):
        fixed.predict({"input_ids": torch.ones(2, 9, dtype=torch.long), "attention_mask": torch.ones(2, 9).long()})


def test_samples_of_different_lengths_are_not_stacked(tmp_path):
    loader = DataLoader(messages(), batch_size=16, collate_fn=pad)
    with pytest.raises(ValueError, match="samples of different lengths are padded"):
        trained(Tokens, loader, tmp_path / "stacked", executor="stacked")
    trained(Tokens, loader, tmp_path / "auto", executor="auto")
    assert credro.training.run.Run(tmp_path / "auto").config().execution.executor != "stacked"


def test_measured_as_a_whole(tmp_path):
    """Evaluation leaves out what was trained on, and counts it."""
    ensemble = trained(Tokens, DataLoader(messages(60), collate_fn=pad), tmp_path / "run")
    seen = [*messages(20, seed=9), *messages(60)[:5]]
    with pytest.warns(UserWarning, match="trained on: left out"):
        found = credro.evaluate(ensemble, DataLoader(seen, collate_fn=pad))
    assert found.samples == 20
    labels = torch.tensor([label for _, label in messages(20, seed=9)])
    right = (ensemble.predict(pad(messages(20, seed=9))[0]).label == labels).double().mean()
    assert found.results[0].accuracy == pytest.approx(float(right))


def test_a_run_knows_the_fields_it_has_seen(tmp_path):
    items = messages()
    ensemble = trained(Tokens, DataLoader(items, collate_fn=pad), tmp_path / "run")
    fresh = messages(12, seed=5)
    mixed = credro.data.as_data(DataLoader([*fresh, *items[:8]], collate_fn=pad))
    left, found = ensemble.unseen(mixed)
    assert (len(left), found.trained) == (12, 8)


def test_held_out_and_calibration(tmp_path):
    items, held = messages(60), DataLoader(messages(30, seed=3), collate_fn=pad)
    ensemble = trained(
        Tokens, DataLoader(items, collate_fn=pad), tmp_path / "run", held_out=held, calibrate=held, early_stop=True,
        recipe=Recipe(epochs=3, batch_size=16, early_stop=2),
    )  # fmt: skip
    assert ensemble.calibrated
    with pytest.raises(ValueError, match="samples must have the fields input_ids"):
        ensemble.calibrate((X, Y % 2))


def test_saved_and_of(tmp_path):
    ensemble = credro.Ensemble.of([Pair(), Pair()], (IN_TWO, Y))
    expected = ensemble.predict(IN_TWO).probs
    ensemble.save(tmp_path / "given")
    assert torch.equal(credro.load(tmp_path / "given", make_net=Pair).predict(IN_TWO).probs, expected)


def test_a_trunk_of_fields(tmp_path):
    """Tokens (B, T, F) are pooled by the mask: the oracle takes the mean over each sample's own tokens."""
    table = nn.Embedding(20, 8)

    class Backbone(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = table

        def forward(self, input_ids, attention_mask):
            return self.table(input_ids)

    items = messages()
    on = credro.on(Backbone(), head="linear")
    loader = DataLoader(items, collate_fn=pad)
    ensemble = trained(on, loader, tmp_path / "run")
    by_hand = torch.stack([table(sample["input_ids"]).mean(0) for sample, _ in items]).detach()
    wide, _ = pad(items)
    assert torch.allclose(on.trunk.features(credro.data.fields.as_fields(wide)), by_hand, atol=1e-6)
    expected = ensemble.predict(wide).probs
    assert torch.allclose(ensemble.predict(loader).probs, expected, atol=1e-5)
    loaded = credro.load(tmp_path / "run", trunk=on.trunk)
    assert torch.equal(loaded.predict(wide).probs, expected)
    assert [f.name for f in loaded.fields] == ["input_ids", "attention_mask"]


def test_errors_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="does not take the fields wrong \\(6\\) float32"):
        trained(Pair, ({"wrong": X}, Y), tmp_path / "a")
    with pytest.raises(ValueError, match="held_out: samples must have the fields"):
        trained(Pair, (IN_TWO, Y), tmp_path / "b", held_out=(IN_TWO[::-1], Y))
    with pytest.raises(ValueError, match="takes one tensor"):
        trained("mlp", (IN_TWO, Y), tmp_path / "c")
    ensemble = trained(Pair, (IN_TWO, Y), tmp_path / "d")
    with pytest.raises(ValueError, match="samples must have the fields"):
        ensemble.predict((IN_TWO[0], IN_TWO[0]))
    with pytest.raises(ValueError, match="samples must have the fields"):
        ensemble.predict({"first": IN_TWO[0], "second": IN_TWO[1]})
    bad = IN_TWO[1].clone()
    bad[3, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN or infinite in sample 3"):
        ensemble.predict((IN_TWO[0], bad))
    with pytest.raises(ValueError, match="x is NaN in sample 3"):
        trained(Pair, ((IN_TWO[0], bad), Y), tmp_path / "e")


def noisy(x, generator):
    first, second = x
    return first + 0.1 * torch.randn(first.shape, generator=generator), second


def noisy_whole(x, generator):
    return torch.cat([x[:, :4] + 0.1 * torch.randn(x[:, :4].shape, generator=generator), x[:, 4:]], 1)


def test_own_augmentation_gets_the_fields(tmp_path):
    recipe = functools.partial(Recipe, epochs=2, batch_size=16)
    trained(Pair, (X, Y), tmp_path / "one", recipe=recipe(augment=noisy_whole))
    trained(Pair, (IN_TWO, Y), tmp_path / "two", recipe=recipe(augment=noisy))
    assert_bitwise(weights(tmp_path / "one"), weights(tmp_path / "two"))
    with pytest.raises(ValueError, match="augment must give a batch of the shape it gets"):
        trained(Pair, (IN_TWO, Y), tmp_path / "bad", recipe=recipe(augment=lambda x, g: x[0]))
