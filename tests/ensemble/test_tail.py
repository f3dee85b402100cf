"""Members with copies of a trunk's last layers: trained, resumed, loaded, saved, and refused on another trunk."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import credro
from credro.methods import METHODS, make
from credro.training.loop import Trainer
from tests.ensemble.test_trunk import RECIPE, TEST, TRAIN, Backbone, images
from tests.nets.test_tail import plain
from tests.training.common import assert_bitwise, weights

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))


def trained(module, out=None, method="credro", data=TRAIN, unfreeze="last_block", head="mlp", **options):
    options = {"recipe": RECIPE, "progress": "none", "threads": 1, "members": 2, "executor": "sequential", **options}
    return credro.fit(credro.on(module, head, unfreeze=unfreeze), data, method=method, out=out, **options)


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_train_and_are_loaded(tmp_path, method):
    module = plain()
    chosen = make(method, samples=2) if method == "crebnn" else make(method)
    ens = trained(module, tmp_path / "run", chosen)
    again = credro.load(tmp_path / "run", trunk=module)
    assert torch.equal(ens.predict(TEST.samples).mean, again.predict(TEST).mean)
    assert (ens.shape, ens.inputs.shape, ens.inputs.mean) == ((3, 12, 12), (8, 5, 5), ())


def test_a_member_is_the_trunk_with_its_own_last_layers(tmp_path):
    """By hand: the pretrained trunk with a member's weights in the place of its last block, and the head behind it."""
    ens = trained(plain(), tmp_path / "run")
    for i, net in enumerate(ens.nets):
        whole, state = plain().eval(), weights(tmp_path / "run")
        before = {name: t.clone() for name, t in whole[1].state_dict().items()}
        prefix = f"{i}.rest."
        whole[1].load_state_dict({n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)})
        moved = {name for name, t in whole[1].state_dict().items() if not torch.equal(t, before[name])}
        assert moved == {"0.weight", "0.bias", "1.weight", "1.bias"}, "and no statistics"
        with torch.no_grad():
            features = whole(TEST.samples.float() / 255).mean((-2, -1))
            mean, var = state[f"{i}.norm.running_mean"], state[f"{i}.norm.running_var"]
            expected = net.head((features - mean) / (var + 1e-5).sqrt()).softmax(-1)
        assert torch.allclose(ens.predict(TEST).probs[i].float(), expected, atol=1e-5)
    assert not torch.equal(weights(tmp_path / "run")["0.rest.0.weight"], weights(tmp_path / "run")["1.rest.0.weight"])
    assert float((ens.predict(TEST).label == TEST.labels).double().mean()) > 0.9


def test_layers_that_are_not_named_stay(tmp_path):
    trained(plain(), tmp_path / "run", unfreeze="0.1")
    after, start = weights(tmp_path / "run"), plain()
    rest = [start[0][1], start[0][2], *start[1]]
    for name, t in nn.Sequential(*rest).state_dict().items():
        assert torch.equal(after[f"0.rest.{name}"], t) == (name not in ("0.weight", "0.bias")), name


def test_the_front_runs_once(tmp_path):
    class Counts(nn.Identity):
        seen = 0

        def forward(self, x):
            Counts.seen += len(x)
            return x

    module = nn.Sequential(Counts(), *plain())
    ens = trained(module, members=4)
    assert Counts.seen == len(TRAIN) + 2 * 2, "and twice for the two samples that are looked at first"
    before = Counts.seen
    ens.predict(TEST.samples)
    assert Counts.seen == before + len(TEST)
    trained(module, members=2)
    assert Counts.seen == before + len(TEST) + 2 * 2, "maps are kept"


def test_processes_train_the_same(tmp_path):
    for executor in ("sequential", "processes"):
        trained(plain(), tmp_path / executor, executor=executor, workers=2)
    assert_bitwise(weights(tmp_path / "sequential"), weights(tmp_path / "processes"))
    with pytest.raises(ValueError, match="layers of a trunk have a learning rate of their own"):
        trained(plain(), executor="stacked")


def test_a_run_that_was_interrupted_goes_on_bit_for_bit(tmp_path, monkeypatch):
    def stop(self, alive):
        if (self.i, self.epoch) == (1, 2):
            raise KeyboardInterrupt
        return epoch(self, alive)

    epoch = Trainer.train_epoch
    options = {"held_out": images(40, seed=3), "checkpoint_seconds": 0.0}
    trained(plain(), tmp_path / "through", **options)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", stop)
        with pytest.raises(KeyboardInterrupt):
            trained(plain(), tmp_path / "run", **options)
    assert (tmp_path / "run/members/01/train_state.safetensors").exists()
    trained(plain(), tmp_path / "run", **options)
    assert_bitwise(weights(tmp_path / "through"), weights(tmp_path / "run"))


def test_another_trunk_or_other_layers_are_refused(tmp_path):
    trained(plain(), tmp_path / "run")
    with pytest.raises(ValueError, match="stands on a trunk of your own: give trunk"):
        credro.load(tmp_path / "run")
    other = plain()
    with torch.no_grad():
        other[1][0].weight.mul_(2)  # behind the cut: the maps are the same
    with pytest.raises(ValueError, match=r"is not the one that .* was trained on"):
        credro.load(tmp_path / "run", trunk=other)
    with pytest.raises(credro.training.run.RunError, match=r"trunk\.digest"):
        trained(other, tmp_path / "run")
    with pytest.raises(credro.training.run.RunError, match=r"trunk\.unfreeze"):
        trained(plain(), tmp_path / "run", unfreeze="1.0")
    again = trained(other, tmp_path / "other", reuse=[tmp_path / "run"])
    assert all(record.trained_in is None for record in again.records)


