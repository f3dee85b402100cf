from __future__ import annotations

import pytest
import torch

from credro.members import Biased, CVaR, End, Fresh, Gaussian, Head, Interval, Member, Softmax, Variational
from credro.nets import make

HEADS = [Softmax(), Softmax(norm="batch"), Interval(), Interval(norm="none"), Variational(samples=2)]


def member(i: int, members: int, head: Head, bias: float = 100.0) -> Member:
    return Member(i, Biased(bias).member(i, members), CVaR().member(i, members), head.member(i, members), End())


@pytest.mark.parametrize("head", HEADS, ids=lambda h: "-".join(map(str, h.config().values()))[:20])
def test_a_biased_member_believes_in_one_class_under_every_head(head: Head) -> None:
    x = torch.randn(50, 1, 8, 8)
    for i in (1, 4, 13):
        own = member(i, 15, head)
        net = own.prepare(make("mlp", classes=10, shape=(1, 8, 8))).eval()
        with torch.no_grad():
            found = own.head.point(own.head.probs(own.head.scores(net, x))).argmax(-1)
        assert (found == (i - 1) % 10).all()


def test_the_first_member_is_fresh() -> None:
    assert Biased().member(0, 5) == Fresh()
    torch.manual_seed(0)
    plain = make("mlp", classes=3, shape=(4,))
    torch.manual_seed(0)
    prepared = member(0, 5, Softmax()).prepare(make("mlp", classes=3, shape=(4,)))
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), prepared.parameters(), strict=True))


def test_the_bias_is_an_option_and_what_is_left_of_it_is_measured() -> None:
    own = member(2, 5, Softmax(), bias=7.0)
    net = own.prepare(make("mlp", classes=3, shape=(4,)))
    bias = own.head.class_bias(net)
    assert float(bias.detach()[1]) == 7.0
    with torch.no_grad():
        bias.copy_(torch.tensor([1.0, 5.0, 2.0]))
    assert own.left(net) == {"bias_left": pytest.approx(5.0 - 1.5)}
    assert member(0, 5, Softmax()).left(net) == {}


def test_a_head_without_a_bias_per_class_is_named() -> None:
    with pytest.raises(ValueError, match="regression has none"):
        Gaussian().class_bias(make("mlp", classes=2, shape=(4,)))
    bare = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3, bias=False))
    with pytest.raises(ValueError, match="last layer with a bias"):
        member(1, 3, Softmax()).prepare(bare)
