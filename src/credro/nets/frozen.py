"""What is frozen stays as it is: also BatchNorm's statistics, which no gradient moves."""

from __future__ import annotations

from torch import nn


def train_mode(net: nn.Module) -> None:
    """Put ``net`` into training mode, all but those of its modules whose parameters are all frozen: these into eval.

    In training mode a frozen BatchNorm would follow every batch, and dropout inside a frozen part would give its
    layers something other than what they were trained on.
    """
    net.train()
    for module in net.modules():
        parameters = list(module.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            module.eval()