def test_saved_with_its_trunk(tmp_path):
    ens = trained(plain(), tmp_path / "run")
    ens.save(tmp_path / "whole", with_trunk=True)
    again = credro.load(tmp_path / "whole", trunk=lambda: plain(5))
    assert torch.equal(again.predict(TEST.samples).mean, ens.predict(TEST.samples).mean)
    ens.without_run().save(tmp_path / "alone", with_trunk=True)
    again = credro.load(tmp_path / "alone", trunk=lambda: plain(5))
    assert torch.equal(again.predict(TEST.samples).mean, ens.predict(TEST.samples).mean)


def test_a_trunk_that_is_no_chain_is_copied_as_a_whole(tmp_path, capsys):
    module = Backbone()
    ens = trained(module, tmp_path / "run", unfreeze="conv", progress="plain", head="linear")
    assert "each member holds a copy of the whole trunk, since it is no chain" in capsys.readouterr().err
    again = credro.load(tmp_path / "run", trunk=Backbone())
    assert torch.equal(again.predict(TEST).mean, ens.predict(TEST.samples).mean)
    assert not torch.equal(ens.nets[0].rest[0].conv.weight, ens.nets[1].rest[0].conv.weight)
    assert torch.equal(module.conv.weight, Backbone().conv.weight)
    assert ens.inputs.shape == (3, 12, 12)
    assert float((ens.predict(TEST).label == TEST.labels).double().mean()) > 0.9
    with pytest.raises(ValueError, match="120 of 120 samples were trained on"):
        credro.evaluate(ens, TRAIN)


def test_images_may_be_augmented_where_the_whole_trunk_is_trained_and_maps_not():
    trained(Backbone(), unfreeze="conv", recipe=RECIPE.with_(augment="crop-flip", epochs=1))
    with pytest.raises(ValueError, match=r"these are maps of a trunk: credro\.on\(views=\.\.\.\)"):
        trained(plain(), recipe=RECIPE.with_(augment="crop-flip"))


def head_of_ones_own(features, classes):
    return nn.Sequential(nn.Linear(features, 7), nn.Tanh(), nn.Linear(7, classes))


def test_heads_of_ones_own(tmp_path):
    ens = trained(plain(), tmp_path / "run", head=head_of_ones_own)
    again = credro.load(tmp_path / "run", trunk=plain(), make_net=lambda: head_of_ones_own(12, 3))
    assert torch.equal(again.predict(TEST).mean, ens.predict(TEST).mean)
    with pytest.raises(ValueError, match="give make_net"):
        credro.load(tmp_path / "run", trunk=plain())


def test_a_regression(tmp_path):
    def target(x):
        return x[:, 0].double().mean((1, 2)) - x[:, 2].double().mean((1, 2))

    y = target(TRAIN.samples).float()
    recipe = RECIPE.with_(loss="gaussian_nll", optimizer="adamw", lr=1e-2, epochs=20)
    ens = trained(plain(), tmp_path / "run", data=(TRAIN.samples, y), recipe=recipe)
    again = credro.load(tmp_path / "run", trunk=plain())
    found = ens.predict_regression(TEST.samples)
    assert torch.equal(again.predict_regression(TEST.samples).mean, found.mean)
    truth = target(TEST.samples)
    assert float((found.mean - truth).abs().mean()) < 0.5 * float((truth - truth.mean()).abs().mean())


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", lambda p: torch.optim.RMSprop(p, lr=0.02)])
def test_pretrained_layers_learn_at_a_tenth_of_the_rate(optimizer, monkeypatch):
    seen = []
    step = Trainer._step

    def noting(self, parameters):
        seen.append([(group["lr"], sum(p.numel() for p in group["params"])) for group in self.optimizer.param_groups])
        step(self, parameters)

    monkeypatch.setattr(Trainer, "_step", noting)
    trained(plain(), members=1, head="linear", recipe=RECIPE.with_(optimizer=optimizer, warmup=1))
    for (rate, head), (slow, layers) in seen[1:]:
        assert slow == pytest.approx(rate / 10)
        assert (head, layers) == (12 * 3 + 3, 8 * 12 * 9 + 12 + 24)
    assert len({rates[0][0] for rates in seen}) > 3, "a schedule"


def test_large_maps_are_said(monkeypatch):
    monkeypatch.setattr("credro.training.features.LARGE", 120 * 8 * 5 * 5 * 4 - 1)
    with pytest.warns(UserWarning, match=r"120 of shape \(8, 5, 5\), take 0\.0 GB"):
        trained(plain(), recipe=RECIPE.with_(epochs=1), members=1)


def test_the_last_layer_of_a_transformer(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs credro[transformers]")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    folder = tmp_path / "vit"
    transformers.ViTModel(transformers.ViTConfig(**small, image_size=12, patch_size=4)).save_pretrained(folder)
    ens = trained(folder, tmp_path / "run", recipe=RECIPE.with_(optimizer="adamw", lr=5e-3))
    start = dict(credro.on(folder).trunk.module.named_parameters())
    moved = {name for name, p in ens.nets[0].rest[0].named_parameters() if not torch.equal(p, start[name])}
    assert moved
    assert not any(".0." in name or "embeddings" in name for name in moved), "the first layer stays"
    assert any(".1." in name for name in moved)
    assert torch.equal(credro.load(tmp_path / "run").predict(TEST).mean, ens.predict(TEST.samples).mean)
    ens.save(tmp_path / "whole", with_trunk=True)
    (folder / "config.json").unlink()
    assert torch.equal(credro.load(tmp_path / "whole").predict(TEST).mean, ens.predict(TEST).mean)
