from __future__ import annotations

import math

import numpy as np
import pytest

from credro.members import End, RelativeLikelihood


@pytest.mark.parametrize("alpha", [0.2, 0.8, 1.0])
def test_thresholds(alpha: float) -> None:
    stop = RelativeLikelihood(alpha)
    expected = np.linspace(alpha, 1, 4, endpoint=False)
    assert [stop.member(i, 5).threshold for i in range(1, 5)] == pytest.approx(expected)
    assert stop.member(0, 5) == End()


def test_relative_likelihood_by_hand() -> None:
    # Training labels had probabilities 0.5 and 0.8 under the reference, 0.4 and 0.6 under the member: the mean
    # log-likelihoods are log(0.4) / 2 and log(0.24) / 2, so the relative likelihood is sqrt(0.24 / 0.4).
    reference, member = -math.log(0.4) / 2, -math.log(0.24) / 2
    stop = RelativeLikelihood(0.7)
    note, stops = stop.member(1, 3).after_epoch(member, reference)
    assert note["relative_likelihood"] == pytest.approx(math.sqrt(0.6))
    assert stops  # 0.7746 has reached 0.7
    _, stops = stop.member(2, 3).after_epoch(member, reference)
    assert not stops  # and not 0.85


def test_others_wait_for_the_reference() -> None:
    stop = RelativeLikelihood()
    assert stop.member(0, 4).waits_for == ()
    assert stop.member(3, 4).waits_for == (0,)
    assert End().member(3, 4).waits_for == ()


def test_alpha_zero_trains_the_reference_only() -> None:
    stop = RelativeLikelihood(0.0)
    assert [stop.member(i, 3).trains for i in range(3)] == [True, False, False]
    with pytest.raises(ValueError, match="alpha"):
        RelativeLikelihood(1.2)
