import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from credro.data.noise import symmetric_noise


def test_a_hundred_thousand_draws_have_the_stated_rate_and_are_uniform_over_the_others():
    labels = torch.arange(100_000) % 10
    noisy = symmetric_noise(labels, 0.4, 10, seed=3)
    wrong = noisy != labels
    assert wrong.sum() == 40_000
    for c in range(10):
        went = torch.bincount(noisy[wrong & (labels == c)], minlength=10)
        assert went[c] == 0
        assert chisquare(went[torch.arange(10) != c].numpy()).pvalue > 1e-4
    # Which samples are hit does not depend on their class or position.
    assert chisquare(torch.bincount(labels[wrong], minlength=10).numpy()).pvalue > 1e-4
    assert chisquare(wrong.view(100, -1).sum(1).numpy()).pvalue > 1e-4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.floats(0, 1), st.integers(2, 12), st.integers(0, 2**31))
def test_exactly_the_rounded_share_changes(n, rate, classes, seed):
    labels = torch.randint(0, classes, (n,), generator=torch.Generator().manual_seed(seed))
    before = labels.clone()
    noisy = symmetric_noise(labels, rate, classes, seed=seed)
    assert (noisy != labels).sum() == round(rate * n)
    assert torch.equal(labels, before)
    assert noisy.dtype == labels.dtype
    assert n == 0 or (noisy.min() >= 0 and noisy.max() < classes)
    assert torch.equal(noisy, symmetric_noise(labels, rate, classes, seed=seed))


def test_small_integers_do_not_overflow():
    labels = torch.full((1000,), 250, dtype=torch.uint8)
    noisy = symmetric_noise(labels, 1.0, 256, seed=0)
    assert noisy.dtype == torch.uint8
    assert not (noisy == 250).any()
    assert len(noisy.unique()) > 200


@pytest.mark.parametrize(
    ("labels", "rate", "classes", "message"),
    [
        ([0, 1], 1.5, 2, r"rate must lie in \[0, 1\], got 1.5"),
        ([0, 1], -0.1, 2, "rate must lie"),
        ([0, 1], float("nan"), 2, "rate must lie"),
        ([0, 0], 0.5, 1, "classes must be at least 2"),
        ([0, 7], 0.5, 5, r"labels must lie in 0\.\.4, got 0\.\.7"),
        ([0.5, 1.0], 0.5, 2, "labels must be integers"),
    ],
)
def test_errors_say_what_is_allowed(labels, rate, classes, message):
    with pytest.raises(ValueError, match=message):
        symmetric_noise(torch.tensor(labels), rate, classes, seed=0)
