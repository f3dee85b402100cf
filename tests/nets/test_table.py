"""The network for tables against its formula, and that features go through their waves alone."""

import math

import numpy as np
import pytest
import torch

from credro.nets import MLP, make, make_under_seed


def test_it_is_its_formula():
    net = make("table", 3, (5,), hidden=(7,), waves=4, mixtures=2, spread=0.5)
    state = {k: v.detach().numpy().astype(np.float64) for k, v in net.state_dict().items()}
    x = np.random.default_rng(0).normal(size=(6, 5))
    numbers = [x]
    for f in range(5):
        for m in range(2):
            total = np.full(6, state["waves.bias"][f, m])
            for w in range(4):
                angle = 2 * math.pi * state["waves.frequency"][f, w] * x[:, f] + state["waves.phase"][f, w]
                total += np.cos(angle) * state["waves.weight"][f, w, m]
            numbers.append(total[:, None])
    hidden = np.maximum(np.concatenate(numbers, 1) @ state["body.1.weight"].T + state["body.1.bias"], 0)
    expected = hidden @ state["head.weight"].T + state["head.bias"]
    np.testing.assert_allclose(net.double()(torch.tensor(x)).detach(), expected, atol=1e-6)


def test_it_learns_what_needs_fine_steps_where_an_mlp_does_not():
    """Sixteen stripes of one feature: trees need depth 4."""
    x = torch.rand(400, 2, generator=torch.Generator().manual_seed(0)) * 4 - 2
    y = (x[:, 0] * 4).floor().long() % 2
    accuracy = {}
    for name in ("mlp", "table"):
        net = make_under_seed(lambda name=name: make(name, 2, (2,)), 0)
        optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
        for _ in range(150):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        accuracy[name] = float((net(x).argmax(1) == y).float().mean())
    assert accuracy["table"] > 0.95
    assert accuracy["mlp"] < 0.8


def test_it_is_an_mlp_behind_the_waves_and_flattens():
    net = make("table", 4, (1, 3, 2))
    assert isinstance(net, MLP)
    x = torch.randn(5, 1, 3, 2)
    torch.testing.assert_close(net(x), net(x.flatten(1)))
    assert net.waves(x.flatten(1)).shape == (5, 6 * 4)


@pytest.mark.parametrize("option", ["waves", "mixtures", "spread"])
def test_sizes_are_positive(option):
    with pytest.raises(ValueError, match=f"{option} must be positive, got 0"):
        make("table", 2, (3,), **{option: 0})
