from __future__ import annotations

import math

import pytest
import torch

from credro.members import Variational
from credro.members.variational import Posterior, divergence, make_variational, posteriors
from credro.nets import make
from credro.training.recipe import Recipe, make_optimizer


def test_divergence_against_sampling() -> None:
    g = torch.Generator().manual_seed(0)
    mu = torch.randn(6, generator=g, dtype=torch.float64) * 0.5
    gaussian = Posterior(mu, 0.3).double()
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


def test_draws_have_the_stated_mean_and_standard_deviation() -> None:
    torch.manual_seed(0)
    gaussian = Posterior(torch.zeros(1), 0.05)
    mu = torch.full((200_000,), 2.0)
    gaussian.rho = torch.nn.Parameter(gaussian.rho.expand(200_000).clone())
    with torch.no_grad():
        w = gaussian(mu)
    assert float(w.mean()) == pytest.approx(2.0, abs=1e-3)
    assert float(w.std()) == pytest.approx(0.05, rel=0.01)


def test_two_predictions_agree_whatever_the_batch() -> None:
    head = Variational(samples=5)
    net = head.convert(make("mlp", classes=3, shape=(4,))).eval()
    x = torch.randn(6, 4)
    with torch.no_grad():
        whole = head.scores(net, x)
        parts = torch.cat([head.scores(net, x[:2]), head.scores(net, x[2:])])
    assert torch.allclose(whole, parts, atol=1e-6)
    assert torch.allclose(whole.exp().sum(-1), torch.ones(6), atol=1e-5)


def test_scores_are_the_mean_over_weight_draws() -> None:
    """By hand: weights drawn one after another into a plain network of the same shape."""
    head = Variational(samples=4, seed=7)
    net, plain = (make("mlp", classes=3, shape=(4,)).eval() for _ in range(2))
    head.convert(net)
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
        assert torch.allclose(head.scores(net, x).exp(), expected, atol=1e-6)


def test_pieces_of_a_batch_share_a_draw() -> None:
    """600 images go through in pieces; alone, an image is answered as among them."""
    head = Variational(samples=2)
    net = head.convert(make("cnn", classes=3, shape=(1, 28, 28), widths=(2, 2))).eval()
    seen: list[int] = []
    net.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    x = torch.randn(600, 1, 28, 28)
    with torch.no_grad():
        whole = head.scores(net, x)
        assert 2 < len(seen) < 20
        assert sum(seen) == 2 * 600
        for i in (0, 300, 599):
            assert torch.allclose(head.scores(net, x[i : i + 1]), whole[i : i + 1], atol=1e-5)
        trained = [net.train()(x[:2]) for _ in range(2)]  # and afterwards every use draws anew
    assert not torch.equal(*trained)


def test_priors_are_log_spaced() -> None:
    found = [Variational().member(i, 3).traits()["prior"] for i in range(3)]
    assert found == pytest.approx([0.1, math.sqrt(0.3), 3.0])
    assert Variational().member(0, 1).traits() == {"prior": pytest.approx(0.1)}


def test_priors_may_differ_in_mean_too() -> None:
    head = Variational(mean_low=-1.0, mean_high=1.0)
    assert [head.member(i, 3).mean_low for i in range(3)] == [-1.0, 0.0, 1.0]
    net = make_variational(make("mlp", classes=3, shape=(4,), hidden=(5,)))
    own = head.member(2, 3)
    expected = sum(
        torch.distributions.kl_divergence(
            torch.distributions.Normal(mu, torch.nn.functional.softplus(gaussian.rho)),
            torch.distributions.Normal(1.0, 3.0),
        ).sum()
        for gaussian, mu in posteriors(net)
    )
    assert float(own.penalty(net, 10)) == pytest.approx(float(expected) / 10, rel=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_decay_leaves_the_standard_deviations_alone(optimizer: str) -> None:
    """Decay of rho would pull every standard deviation to softplus(0) = 0.69. With no gradient it is all that moves."""
    head = Variational()
    net = head.convert(make("mlp", classes=3, shape=(4,)))
    recipe = Recipe(optimizer=optimizer, lr=0.1, weight_decay=0.1)
    step = make_optimizer(recipe, list(net.parameters()), head.without_decay(net))
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    step.step()
    for name, p in net.named_parameters():
        assert torch.equal(p, before[name]) == (name.endswith("rho") or not before[name].any())


@pytest.mark.parametrize(("field", "value"), [("prior_low", 0.0), ("std", -1.0), ("samples", 0), ("kl_weight", -1.0)])
def test_bad_numbers(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Variational(**{field: value})
