import pytest
import torch
from torch.distributions import Normal

from credro.members import LOSSES, per_sample_loss

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(12, 4, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.randint(0, 4, (12,), generator=GENERATOR)
SOFT = torch.rand(12, 4, generator=GENERATOR, dtype=torch.float64)
SOFT = SOFT / SOFT.sum(1, keepdim=True)


def test_cross_entropy_by_hand():
    p = LOGITS.exp() / LOGITS.exp().sum(1, keepdim=True)
    torch.testing.assert_close(LOSSES["cross_entropy"](LOGITS, LABELS), -p[range(12), LABELS].log())
    torch.testing.assert_close(LOSSES["cross_entropy"](LOGITS, SOFT), -(SOFT * p.log()).sum(1))


def test_focal_by_hand():
    p = LOGITS.exp() / LOGITS.exp().sum(1, keepdim=True)
    of_class = -((1 - p) ** 2) * p.log()
    torch.testing.assert_close(LOSSES["focal"](LOGITS, LABELS), of_class[range(12), LABELS])
    torch.testing.assert_close(LOSSES["focal"](LOGITS, SOFT), (SOFT * of_class).sum(1))
    one_hot = torch.nn.functional.one_hot(LABELS, 4).double()
    torch.testing.assert_close(LOSSES["focal"](LOGITS, one_hot), LOSSES["focal"](LOGITS, LABELS))


def test_focal_with_gamma_zero_is_cross_entropy_and_survives_extremes():
    torch.testing.assert_close(LOSSES["focal"](LOGITS, LABELS, 0.0), LOSSES["cross_entropy"](LOGITS, LABELS))
    extreme = torch.tensor([[200.0, 0.0], [0.0, 200.0]], requires_grad=True)
    values = LOSSES["focal"](extreme, torch.tensor([0, 0]))
    values.sum().backward()
    assert torch.isfinite(values).all()
    assert torch.isfinite(extreme.grad).all()


def test_gaussian_nll_is_the_normals():
    target = torch.randn(12, generator=GENERATOR, dtype=torch.float64)
    expected = -Normal(LOGITS[:, 0], (LOGITS[:, 1] / 2).exp()).log_prob(target)
    torch.testing.assert_close(LOSSES["gaussian_nll"](LOGITS[:, :2], target), expected)


def test_a_loss_by_name_or_ones_own():
    assert per_sample_loss("focal") is LOSSES["focal"]
    assert per_sample_loss(max) is max
    with pytest.raises(ValueError, match="loss must be one of cross_entropy, focal, gaussian_nll or a function"):
        per_sample_loss("hinge")
