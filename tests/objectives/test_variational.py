from __future__ import annotations

import math

import pytest
import torch

from credro.nets import make
from credro.objectives.variational import Gaussian, VariationalRule, divergence, make_variational, posteriors


def test_divergence_against_sampling() -> None:
    g = torch.Generator().manual_seed(0)
    mu = torch.randn(6, generator=g, dtype=torch.float64) * 0.5
    gaussian = Gaussian(mu, 0.3).double()
    prior = 0.8
    q = torch.distributions.Normal(mu, 0.3)
    draws = q.sample((400_000,))
    estimate = (q.log_prob(draws) - torch.distributions.Normal(0.0, prior).log_prob(draws)).sum(-1)
    error = estimate.std() / math.sqrt(len(draws))
    assert abs(float(gaussian.kl(mu, prior)) - float(estimate.mean())) < 5 * float(error)


def test_divergence_against_torch_distributions() -> None:
    net = make_variational(make("mlp", classes=3, shape=(4,), hidden=(5,)), std=0.05)
    expected = sum(
        torch.distributions.kl_divergence(
            torch.distributions.Normal(mu, torch.nn.functional.softplus(gaussian.rho)),
            torch.distributions.Normal(0.0, 0.7),
        ).sum()
        for gaussian, mu in posteriors(net)
    )
    assert float(divergence(net, 0.7)) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (1, 28, 28)), ("resnet8", (3, 32, 32))])
def test_every_linear_and_convolution_weight_is_variational(name: str, shape: tuple[int, ...]) -> None:
    plain = make(name, classes=4, shape=shape)
    layers = [m for m in plain.modules() if isinstance(m, torch.nn.Linear | torch.nn.Conv2d)]
    wanted = sum(1 + (m.bias is not None) for m in layers)
    net = make_variational(plain)
    assert len(list(posteriors(net))) == wanted
    x = torch.randn(2, *shape)
    net.eval()
    assert not torch.equal(net(x), net(x)), "weights are drawn anew at every use"
    loss = net(x).square().sum() + divergence(net, 1.0)
    loss.backward()
    assert all(p.grad is not None for p in net.parameters())


def test_draws_have_the_stated_mean_and_deviation() -> None:
    torch.manual_seed(0)
    gaussian = Gaussian(torch.zeros(1), 0.05)
    mu = torch.full((200_000,), 2.0)
    gaussian.rho = torch.nn.Parameter(gaussian.rho.expand(200_000).clone())
    with torch.no_grad():
        w = gaussian(mu)
    assert float(w.mean()) == pytest.approx(2.0, abs=1e-3)
    assert float(w.std()) == pytest.approx(0.05, rel=0.01)


def test_two_predictions_agree_whatever_the_batch() -> None:
    rule = VariationalRule(samples=5)
    net = rule.convert(make("mlp", classes=3, shape=(4,)), 0, 3).eval()
    x = torch.randn(6, 4)
    with torch.no_grad():
        whole = rule.scores(net, x)
        parts = torch.cat([rule.scores(net, x[:2]), rule.scores(net, x[2:])])
    assert torch.allclose(whole, parts, atol=1e-6)
    assert torch.allclose(whole.exp().sum(-1), torch.ones(6), atol=1e-5)


def test_scores_are_the_mean_over_weight_draws() -> None:
    """By hand: weights drawn one after another into a plain network of the same shape."""
    rule = VariationalRule(samples=4, seed=7)
    net, plain = (make("mlp", classes=3, shape=(4,)).eval() for _ in range(2))
    rule.convert(net, 0, 3)
    x, draws = torch.randn(5, 4), torch.Generator().manual_seed(7)
    expected = torch.zeros(5, 3)
    with torch.no_grad():
        for _ in range(4):
            weights = {}
            for name, mu in net.named_parameters():
                if name.endswith(".original"):
                    sigma = torch.log1p(net.get_parameter(name.replace("original", "0.rho")).exp())
                    weights[name.replace("parametrizations.", "")[: -len(".original")]] = mu + sigma * torch.randn(
                        mu.shape, generator=draws
                    )
            plain.load_state_dict(weights)
            expected += plain(x).softmax(-1) / 4
        assert torch.allclose(rule.scores(net, x).exp(), expected, atol=1e-6)


def test_pieces_of_a_batch_share_a_draw() -> None:
    """600 images go through in pieces; alone, an image is answered as among them."""
    rule = VariationalRule(samples=2)
    net = rule.convert(make("cnn", classes=3, shape=(1, 28, 28), widths=(2, 2)), 0, 3).eval()
    seen: list[int] = []
    net.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    x = torch.randn(600, 1, 28, 28)
    with torch.no_grad():
        whole = rule.scores(net, x)
        assert 2 < len(seen) < 20
        assert sum(seen) == 2 * 600
        for i in (0, 300, 599):
            assert torch.allclose(rule.scores(net, x[i : i + 1]), whole[i : i + 1], atol=1e-5)
        trained = [net.train()(x[:2]) for _ in range(2)]  # and afterwards every use draws anew
    assert not torch.equal(*trained)


def test_priors_are_log_spaced() -> None:
    rule = VariationalRule()
    found = [rule.prior(i, 3) for i in range(3)]
    assert found == pytest.approx([0.1, math.sqrt(0.3), 3.0])
    assert rule.prior(0, 1) == pytest.approx(0.1)


@pytest.mark.parametrize(("field", "value"), [("prior_low", 0.0), ("std", -1.0), ("samples", 0), ("kl_weight", -1.0)])
def test_bad_numbers(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        VariationalRule(**{field: value})
