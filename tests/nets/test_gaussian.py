import pytest
import torch

from credro.nets import GaussianNet, make_gaussian
from credro.nets.gaussian import FLOOR


def test_outputs_are_in_the_targets_unit():
    """The network inside works on standardised targets: another unit shifts and scales what comes out."""
    torch.manual_seed(0)
    plain = make_gaussian("mlp", (4,), 0.0, 1.0)
    x = torch.randn(7, 4)
    mean, log_variance = plain(x).unbind(-1)
    other = GaussianNet(plain.net, 100.0, 5.0)
    torch.testing.assert_close(other(x)[:, 0], 100 + 5 * mean)
    torch.testing.assert_close((other(x)[:, 1] / 2).exp(), 5 * (log_variance / 2).exp())
    raw = plain.net(x)
    torch.testing.assert_close(mean, raw[:, 0])
    torch.testing.assert_close(log_variance.exp(), torch.nn.functional.softplus(raw[:, 1]) + FLOOR)


def test_images_and_state():
    net = make_gaussian("cnn", (1, 12, 12), 3.0, 2.0)
    assert net(torch.rand(2, 1, 12, 12)).shape == (2, 2)
    again = make_gaussian("cnn", (1, 12, 12), 0.0, 1.0)
    again.load_state_dict(net.state_dict())
    assert (float(again.mean), float(again.std)) == (3.0, 2.0)


@pytest.mark.parametrize(("mean", "std"), [(float("nan"), 1.0), (0.0, 0.0), (0.0, float("inf"))])
def test_a_target_must_have_a_spread(mean, std):
    with pytest.raises(ValueError, match="mean must be finite and std positive"):
        make_gaussian("mlp", (4,), mean, std)
