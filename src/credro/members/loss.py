"""Per-sample losses: outputs (B, C) and targets to (B,). Any function of this form can take cross-entropy's place."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

PerSampleLoss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy (B,) of class numbers (B,) or soft labels (B, C)."""
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")


def focal(logits: Tensor, target: Tensor, gamma: float = 2.0) -> Tensor:
    """Focal loss ``-(1 - p_y)^gamma log p_y`` (Lin et al., 2017); soft labels weigh the classes' terms."""
    log_p = logits.log_softmax(-1)
    terms = -((1 - log_p.exp()) ** gamma) * log_p
    if target.ndim == 2:
        return (terms * target).sum(-1)
    return terms.gather(-1, target[:, None]).squeeze(-1)


def gaussian_nll(output: Tensor, target: Tensor) -> Tensor:
    """Gaussian negative log-likelihood (B,) of ``target`` (B,). output: (B, 2), mean and log variance."""
    mean, log_variance = output[:, 0], output[:, 1]
    nll = 0.5 * (log_variance + (target - mean).square() * torch.exp(-log_variance))
    return nll + 0.9189385332046727  # log(2 pi) / 2


LOSSES: dict[str, PerSampleLoss] = {"cross_entropy": cross_entropy, "focal": focal, "gaussian_nll": gaussian_nll}


def per_sample_loss(loss: str | PerSampleLoss) -> PerSampleLoss:
    """A loss by name, or the user's own function unchanged."""
    if callable(loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(
            f"loss must be one of {', '.join(LOSSES)} or a function (output, target) -> (B,), got {loss!r}"
        )
    return LOSSES[loss]
