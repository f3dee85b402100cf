"""Two networks for a laptop: ``MLP`` for tables and small images, ``CNN`` for images of about 28x28 pixels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch import Tensor, nn

from credro.nets.resnet import conv
from credro.nets.shape import check_classes, check_image, check_shape


class MLP(nn.Module):
    """Linear layers with ReLU between; images are flattened."""

    head_name = "head"

    def __init__(
        self,
        shape: Sequence[int],
        *,
        classes: int = 10,
        hidden: Sequence[int] = (128, 128),
        dropout: float = 0.0,
        batch_norm: bool = False,
    ) -> None:
        """shape: of one sample, (features,) or (channels, height, width).

        hidden: width of each hidden layer; () is a linear classifier. dropout: fraction of hidden units dropped.
        batch_norm: BatchNorm before each ReLU.
        """
        super().__init__()
        if any(width < 1 for width in hidden):
            raise ValueError(f"hidden must be positive layer widths, got {tuple(hidden)}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        features = prod(check_shape(shape))
        layers: list[nn.Module] = [nn.Flatten()]
        for width in hidden:
            layers.append(nn.Linear(features, width))
            if batch_norm:
                layers.append(nn.BatchNorm1d(width))
            layers.append(nn.ReLU())
            if dropout > 0:
                layers.append(nn.Dropout(dropout))
            features = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(features, check_classes(classes))

    def forward(self, x: Tensor) -> Tensor:
        """Samples (B, *shape) to logits (B, classes)."""
        logits: Tensor = self.head(self.body(x))
        return logits


class CNN(nn.Module):
    """Stages of 3x3 convolution, 2x2 max pooling, BatchNorm and ReLU, then one linear layer.

    Pooling stands before BatchNorm: a quarter of the values to normalise, and it fits a small set far better.
    """

    head_name = "head"

    def __init__(
        self, *, classes: int = 10, shape: Sequence[int] = (1, 28, 28), widths: Sequence[int] = (16, 32, 64)
    ) -> None:
        """shape: (channels, height, width). widths: channels of each stage; every stage halves the image."""
        super().__init__()
        if not widths or any(width < 1 for width in widths):
            raise ValueError(f"widths must be positive channel numbers, one per stage, got {tuple(widths)}")
        channels, height, width = check_image(shape, least=2 ** len(widths))
        layers: list[nn.Module] = []
        for outputs in widths:
            layers += [conv(channels, outputs, 3), nn.MaxPool2d(2), nn.BatchNorm2d(outputs), nn.ReLU()]
            channels, height, width = outputs, height // 2, width // 2
        self.body = nn.Sequential(*layers, nn.Flatten())
        self.head = nn.Linear(channels * height * width, check_classes(classes))

    def forward(self, x: Tensor) -> Tensor:
        """Images (B, channels, H, W) to logits (B, classes)."""
        logits: Tensor = self.head(self.body(x))
        return logits
