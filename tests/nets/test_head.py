import copy

import pytest
import torch
from torch import nn

from credro.nets import NETS, head, make, set_head, usual_shape


@pytest.mark.parametrize("name", [n for n in NETS if n not in ("resnet34", "resnet50")])
def test_the_head_gives_the_logits_and_can_be_replaced(name):
    shape = usual_shape(name) or (1, 28, 28)
    net = make(name, classes=5, shape=shape).eval()
    last = head(net)
    assert net.get_submodule(net.head_name) is last
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(torch.arange(5.0))
        assert torch.equal(net(torch.zeros(1, *shape)), torch.arange(5.0)[None])
        new = nn.Linear(last.in_features, 6)
        set_head(net, new)
        assert head(net) is new
        assert net(torch.zeros(1, *shape)).shape == (1, 6)
    assert last not in list(net.modules())


def own():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 3), nn.Softplus()))


def test_another_s_network_ends_in_its_last_linear():
    net = own()
    assert head(net) is net[2][0]
    set_head(net, nn.Linear(8, 6))
    assert net(torch.zeros(2, 4)).shape == (2, 6)


@pytest.mark.parametrize("build", [own, lambda: make("mlp", 3, (4,))])
def test_a_larger_module_in_the_head_s_place_is_found_and_replaced_whole(build):
    net = build()
    wide = nn.Sequential(nn.Linear(head(net).in_features, 6), nn.BatchNorm1d(6))
    set_head(net, wide)
    assert head(net) is wide[0]
    twin = copy.deepcopy(net)
    set_head(twin, nn.Linear(head(twin).in_features, 3))
    assert not any(isinstance(module, nn.BatchNorm1d) for module in twin.modules())
    assert twin(torch.zeros(2, 4)).shape == (2, 3)


def test_without_a_head():
    with pytest.raises(ValueError, match=r"Conv2d has no nn.Linear to serve as its last layer"):
        head(nn.Conv2d(1, 1, 1))
    net = make("mlp", shape=(4,))
    net.head_name = "tail"
    with pytest.raises(ValueError, match="head_name of MLP is 'tail', but"):
        head(net)
    with pytest.raises(ValueError, match=r"wrap it in nn.Sequential"):
        set_head(nn.Linear(2, 2), nn.Linear(2, 2))
    convolution = nn.Sequential(nn.Conv2d(1, 1, 1))
    convolution.head_name = "0"
    with pytest.raises(ValueError, match=r"holds no nn.Linear"):
        head(convolution)
