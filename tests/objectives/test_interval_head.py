from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from credro.nets import head, make
from credro.objectives.interval_head import IntervalHead, IntervalRule, log_sum_exp_of_others
from credro.objectives.losses import cross_entropy
from credro.readouts.averaged_box import AveragedBoxReadOut

mpmath.mp.dps = 60


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
    found = IntervalRule().probs(torch.tensor(np.stack([m, h])))
    for ours, theirs in ((found[0], lower), (found[1], upper)):
        for a, b in zip(ours.tolist(), theirs, strict=True):
            assert a == pytest.approx(float(b), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_thousand_classes_and_huge_logits(scale: float) -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(64, 2, 1000, generator=g, dtype=torch.float64) * scale
    scores[:, 1] = scores[:, 1].abs()
    q = IntervalRule().probs(scores)
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
    IntervalRule().loss(output, torch.arange(8) % 5, cross_entropy, 0, 1, torch.Generator()).backward()
    assert torch.isfinite(output.grad).all()


def test_loss_against_its_formula() -> None:
    r = np.random.default_rng(3)
    m, h, y = r.normal(size=(10, 4)), np.abs(r.normal(size=(10, 4))), r.integers(4, size=10)
    bounds = [exact_bounds(a.tolist(), b.tolist()) for a, b in zip(m, h, strict=True)]
    low = sorted((-float(mpmath.log(b[0][k])) for b, k in zip(bounds, y, strict=True)), reverse=True)
    high = [-float(mpmath.log(b[1][k])) for b, k in zip(bounds, y, strict=True)]
    output = torch.tensor(np.stack([m, h], 1))
    found = IntervalRule(delta=0.7).loss(output, torch.tensor(y), cross_entropy, 0, 1, torch.Generator())
    assert float(found) == pytest.approx(np.mean(low[:7]) + np.mean(high), rel=1e-9)


def test_soft_labels_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="soft labels"):
        IntervalRule().loss(torch.zeros(2, 2, 3), torch.full((2, 3), 1 / 3), cross_entropy, 0, 1, torch.Generator())


@pytest.mark.parametrize(("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (1, 28, 28)), ("resnet8", (3, 32, 32))])
def test_the_head_goes_onto_any_network(name: str, shape: tuple[int, ...]) -> None:
    net = IntervalRule().convert(make(name, classes=7, shape=shape), 0, 1)
    assert net(torch.randn(4, *shape)).shape == (4, 2, 7)
    assert any(isinstance(m, IntervalHead) for m in net.modules())
    assert head(net).out_features == 14


def test_averaged_box_against_plain_arithmetic() -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 50, 2, 6, generator=g, dtype=torch.float64)
    scores[:, :, 1] = scores[:, :, 1].abs()
    q = IntervalRule().probs(scores)
    pred = AveragedBoxReadOut()(q)
    low, high = q[:, :, 0].mean(0).numpy(), q[:, :, 1].mean(0).numpy()
    tight_low = np.maximum(low, 1 - (high.sum(1, keepdims=True) - high))
    tight_high = np.minimum(high, 1 - (low.sum(1, keepdims=True) - low))
    assert np.allclose(pred.lower, tight_low)
    assert np.allclose(pred.upper, tight_high)
    share = (1 - tight_low.sum(1)) / (tight_high - tight_low).sum(1)
    assert np.allclose(pred.mean, tight_low + share[:, None] * (tight_high - tight_low))
    assert pred.set.contains(pred.mean).all()
    assert (pred.epistemic >= 0).all()
    assert torch.allclose(pred.probs.sum(-1), torch.ones(3, 50, dtype=torch.float64))
