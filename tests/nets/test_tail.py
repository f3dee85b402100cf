"""Cutting a trunk in two: where it is cut, what is trained, and that both parts together are the whole."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import credro
from credro.nets import make, train_mode
from credro.nets.tail import MakeTail, chain, cut, slower
from credro.nets.trunk import Trunk
from credro.nets.trunks import bare_trunk


def plain(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU()),
        nn.Sequential(nn.Conv2d(8, 12, 3), nn.BatchNorm2d(12), nn.ReLU()),
    )


class Lists(nn.Module):
    """No chain: the second layer sees the first one's input too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Linear(6, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.last = nn.LayerNorm(8)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.last(x)


@pytest.mark.parametrize("name", ["efficientnet-lite0", "resnet18-imagenet", "resnet50"])
@pytest.mark.parametrize("unfreeze", ["last_block", "*"])
def test_our_networks_are_the_chains_they_say(name, unfreeze):
    trunk = bare_trunk(name, name)
    found = cut(trunk, unfreeze)
    x = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    assert found.check(x) == {"efficientnet-lite0": 1280, "resnet18-imagenet": 512, "resnet50": 2048}[name]
    assert found.front.empty == (unfreeze == "*")
    layers = chain(trunk.module)
    assert {f"{n}.{p}" for n, m in layers for p, _ in m.named_parameters()} == set(
        dict(trunk.module.named_parameters())
    )


def test_a_whole_network_is_a_chain_too():
    net, x = make("resnet8", classes=4).eval(), torch.rand(2, 3, 32, 32)
    out = x
    for _, layer in chain(net):
        out = layer(out)
    assert torch.allclose(out, net(x), atol=1e-6)


@pytest.mark.parametrize(
    ("unfreeze", "trained", "front"),
    [
        ("last_block", {"1.0", "1.1"}, 3),
        ("1", {"1.0", "1.1"}, 3),
        ("1.0", {"1.0"}, 3),
        ("1.1*", {"1.1"}, 4),
        ("0.1, 1.1", {"0.1", "1.1"}, 1),
    ],
)
def test_it_is_cut_before_the_first_layer_that_is_trained(unfreeze, trained, front):
    found = cut(Trunk(plain()), unfreeze)
    assert found.trained == {f"{name}.{kind}" for name in trained for kind in ("weight", "bias")}
    assert len(found.front.module) == front
    x = torch.rand(4, 3, 10, 10)
    assert torch.equal(found.front.features(x), plain().eval()[0](x).detach()) or front != 3


def test_what_is_trained_of_a_member():
    found = cut(Trunk(plain()), "1.0")
    net = MakeTail(found.rest, found.trained, "auto", lambda: nn.Linear(12, 3), 12)()
    assert {n for n, p in net.named_parameters() if not p.requires_grad} == {"rest.1.weight", "rest.1.bias"}
    assert [p.shape for p in slower(net)] == [(12, 8, 3, 3), (12,)]
    train_mode(net)
    assert net.training
    assert net.head.training
    assert not any(m.training for m in net.rest.modules())
    assert not any(p.requires_grad for p in found.whole.module.parameters()), "the trunk itself stays as it is"
    assert net.rest[0].weight is not found.whole.module[1][0].weight


def test_the_last_block_of_efficientnet_is_its_last_residual_and_the_top():
    trained = cut(bare_trunk("efficientnet-lite0", ""), "last_block").trained
    assert {".".join(name.split(".")[:2]) for name in trained} == {"blocks.15", "top.conv", "top.norm"}


def test_the_last_block_of_what_is_no_chain():
    found = cut(Trunk(Lists()), "last_block")
    assert found.trained == {f"{layer}.{kind}" for layer in ("layers.1", "last") for kind in ("weight", "bias")}
    assert found.front.empty
    assert "a copy of the whole trunk, since it is no chain" in found.note
    assert found.check(torch.rand(5, 6)) == 8


def test_layers_on_both_sides_of_a_cut_are_not_torn_apart():
    shared = nn.Linear(6, 6)
    found = cut(Trunk(nn.Sequential(shared, nn.ReLU(), nn.Linear(6, 6), shared)), "2")
    assert found.front.empty


class Skips(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


def test_a_sequential_with_a_way_of_its_own_is_no_chain():
    assert chain(Skips(nn.Linear(4, 4))) == ()
    assert [name for name, _ in chain(nn.Sequential(nn.Linear(4, 4), Skips(nn.Linear(4, 4))))] == ["0", "1"]


def test_a_chain_that_is_none_is_refused():
    class Lies(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.a(x) + self.b(x)

        def as_chain(self):
            return [("a", self.a), ("b", self.b)]

    with pytest.raises(ValueError, match="unfreeze cannot cut this trunk"):
        cut(Trunk(Lies()), "b").check(torch.rand(3, 4))


def test_what_matches_nothing_is_named():
    with pytest.raises(ValueError, match=r"'blocks\.9\*' matches none.*; it has 1\.1, 1\.0, 0\.1, 0\.0"):
        credro.on(plain(), unfreeze="blocks.9*")
    with pytest.raises(ValueError, match=r"'1\.5' matches none"):
        credro.on(plain(), unfreeze="1.0, 1.5")
    with pytest.raises(ValueError, match="has no parameters"):
        credro.on(nn.Flatten(), unfreeze="last_block")
    module = Lists()
    del module.layers
    with pytest.raises(ValueError, match="needs a trunk that is a chain or has a list of layers"):
        credro.on(module, unfreeze="last_block")
    with pytest.raises(ValueError, match="pool must be one of auto"):
        credro.on(plain(), pool="none")


def test_an_onnx_file_cannot_be_unfrozen(tmp_path):
    (tmp_path / "trunk.onnx").write_bytes(b"not opened before it is used")
    with pytest.raises(ValueError, match="unfreeze needs layers that torch can train"):
        credro.on(tmp_path / "trunk.onnx", unfreeze="last_block")


def test_other_trunks_and_other_cuts_have_other_digests():
    fronts = [cut(Trunk(plain(seed)), name).front.digest for seed in (0, 1) for name in ("1.0", "1.1")]
    assert len(set(fronts)) == 4
    assert cut(Trunk(plain()), "1.0").front.digest == cut(Trunk(plain()), "1").front.digest, "the same maps"
