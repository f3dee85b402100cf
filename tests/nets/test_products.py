import pytest
import torch
from torch import nn

from credro.nets.products import available, fast_linear, with_fast_products


@pytest.mark.parametrize(
    ("rows", "inside", "outside", "bias"), [(256, 1280, 256, True), (7, 5, 3, False), (1, 4, 2, True)]
)
def test_outputs_and_gradients_are_those_of_torch(rows, inside, outside, bias):
    torch.manual_seed(0)
    layer, x = nn.Linear(inside, outside, bias=bias), torch.randn(rows, inside, requires_grad=True)
    weigh = torch.randn(rows, outside)
    wanted = torch.autograd.grad((layer(x) * weigh).sum(), [x, *layer.parameters()])
    torch.testing.assert_close(fast_linear(layer, x), layer(x), rtol=1e-4, atol=1e-4)
    found = torch.autograd.grad((fast_linear(layer, x) * weigh).sum(), [x, *layer.parameters()])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("x", [torch.randn(2, 3, 4), torch.randn(2, 4, dtype=torch.float64)])
def test_what_it_is_not_for_goes_torchs_way(x):
    layer = nn.Linear(4, 2).to(x.dtype)
    assert torch.equal(fast_linear(layer, x), layer(x))


def test_a_networks_weights_keep_their_names():
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    names, x = list(net.state_dict()), torch.randn(5, 4)
    before = net(x)
    torch.testing.assert_close(with_fast_products(net)(x), before)
    assert list(net.state_dict()) == names
    assert available() or "forward" not in vars(net[0])
