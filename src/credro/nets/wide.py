"""Wide residual networks (Zagoruyko and Komodakis 2016): BatchNorm and ReLU come before each convolution.

State-dict keys are those of most published CIFAR weights (``block1.layer.0.conv1``, ``convShortcut``, ``fc``).
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from credro.nets.resnet import conv, kaiming_fan_out
from credro.nets.shape import check_classes, check_image


class PreBlock(nn.Module):
    """``x + residual(x)``; where the shape changes, x is activated first and mapped by a 1x1 convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        """dropout: fraction of values dropped between the two convolutions."""
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), conv(inputs, outputs, 3, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(outputs), conv(outputs, outputs, 3)
        self.convShortcut = conv(inputs, outputs, 1, stride) if inputs != outputs else None
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) to (B, outputs, H / stride, W / stride)."""
        active = relu(self.bn1(x))
        out = relu(self.bn2(self.conv1(active)))
        if self.dropout > 0:
            out = dropout(out, self.dropout, self.training)
        shortcut: Tensor = x if self.convShortcut is None else self.convShortcut(active)
        residual: Tensor = self.conv2(out)
        return shortcut + residual


class Stage(nn.Module):
    """Blocks in a row, the first with the stride; a module of its own only for the published keys."""

    def __init__(self, inputs: int, outputs: int, depth: int, stride: int, dropout: float) -> None:
        """depth: number of blocks."""
        super().__init__()
        self.layer = nn.Sequential(
            PreBlock(inputs, outputs, stride, dropout),
            *(PreBlock(outputs, outputs, 1, dropout) for _ in range(depth - 1)),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) to (B, outputs, H / stride, W / stride)."""
        out: Tensor = self.layer(x)
        return out


class WideResNet(nn.Module):
    """WRN-depth-width: three stages of (depth - 4) / 6 blocks with 16, 32 and 64 times ``width`` channels."""

    head_name = "fc"

    def __init__(
        self,
        depth: int = 28,
        width: int = 4,
        *,
        dropout: float = 0.0,
        classes: int = 10,
        shape: Sequence[int] = (3, 32, 32),
    ) -> None:
        """shape: (channels, height, width). dropout: fraction of values dropped inside each block."""
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth must be 6n + 4 with n at least 1, such as 28, got {depth}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        channels, _, _ = check_image(shape, least=4)
        blocks = (depth - 4) // 6
        self.conv1 = conv(channels, 16, 3)
        self.block1 = Stage(16, 16 * width, blocks, 1, dropout)
        self.block2 = Stage(16 * width, 32 * width, blocks, 2, dropout)
        self.block3 = Stage(32 * width, 64 * width, blocks, 2, dropout)
        self.bn1 = nn.BatchNorm2d(64 * width)
        self.fc = nn.Linear(64 * width, check_classes(classes))
        kaiming_fan_out(self)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Images (B, channels, H, W) to logits (B, classes)."""
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        logits: Tensor = self.fc(relu(self.bn1(x)).mean((-2, -1)))
        return logits
