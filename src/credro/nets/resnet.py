"""Residual networks (He et al. 2016), with the state-dict keys of the published weights.

One class serves two families, told apart by their stem. ``"cifar"``: a 3x3 convolution; keys ``shortcut`` and
``linear`` and torch's own initialisation, as in pytorch-cifar. ``"imagenet"``: a 7x7 convolution and max pooling;
keys ``downsample`` and ``fc`` and the initialisation of torchvision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

from credro.nets.shape import check_classes, check_image

NAMES = {"cifar": ("shortcut", "linear"), "imagenet": ("downsample", "fc")}
"""Stem: the attributes under which its family keeps a block's shortcut and the last layer."""


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Convolution that keeps the image size at stride 1; without bias, since BatchNorm follows."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    """``relu(residual(x) + shortcut(x))``: the residual is convolutions, BatchNorm after each and ReLU between."""

    def __init__(self, layers: Sequence[tuple[int, int, int, int]], stride: int, shortcut_name: str) -> None:
        """layers: the convolutions, (inputs, outputs, kernel, stride) each. stride: of the whole block.

        shortcut_name: the attribute, hence the state-dict key, of the 1x1 convolution where the shape changes.
        """
        super().__init__()
        for i, layer in enumerate(layers, 1):
            self.add_module(f"conv{i}", conv(*layer))
            self.add_module(f"bn{i}", nn.BatchNorm2d(layer[1]))
        self.depth, self.shortcut_name = len(layers), shortcut_name
        inputs, outputs = layers[0][0], layers[-1][1]
        same = stride == 1 and inputs == outputs
        self.add_module(
            shortcut_name,
            nn.Sequential() if same else nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) to (B, outputs, H / stride, W / stride)."""
        out = x
        for i in range(1, self.depth + 1):
            out = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(relu(out) if i > 1 else out))
        shortcut: Tensor = getattr(self, self.shortcut_name)(x)
        return relu(out + shortcut)


class BasicBlock(Block):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int = 1, shortcut_name: str = "shortcut") -> None:
        """Inputs to ``width`` channels."""
        super().__init__([(inputs, width, 3, stride), (width, width, 3, 1)], stride, shortcut_name)


class Bottleneck(Block):
    """1x1, 3x3 and 1x1 convolutions; the 3x3 one takes the stride, as in torchvision ("ResNet v1.5")."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int = 1, shortcut_name: str = "shortcut") -> None:
        """Inputs to ``4 * width`` channels, by way of ``width``."""
        layers = [(inputs, width, 1, 1), (width, width, 3, stride), (width, self.expansion * width, 1, 1)]
        super().__init__(layers, stride, shortcut_name)


class ResNet(nn.Module):
    """Stem, stages of residual blocks, mean over the pixels, linear layer."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck] = BasicBlock,
        depths: Sequence[int] = (2, 2, 2, 2),
        widths: Sequence[int] = (64, 128, 256, 512),
        stem: Literal["cifar", "imagenet"] = "cifar",
        *,
        classes: int = 10,
        shape: Sequence[int] = (3, 32, 32),
    ) -> None:
        """depths: blocks per stage. widths: channels per stage, before a block's expansion.

        Every stage but the first halves the image. shape: (channels, height, width), commonly (3, 224, 224) with the
        ImageNet stem.
        """
        super().__init__()
        if stem not in NAMES:
            raise ValueError(f"stem must be one of {', '.join(NAMES)}, got {stem!r}")
        if len(depths) != len(widths):
            raise ValueError(f"depths and widths must have one entry per stage, got {depths} and {widths}")
        cifar = stem == "cifar"
        # Fewer pixels than the network halves away would leave nothing but padding.
        channels, _, _ = check_image(shape, least=2 ** (len(depths) - 1) * (1 if cifar else 4))
        shortcut_name, self.head_name = NAMES[stem]
        self.stem, self.stages = stem, len(depths)

        features = widths[0]
        self.conv1 = conv(channels, features, 3) if cifar else conv(channels, features, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(features)
        for i, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            stage = nn.Sequential()
            for j in range(depth):
                stage.append(block(features, width, 2 if i > 0 and j == 0 else 1, shortcut_name))
                features = width * block.expansion
            self.add_module(f"layer{i + 1}", stage)
        self.add_module(self.head_name, nn.Linear(features, check_classes(classes)))
        if not cifar:
            kaiming_fan_out(self)

    def forward(self, x: Tensor) -> Tensor:
        """Images (B, channels, H, W) to logits (B, classes)."""
        x = relu(self.bn1(self.conv1(x)))
        if self.stem == "imagenet":
            x = max_pool2d(x, 3, stride=2, padding=1)
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        logits: Tensor = getattr(self, self.head_name)(x.mean((-2, -1)))
        return logits

    def as_chain(self) -> list[tuple[str, nn.Module]]:
        """Its layers in order, for ``credro.nets.tail``."""
        layers: list[tuple[str, nn.Module]] = [("conv1", self.conv1), ("bn1", self.bn1), ("", nn.ReLU())]
        if self.stem == "imagenet":
            layers.append(("", nn.MaxPool2d(3, stride=2, padding=1)))
        for stage in (f"layer{i + 1}" for i in range(self.stages)):
            layers += [(f"{stage}.{name}", block) for name, block in self.get_submodule(stage).named_children()]
        return [*layers, ("", Mean()), (self.head_name, self.get_submodule(self.head_name))]


class Mean(nn.Module):
    """The mean over the pixels, as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, H, W) to (B, channels)."""
        return x.mean((-2, -1))


def kaiming_fan_out(net: nn.Module) -> None:
    """Draw all convolutions anew from N(0, 2 / (outputs * kernel area)), as torchvision does."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
