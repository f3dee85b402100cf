from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from credro.nets import make
from credro.objectives.relative_likelihood import RelativeLikelihood


@pytest.mark.parametrize("alpha", [0.2, 0.8, 1.0])
def test_thresholds(alpha: float) -> None:
    rule = RelativeLikelihood(alpha)
    expected = np.linspace(alpha, 1, 4, endpoint=False)
    assert [rule.threshold(i, 5) for i in range(1, 5)] == pytest.approx(expected)


def test_biased_start() -> None:
    rule = RelativeLikelihood()
    x = torch.randn(50, 1, 8, 8)
    for member in range(1, 15):
        net = rule.convert(make("mlp", classes=10, shape=(1, 8, 8)), member, 15).eval()
        assert (net(x).argmax(-1) == (member - 1) % 10).all()


def test_relative_likelihood_by_hand() -> None:
    # Training labels had probabilities 0.5 and 0.8 under the reference, 0.4 and 0.6 under the member: the mean
    # log-likelihoods are log(0.4) / 2 and log(0.24) / 2, so the relative likelihood is sqrt(0.24 / 0.4).
    reference, member = -math.log(0.4) / 2, -math.log(0.24) / 2
    rule = RelativeLikelihood(0.7)
    note, stops = rule.after_epoch(1, 3, lambda: {"loss": member}, lambda i: {"train": {"loss": reference}})
    assert note["relative_likelihood"] == pytest.approx(math.sqrt(0.6))
    assert stops  # 0.7746 has reached 0.7
    note, stops = rule.after_epoch(2, 3, lambda: {"loss": member}, lambda i: {"train": {"loss": reference}})
    assert not stops  # and not 0.85
    assert rule.after_epoch(0, 3, dict, lambda i: {}) == ({}, False)


def test_others_wait_for_the_reference() -> None:
    rule = RelativeLikelihood()
    assert rule.waits_for(0) == ()
    assert rule.waits_for(3) == (0,)


def test_alpha_zero_trains_the_reference_only() -> None:
    rule = RelativeLikelihood(0.0)
    assert [rule.trains(i) for i in range(3)] == [True, False, False]
    with pytest.raises(ValueError, match="alpha"):
        RelativeLikelihood(1.2)
