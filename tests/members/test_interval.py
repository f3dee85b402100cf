from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from credro.members import LOSSES, CVaR, End, Fresh, Interval, Mean, Member
from credro.members.interval import IntervalLayer, log_sum_exp_of_others
from credro.nets import head, make
from credro.readouts import AveragedBoxReadOut

mpmath.mp.dps = 60
CROSS_ENTROPY = LOSSES["cross_entropy"]


def loss_of(output, target, loss=CROSS_ENTROPY, risk=None):
    member = Member(0, Fresh(), (risk or CVaR(delta=0.5)).member(0, 1), Interval(), End())
    return member.loss(output, target, loss, torch.Generator())


def exact_bounds(m: list[float], h: list[float]) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """The interval softmax by its definition, in sixty digits."""
    e = [mpmath.exp(mpmath.mpf(v)) for v in m]
    out = []
    for sign in (-1, 1):
        moved = [mpmath.exp(mpmath.mpf(a) + sign * mpmath.mpf(b)) for a, b in zip(m, h, strict=True)]
        out.append([moved[k] / (mpmath.fsum(e[:k] + e[k + 1 :]) + moved[k]) for k in range(len(m))])
    return out[0], out[1]


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 8), st.sampled_from([0.1, 3.0, 50.0, 1e4]), st.integers(0, 10**6))
def test_bounds_against_the_definition_in_sixty_digits(classes: int, scale: float, seed: int) -> None:
    r = np.random.default_rng(seed)
    m, h = r.normal(size=classes) * scale, np.abs(r.normal(size=classes)) * scale
    lower, upper = exact_bounds(m.tolist(), h.tolist())
    found = Interval().probs(torch.tensor(np.stack([m, h])))
    for ours, theirs in ((found[0], lower), (found[1], upper)):
        for a, b in zip(ours.tolist(), theirs, strict=True):
            assert a == pytest.approx(float(b), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_thousand_classes_and_huge_logits(scale: float) -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(64, 2, 1000, generator=g, dtype=torch.float64) * scale
    scores[:, 1] = scores[:, 1].abs()
    q = Interval().probs(scores)
    assert torch.isfinite(q).all()
    assert (q[:, 0] <= q[:, 1]).all()
    assert (q[:, 0].sum(-1) <= 1 + 1e-9).all()
    assert (q[:, 1].sum(-1) >= 1 - 1e-9).all()


def test_sum_of_the_others_where_the_total_cancels() -> None:
    m = torch.tensor([800.0, 0.0, -3.0], dtype=torch.float64)
    expected = [
        float(mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(v)) for j, v in enumerate(m.tolist()) if j != k)))
        for k in range(3)
    ]
    assert log_sum_exp_of_others(m).tolist() == pytest.approx(expected, rel=1e-12)


def test_gradients_are_finite_for_extreme_outputs() -> None:
    output = (torch.randn(8, 2, 5, generator=torch.Generator().manual_seed(1)) * 1e4).requires_grad_()
    loss_of(output, torch.arange(8) % 5).backward()
    assert torch.isfinite(output.grad).all()


def test_loss_against_its_formula() -> None:
    r = np.random.default_rng(3)
    m, h, y = r.normal(size=(10, 4)), np.abs(r.normal(size=(10, 4))), r.integers(4, size=10)
    bounds = [exact_bounds(a.tolist(), b.tolist()) for a, b in zip(m, h, strict=True)]
    low = sorted((-float(mpmath.log(b[0][k])) for b, k in zip(bounds, y, strict=True)), reverse=True)
    high = [-float(mpmath.log(b[1][k])) for b, k in zip(bounds, y, strict=True)]
    output = torch.tensor(np.stack([m, h], 1))
    found = loss_of(output, torch.tensor(y), risk=CVaR(delta=0.7))
    assert float(found) == pytest.approx(np.mean(low[:7]) + np.mean(high), rel=1e-9)


def test_soft_labels_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="soft labels"):
        loss_of(torch.zeros(2, 2, 3), torch.full((2, 3), 1 / 3))


@pytest.mark.parametrize(("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (1, 28, 28)), ("resnet8", (3, 32, 32))])
def test_the_head_goes_onto_any_network(name: str, shape: tuple[int, ...]) -> None:
    net = Interval().convert(make(name, classes=7, shape=shape))
    assert net(torch.randn(4, *shape)).shape == (4, 2, 7)
    assert any(isinstance(m, IntervalLayer) for m in net.modules())
    assert head(net).out_features == 14


def test_averaged_box_against_plain_arithmetic() -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 50, 2, 6, generator=g, dtype=torch.float64)
    scores[:, :, 1] = scores[:, :, 1].abs()
    q = Interval().probs(scores)
    pred = AveragedBoxReadOut()(q)
    low, high = q[:, :, 0].mean(0).numpy(), q[:, :, 1].mean(0).numpy()
    tight_low = np.maximum(low, 1 - (high.sum(1, keepdims=True) - high))
    tight_high = np.minimum(high, 1 - (low.sum(1, keepdims=True) - low))
    assert np.allclose(pred.lower, tight_low)
    assert np.allclose(pred.upper, tight_high)
    fraction = (1 - tight_low.sum(1)) / (tight_high - tight_low).sum(1)
    assert np.allclose(pred.mean, tight_low + fraction[:, None] * (tight_high - tight_low))
    assert pred.set.contains(pred.mean).all()
    assert (pred.epistemic >= 0).all()
    assert torch.allclose(pred.probs.sum(-1), torch.ones(3, 50, dtype=torch.float64))


def test_a_loss_of_ones_own_reaches_both_bounds() -> None:
    """Class weights: the loss of each sample, at its lower and at its upper logits, times the weight of its class."""
    r = np.random.default_rng(5)
    m, h, y = r.normal(size=(6, 3)), np.abs(r.normal(size=(6, 3))), np.array([0, 1, 2, 0, 1, 2])
    weights = np.array([1.0, 3.0, 10.0])
    bounds = [exact_bounds(a.tolist(), b.tolist()) for a, b in zip(m, h, strict=True)]
    low, high = (np.array([-float(mpmath.log(b[side][k])) for b, k in zip(bounds, y, strict=True)]) for side in (0, 1))
    expected = (weights[y] * low).mean() + (weights[y] * high).mean()

    def weighted(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(output, target, torch.tensor(weights), reduction="none")

    output = torch.tensor(np.stack([m, h], 1))
    assert float(loss_of(output, torch.tensor(y), weighted, Mean())) == pytest.approx(expected, rel=1e-9)
    plain = float(loss_of(output, torch.tensor(y), CROSS_ENTROPY, Mean()))
    assert plain == pytest.approx(low.mean() + high.mean(), rel=1e-9)


def test_cross_entropy_and_ones_own_cross_entropy_agree() -> None:
    g = torch.Generator().manual_seed(2)
    output = torch.randn(9, 2, 4, generator=g, dtype=torch.float64)
    output[:, 1] = output[:, 1].abs()
    y = torch.arange(9) % 4

    def own(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, target, reduction="none")

    assert float(loss_of(output, y, own)) == pytest.approx(float(loss_of(output, y)), rel=1e-12)


def test_without_batchnorm() -> None:
    layer = IntervalLayer(5, 3, norm="none")
    x = torch.randn(4, 5)
    both = layer.linear(x).unflatten(-1, (2, 3))
    assert torch.equal(layer(x)[:, 0], both[:, 0])
    assert torch.allclose(layer(x)[:, 1], torch.log1p(both[:, 1].exp()))
    with pytest.raises(ValueError, match="norm must be one of none, batch"):
        Interval(norm="layer")
