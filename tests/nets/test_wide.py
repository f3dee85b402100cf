import pytest
import torch
from torch.nn import functional

from credro.nets import WideResNet, make


def count(depth, width, classes):
    """Zagoruyko and Komodakis 2016, Table 1, added up layer by layer."""
    total, inputs = 9 * 3 * 16, 16
    for outputs in (16 * width, 32 * width, 64 * width):
        for _ in range((depth - 4) // 6):
            total += 2 * inputs + 9 * inputs * outputs + 2 * outputs + 9 * outputs * outputs
            total += inputs * outputs if inputs != outputs else 0
            inputs = outputs
    return total + 2 * inputs + inputs * classes + classes


def test_counts():
    assert count(28, 10, 10) == 36_479_194  # published: 36.5M
    assert round(count(28, 4, 100) / 1e6, 1) == 5.9  # published
    for classes in (10, 100):
        assert sum(p.numel() for p in make("wrn28-4", classes).parameters()) == count(28, 4, classes)
    assert sum(p.numel() for p in WideResNet(40, 2).parameters()) == count(40, 2, 10)


def test_keys_are_those_of_published_weights():
    keys = list(make("wrn28-4").state_dict())
    assert keys[0] == "conv1.weight"
    assert [key for key in keys if "block1.layer.0" in key and key.endswith("weight")] == [
        f"block1.layer.0.{name}.weight" for name in ("bn1", "conv1", "bn2", "conv2", "convShortcut")
    ]
    assert sum("convShortcut" in key for key in keys) == 3
    assert keys[-2:] == ["fc.weight", "fc.bias"]


def test_forward_is_the_paper_s():
    torch.manual_seed(0)
    net = WideResNet(16, 1, classes=5, shape=(2, 16, 12)).double()  # width 1: the first block keeps its channels
    x = torch.randn(4, 2, 16, 12, dtype=torch.float64)
    state = net.state_dict()

    def active(x):  # fresh BatchNorm in train mode, then ReLU
        variance, mean = torch.var_mean(x, (0, 2, 3), correction=0, keepdim=True)
        return ((x - mean) / (variance + 1e-5).sqrt()).clamp(min=0)

    out = functional.conv2d(x, state["conv1.weight"], padding=1)
    for group in (1, 2, 3):
        for i in (0, 1):
            key, stride = f"block{group}.layer.{i}", 2 if group > 1 and i == 0 else 1
            a = active(out)
            hidden = active(functional.conv2d(a, state[f"{key}.conv1.weight"], stride=stride, padding=1))
            short = state.get(f"{key}.convShortcut.weight")
            skip = out if short is None else functional.conv2d(a, short, stride=stride)
            out = skip + functional.conv2d(hidden, state[f"{key}.conv2.weight"], padding=1)
    expected = active(out).mean((2, 3)) @ state["fc.weight"].T
    torch.testing.assert_close(net(x), expected)


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    net, x = WideResNet(10, 1, dropout=0.5), torch.randn(4, 3, 32, 32)
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


@pytest.mark.parametrize("depth", [4, 27])
def test_bad_depth(depth):
    with pytest.raises(ValueError, match=f"depth must be 6n \\+ 4 .* got {depth}"):
        WideResNet(depth)
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\), got 1"):
        WideResNet(dropout=1)
