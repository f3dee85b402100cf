from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from credro.members import LOSSES, Gaussian, Interval, Softmax, Variational
from credro.nets import make

CROSS_ENTROPY = LOSSES["cross_entropy"]


def test_batchnorm_on_the_logits_normalises_them() -> None:
    net = Softmax(norm="batch").convert(make("mlp", classes=4, shape=(6,))).train()
    out = net(3 * torch.randn(256, 6))
    assert torch.allclose(out.mean(0), torch.zeros(4), atol=1e-5)
    assert torch.allclose(out.var(0, correction=0), torch.ones(4), atol=1e-3)


def test_normalising_keeps_the_initialisation() -> None:
    torch.manual_seed(3)
    plain = make("mlp", classes=4, shape=(6,))
    torch.manual_seed(3)
    normed = Softmax(norm="batch").convert(make("mlp", classes=4, shape=(6,)))
    for (_, a), (_, b) in zip(plain.named_parameters(), normed.named_parameters(), strict=False):
        assert torch.equal(a, b)


def test_an_unknown_norm_is_named_with_its_nearest() -> None:
    with pytest.raises(ValueError, match=r"norm must be one of none, batch, got 'bacth' \(did you mean 'batch'\?\)"):
        Softmax(norm="bacth")


def test_the_likelihood_is_the_true_one_whatever_the_loss() -> None:
    """CreRL compares likelihoods: class weights and focal losses are no such."""
    g = torch.Generator().manual_seed(0)
    scores, y = torch.randn(20, 3, generator=g, dtype=torch.float64), torch.arange(20) % 3
    p = np.exp(scores.numpy()) / np.exp(scores.numpy()).sum(1, keepdims=True)
    expected = np.log(p[range(20), y.numpy()])
    assert np.allclose(Softmax().log_likelihood(scores, y), expected)
    three = Softmax().held_losses(scores, y, lambda output, target: 3 * CROSS_ENTROPY(output, target))
    assert np.allclose(three, -3 * expected)
    soft = torch.full((20, 3), 1 / 3, dtype=torch.float64)
    assert np.allclose(Softmax().log_likelihood(scores, soft), np.log(p).mean(1))


def test_the_likelihood_of_an_interval_is_that_of_its_intersection_probability() -> None:
    g = torch.Generator().manual_seed(1)
    scores = torch.randn(15, 2, 4, generator=g, dtype=torch.float64)
    scores[:, 1] = scores[:, 1].abs()
    q = Interval().probs(scores).numpy()
    low, high = q[:, 0], q[:, 1]
    fraction = (1 - low.sum(1)) / (high - low).sum(1)
    p = low + fraction[:, None] * (high - low)
    y = torch.arange(15) % 4
    assert np.allclose(Interval().log_likelihood(scores, y), np.log(p[range(15), y.numpy()]))


def test_the_likelihood_of_gaussians() -> None:
    scores, y = torch.randn(9, 2, dtype=torch.float64), torch.randn(9, dtype=torch.float64)
    normal = torch.distributions.Normal(scores[:, 0], (scores[:, 1] / 2).exp())
    assert torch.allclose(Gaussian().log_likelihood(scores, y), normal.log_prob(y))
    tempered = Gaussian().tempered(scores, 4.0)
    assert torch.allclose(tempered[:, 1].exp(), 4 * scores[:, 1].exp())


@pytest.mark.parametrize("head", [Softmax(), Softmax(norm="batch"), Interval(), Interval(norm="none"), Variational()])
def test_probabilities_points_and_guesses_agree(head) -> None:
    net = head.convert(make("mlp", classes=5, shape=(6,))).eval()
    x = torch.randn(12, 6)
    with torch.no_grad():
        scores = head.scores(net, x)
        point = head.point(head.probs(scores))
    assert torch.allclose(point.sum(-1), torch.ones(12, dtype=point.dtype), atol=1e-5)
    assert torch.equal(head.guess(scores), point.argmax(-1))


def test_a_network_without_a_linear_last_layer_is_named() -> None:
    with pytest.raises((ValueError, TypeError)):
        Softmax(norm="batch").convert(nn.Sequential(nn.Flatten()))
