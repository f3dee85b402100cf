"""EfficientNet-Lite0 (Tan and Le, 2019; "Lite": no squeeze-and-excitation, ReLU6), a small trunk with ImageNet weights.

The published weights are those of TensorFlow's, whose "same" padding puts the odd pixel to the right and below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.nn.functional import pad

from credro.nets.resnet import Mean
from credro.nets.shape import check_classes, check_image

STAGES = (  # expansion, channels, blocks, stride of the first, kernel
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
FEATURES = 1280
PUBLISHED = (  # names of the published file, and ours
    (r"^_blocks\.(\d+)\._expand_conv\.", r"blocks.\1.expand.conv."),
    (r"^_blocks\.(\d+)\._bn0\.", r"blocks.\1.expand.norm."),
    (r"^_blocks\.(\d+)\._depthwise_conv\.", r"blocks.\1.depthwise.conv."),
    (r"^_blocks\.(\d+)\._bn1\.", r"blocks.\1.depthwise.norm."),
    (r"^_blocks\.(\d+)\._project_conv\.", r"blocks.\1.project.conv."),
    (r"^_blocks\.(\d+)\._bn2\.", r"blocks.\1.project.norm."),
    (r"^_conv_stem\.", "stem.conv."),
    (r"^_bn0\.", "stem.norm."),
    (r"^_conv_head\.", "top.conv."),
    (r"^_bn1\.", "top.norm."),
    (r"^_fc\.", "fc."),
)


class Convolution(nn.Module):
    """A convolution with TensorFlow's "same" padding, BatchNorm and, if asked for, ReLU6."""

    def __init__(
        self, inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1, act: bool = True
    ) -> None:
        """As torch's ``Conv2d`` has them."""
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outside, eps=1e-3, momentum=0.01)
        self.act = nn.ReLU6(inplace=True) if act else nn.Identity()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        """(B, inside, H, W) to (B, outside, ceil(H / stride), ceil(W / stride))."""
        high, wide = (max(0, (-(-n // self.stride) - 1) * self.stride + self.kernel - n) for n in x.shape[-2:])
        if high or wide:
            x = pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        out: Tensor = self.act(self.norm(self.conv(x)))
        return out


class Block(nn.Module):
    """An inverted residual: wider, depthwise, narrower."""

    def __init__(self, inside: int, outside: int, expansion: int, kernel: int, stride: int) -> None:
        """Without expansion the first convolution is left out."""
        super().__init__()
        wide = inside * expansion
        self.expand = Convolution(inside, wide, 1) if expansion > 1 else nn.Identity()
        self.depthwise = Convolution(wide, wide, kernel, stride, groups=wide)
        self.project = Convolution(wide, outside, 1, act=False)
        self.same = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        """(B, inside, H, W) to (B, outside, ...)."""
        out: Tensor = self.project(self.depthwise(self.expand(x)))
        return out + x if self.same else out


class EfficientNetLite0(nn.Module):
    """Images (B, 3, H, W) to logits (B, classes) of 1280 pooled features."""

    head_name = "fc"
    last_block = "blocks.15"  # with ``top``, which only widens what it gives

    def __init__(self, *, classes: int = 1000, shape: Sequence[int] = (3, 224, 224)) -> None:
        """With ImageNet's 1000 classes the published weights fit as they are. shape: of one image, any size from 32."""
        super().__init__()
        channels, _, _ = check_image(shape, 32)
        self.stem = Convolution(channels, 32, 3, 2)
        blocks: list[nn.Module] = []
        inside = 32
        for expansion, outside, count, stride, kernel in STAGES:
            for i in range(count):
                blocks.append(Block(inside, outside, expansion, kernel, stride if i == 0 else 1))
                inside = outside
        self.blocks = nn.Sequential(*blocks)
        self.top = Convolution(inside, FEATURES, 1)
        self.fc = nn.Linear(FEATURES, check_classes(classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, classes)."""
        out: Tensor = self.fc(self.top(self.blocks(self.stem(x))).mean((-2, -1)))
        return out

    def as_chain(self) -> list[tuple[str, nn.Module]]:
        """Its layers in order, for ``credro.nets.tail``."""
        blocks = [(f"blocks.{name}", block) for name, block in self.blocks.named_children()]
        return [("stem", self.stem), *blocks, ("top", self.top), ("", Mean()), ("fc", self.fc)]

    @staticmethod
    def from_published(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A published state dict under our names; one that has them already is left as it is."""
        renamed = {}
        for name, value in state.items():
            for theirs, ours in PUBLISHED:
                name, hit = re.subn(theirs, ours, name)
                if hit:
                    break
            renamed[name] = value
        return renamed
