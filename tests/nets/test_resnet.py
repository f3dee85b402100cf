import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from credro.nets import BasicBlock, Bottleneck, ResNet, make

FACTS = json.loads((Path(__file__).parent / "state_dicts.json").read_text())


@pytest.mark.parametrize(
    ("name", "published", "classes"),
    [
        ("resnet18", "pytorch-cifar ResNet18", 10),
        ("resnet18-imagenet", "torchvision resnet18", 1000),
        ("resnet34", "torchvision resnet34", 1000),
        ("resnet50", "torchvision resnet50", 1000),
    ],
)
def test_keys_shapes_and_counts_are_the_published_ones(name, published, classes):
    net = make(name, classes)
    assert [(key, list(value.shape)) for key, value in net.state_dict().items()] == list(
        FACTS[published]["state"].items()
    )
    assert sum(p.numel() for p in net.parameters()) == FACTS[published]["parameters"]


def test_resnet18_has_the_paper_s_number_of_parameters():
    assert sum(p.numel() for p in make("resnet18").parameters()) == 11_173_962


def test_resnet8_count_by_hand():
    def block(a, b):
        shortcut = a * b + 2 * b if a != b else 0
        return 9 * a * b + 9 * b * b + 4 * b + shortcut

    by_hand = 9 * 3 * 16 + 2 * 16 + block(16, 16) + block(16, 32) + block(32, 64) + 64 * 10 + 10
    assert by_hand == 78_042
    assert sum(p.numel() for p in make("resnet8").parameters()) == by_hand


def reference(state, x, stem, head):
    """The network in eval mode, written out from its weights: He et al. 2016, Table 1 and Fig. 5."""

    def bn(key, x):
        mean, var = state[f"{key}.running_mean"], state[f"{key}.running_var"]
        scale, shift = state[f"{key}.weight"], state[f"{key}.bias"]
        return (x - mean[:, None, None]) / (var[:, None, None] + 1e-5).sqrt() * scale[:, None, None] + shift[
            :, None, None
        ]

    if stem == "imagenet":
        x = functional.conv2d(x, state["conv1.weight"], stride=2, padding=3)
        x = functional.pad(bn("bn1", x).clamp(min=0), (1, 1, 1, 1), value=-math.inf)
        x = x.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))
    else:
        x = bn("bn1", functional.conv2d(x, state["conv1.weight"], padding=1)).clamp(min=0)
    blocks = sorted({key.split(".conv1")[0] for key in state if key.startswith("layer") and ".conv1" in key})
    for key in blocks:
        stride = 2 if key.endswith(".0") and not key.startswith("layer1") else 1
        names = ("downsample", "shortcut")
        short = next((f"{key}.{n}" for n in names if f"{key}.{n}.0.weight" in state), None)
        skip = x if short is None else bn(f"{short}.1", functional.conv2d(x, state[f"{short}.0.weight"], stride=stride))
        deep = f"{key}.conv3.weight" in state
        out, last = x, 3 if deep else 2
        for i in range(1, last + 1):
            weight = state[f"{key}.conv{i}.weight"]
            taken = stride if i == (2 if deep else 1) else 1
            out = bn(f"{key}.bn{i}", functional.conv2d(out, weight, stride=taken, padding=weight.shape[-1] // 2))
            out = out.clamp(min=0) if i < last else out
        x = (out + skip).clamp(min=0)
    return x.flatten(2).mean(2) @ state[f"{head}.weight"].T + state[f"{head}.bias"]


@pytest.mark.parametrize("block", [BasicBlock, Bottleneck])
@pytest.mark.parametrize(("stem", "size", "head"), [("cifar", (32, 24), "linear"), ("imagenet", (96, 64), "fc")])
def test_forward_is_the_paper_s(block, stem, size, head):
    torch.manual_seed(0)
    net = ResNet(block, (2, 1, 2), (4, 6, 8), stem, classes=7, shape=(2, *size)).double().eval()
    for buffer in net.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 2)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.normal_(module.bias)
    x = torch.randn(3, 2, *size, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(net(x), reference(net.state_dict(), x, stem, head))


def test_imagenet_initialisation_is_torchvision_s():
    torch.manual_seed(0)
    for key, value in make("resnet34").state_dict().items():
        if value.ndim == 4:
            std = math.sqrt(2 / (value.shape[0] * value.shape[2] * value.shape[3]))
            assert value.std().item() == pytest.approx(std, rel=0.05), key
            assert abs(value.mean().item()) < 5 * std / math.sqrt(value.numel()), key
        elif "bn" in key or "downsample.1" in key:
            assert value.unique().tolist() == [float(key.endswith(("weight", "running_var")))], key


@pytest.mark.parametrize(("name", "least"), [("resnet8", 4), ("resnet18", 8), ("resnet34", 32), ("resnet50", 32)])
def test_too_small_an_image_is_refused(name, least):
    with pytest.raises(ValueError, match=f"shape must be at least {least}x{least}"):
        make(name, shape=(3, least, least - 1))


def test_channels_follow_the_shape():
    net = make("resnet8", classes=3, shape=(1, 28, 20))
    assert net(torch.zeros(2, 1, 28, 20)).shape == (2, 3)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="stem must be one of cifar, imagenet, got 'tiny'"):
        ResNet(stem="tiny")
    with pytest.raises(ValueError, match="one entry per stage"):
        ResNet(depths=(1, 1), widths=(8,))
    with pytest.raises(ValueError, match=r"shape must be \(channels, height, width\), got \(32, 32\)"):
        ResNet(shape=(32, 32))
