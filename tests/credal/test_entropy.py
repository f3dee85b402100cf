"""The public entropies: shapes, kinds, units, warnings, gradients, memory. Their values are tested next door."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from credro.credal import entropy as module
from credro.credal.entropy import InexactWarning, lower_entropy, shannon, upper_entropy
from credro.credal.sets import Box, Hull
from tests.credal import oracles
from tests.credal.strategies import ensembles
from tests.credal.test_box_entropy import subset_sum

BOTH = [upper_entropy, lower_entropy]
SETS = [Box.of, Hull]


def softmax_ensemble(M: int, N: int, C: int, seed: int = 0, scale: float = 1.5, noise: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    shared = scale * torch.randn(N, C, generator=generator, dtype=torch.float64)
    return (shared + noise * torch.randn(M, N, C, generator=generator, dtype=torch.float64)).softmax(-1)


# --- values ------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(ensembles(max_classes=8))
def test_a_hull_lies_inside_its_box(probs):
    box, hull = Box.of(probs), Hull(probs)
    values = [lower_entropy(box), lower_entropy(hull), upper_entropy(hull), upper_entropy(box)]
    for smaller, larger in itertools.pairwise(values):
        assert (smaller <= larger + 1e-8).all()
    members = oracles.entropy(probs)
    assert (members >= lower_entropy(box) - 1e-12).all()
    assert (members <= upper_entropy(box) + 1e-12).all()
    if probs.shape[-1] <= 2:  # then they are the same set
        np.testing.assert_allclose(lower_entropy(box), lower_entropy(hull), atol=1e-12)
        np.testing.assert_allclose(upper_entropy(box), upper_entropy(hull), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(ensembles(max_classes=8))
def test_the_distribution_lies_in_the_set_and_attains_the_value(probs):
    for make in SETS:
        credal_set = make(probs)
        for solve in BOTH:
            value, p = solve(credal_set, return_distribution=True)
            np.testing.assert_allclose(oracles.entropy(p), value, atol=1e-11)
            assert credal_set.contains(p, tol=1e-8).all()


def test_known_values():
    everything = Box([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])
    assert upper_entropy(everything) == pytest.approx(np.log(4))
    assert lower_entropy(everything) == 0
    assert upper_entropy(everything, base=2) == pytest.approx(2)
    interval = Hull([[0.4, 0.6], [0.1, 0.9]])
    assert upper_entropy(interval) == pytest.approx(oracles.entropy(np.array([0.4, 0.6])))
    assert lower_entropy(interval) == pytest.approx(oracles.entropy(np.array([0.1, 0.9])))
    across = Hull([[0.6, 0.4], [0.1, 0.9]])
    assert upper_entropy(across, base=2) == pytest.approx(1)


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
def test_one_member_has_its_own_entropy(make, solve):
    probs = softmax_ensemble(1, 50, 6)
    torch.testing.assert_close(solve(make(probs)), shannon(probs[0]), atol=1e-13, rtol=0)


@pytest.mark.parametrize("C", [1000, 20_000])
def test_one_member_of_very_many_classes(C):
    """The sum of the bounds misses 1 by the rounding of thousands of terms: the set is no less there."""
    probs = torch.rand(1, 20, C, generator=torch.Generator().manual_seed(0))
    probs /= probs.sum(-1, keepdim=True)
    truth = oracles.entropy(probs[0].double().numpy() / probs[0].double().numpy().sum(-1, keepdims=True))
    for solve in BOTH:
        np.testing.assert_allclose(solve(Box.of(probs)).numpy(), truth, atol=1e-11)


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
def test_identical_members_are_one(make, solve):
    probs = softmax_ensemble(1, 50, 6)
    torch.testing.assert_close(solve(make(probs.expand(4, -1, -1))), shannon(probs[0]), atol=1e-13, rtol=0)


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
def test_one_class_has_no_entropy(make, solve):
    assert solve(make(np.ones((3, 4, 1)))).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("make", SETS)
def test_one_hot_members(make):
    probs = np.eye(4)[[[0, 2, 3], [0, 1, 3]]]  # they agree on samples 0 and 2
    np.testing.assert_allclose(upper_entropy(make(probs)), [0, np.log(2), 0], atol=1e-8)
    np.testing.assert_allclose(lower_entropy(make(probs)), [0, 0, 0], atol=1e-15)


# --- kinds and shapes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
@pytest.mark.parametrize("lead", [(), (7,), (2, 3), (0,), (3, 0, 2)])
def test_any_leading_shape(make, solve, lead):
    N = int(np.prod(lead))
    flat = softmax_ensemble(3, N, 5)
    value, p = solve(make(flat.reshape(3, *lead, 5)), return_distribution=True)
    assert value.shape == lead
    assert p.shape == (*lead, 5)
    torch.testing.assert_close(value.reshape(-1), solve(make(flat)))


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
def test_numpy_in_numpy_out_torch_in_torch_out(make, solve):
    probs = softmax_ensemble(3, 5, 4)
    value, p = solve(make(probs), return_distribution=True)
    array, q = solve(make(probs.numpy()), return_distribution=True)
    assert isinstance(value, torch.Tensor)
    assert isinstance(p, torch.Tensor)
    assert isinstance(array, np.ndarray)
    assert isinstance(q, np.ndarray)
    assert value.device == probs.device
    np.testing.assert_array_equal(array, value.numpy())


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_short_floats_are_worked_on_in_float64(make, solve, dtype):
    short = softmax_ensemble(4, 40, 10).to(dtype)
    long = short.double()
    value = solve(make(short))
    assert value.dtype == torch.float64
    torch.testing.assert_close(value, solve(make(long / long.sum(-1, keepdim=True))), atol=1e-11, rtol=0)


@pytest.mark.parametrize("solve", BOTH)
def test_chunks_do_not_show(solve, monkeypatch):
    probs = softmax_ensemble(3, 57, 6)
    whole = [solve(make(probs)) for make in SETS]
    monkeypatch.setattr("credro.credal.arrays.CHUNK", 40)
    parts = [solve(make(probs)) for make in SETS]
    torch.testing.assert_close(parts, whole, atol=1e-8, rtol=0)


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
def test_base_only_changes_the_unit(make, solve):
    credal_set = make(softmax_ensemble(3, 10, 5))
    torch.testing.assert_close(solve(credal_set, base=2), solve(credal_set) / np.log(2))


@pytest.mark.parametrize("base", [1, 0, -2, float("nan")])
def test_base_must_be_above_one(base):
    for call in (lambda: upper_entropy(Hull([[1.0]]), base=base), lambda: shannon([1.0], base=base)):
        with pytest.raises(ValueError, match="base must be greater than 1"):
            call()


# --- the budget --------------------------------------------------------------------------------------------------


def test_a_budget_overrun_is_never_silent():
    lower, upper = subset_sum()
    truth = oracles.lower_by_enumeration(lower[0], upper[0])
    easy = np.eye(lower.shape[1])[:1]
    box = Box(np.concatenate([easy, lower]), np.concatenate([easy, upper]))
    with pytest.warns(InexactWarning, match=r"budget of 40 nodes a sample ended the search for 1 of 2 samples"):
        value, gap = lower_entropy(box, max_nodes=40, return_gap=True)
    assert gap[0] == 0
    assert gap[1] > 0
    assert value[1] - gap[1] <= truth <= value[1]
    with pytest.warns(InexactWarning):
        bits, gap_bits = lower_entropy(box, max_nodes=40, return_gap=True, base=2)
    np.testing.assert_allclose((bits, gap_bits), (value / np.log(2), gap / np.log(2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, p, gap = lower_entropy(box, return_distribution=True, return_gap=True)  # the default is enough
    assert (gap == 0).all()
    assert value[1] == pytest.approx(truth, abs=1e-11)
    assert box.contains(p).all()


def test_the_gap_of_a_hull_is_zero():
    value, gap = lower_entropy(Hull(softmax_ensemble(3, 10, 5)), return_gap=True)
    assert (gap == 0).all()
    assert value.shape == gap.shape


def test_max_nodes_must_be_positive():
    with pytest.raises(ValueError, match="max_nodes must be at least 1, got 0"):
        lower_entropy(Box([0.0, 0.0], [1.0, 1.0]), max_nodes=0)


def test_a_hull_that_is_not_solved_says_so(monkeypatch):
    monkeypatch.setattr(module, "CERTIFIED", 1e-30)  # more than float64 can certify
    with pytest.warns(InexactWarning, match="were not solved to 1e-30 nats; the largest certified gap is"):
        upper_entropy(Hull(softmax_ensemble(5, 4, 6)))


# --- gradients ---------------------------------------------------------------------------------------------------


def logits(M: int, N: int, C: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(M, N, C, generator=generator, dtype=torch.float64)).requires_grad_()


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
@pytest.mark.parametrize(("M", "C"), [(1, 4), (2, 2), (2, 5), (4, 3), (5, 8), (3, 1)])
def test_gradients_to_the_members(make, solve, M, C, monkeypatch):
    # Differences of entropies certified to 1e-8 are too coarse for gradcheck: solve as far as float64 goes.
    monkeypatch.setattr(module.hull_upper, "__defaults__", (1e-14,))
    x = logits(M, 3, C, seed=10 * M + C)
    assert torch.autograd.gradcheck(lambda z: solve(make(z.softmax(-1))), x, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("solve", BOTH)
def test_gradients_to_the_bounds(solve):
    lower = torch.tensor([[0.1, 0.2, 0.05, 0.13], [0.05, 0.1, 0.3, 0.02]], dtype=torch.float64)
    upper = torch.tensor([[0.4, 0.7, 0.25, 0.3], [0.5, 0.45, 0.6, 0.35]], dtype=torch.float64)
    lower.requires_grad_(), upper.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: solve(Box(a, b)), (lower, upper))


@pytest.mark.parametrize("solve", BOTH)
def test_gradients_where_bounds_cannot_be_reached(solve):
    """The upper bounds of 1 do not matter; the lower bounds of the others do."""
    lower = torch.tensor([0.3, 0.25, 0.2], dtype=torch.float64, requires_grad=True)
    upper = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: solve(Box(a, b)), (lower, upper))
    (grad,) = torch.autograd.grad(solve(Box(lower, upper)), upper)
    assert (grad == 0).all()


@pytest.mark.parametrize("solve", BOTH)
def test_gradients_with_classes_of_zero_width(solve):
    """Half of the classes are given by all members alike; they move together with the logits."""
    x = logits(2, 3, 3, seed=5)
    fixed = torch.tensor([0.2, 0.3], dtype=torch.float64)

    def value(z: torch.Tensor) -> torch.Tensor:
        probs = torch.cat([fixed.expand(2, 3, 2), 0.5 * z.softmax(-1)], -1)
        return solve(Box.of(probs))

    assert torch.autograd.gradcheck(value, x, atol=1e-5)


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("solve", BOTH)
def test_gradients_are_finite_where_probabilities_are_zero(make, solve):
    x = torch.tensor([[[0.0, 2000.0, 5.0]], [[3.0, 1990.0, 2000.0]]], dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(solve(make(x.softmax(-1))).sum(), x)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loss_with_the_entropy_gap_trains(make, dtype):
    x = logits(4, 16, 5).detach().to(dtype).requires_grad_()

    def loss(z: torch.Tensor) -> torch.Tensor:
        credal_set = make(z.softmax(-1))
        return (upper_entropy(credal_set) - lower_entropy(credal_set)).mean()

    before = loss(x)
    before.backward()
    assert x.grad is not None
    assert x.grad.dtype == dtype
    assert loss(x.detach() - 0.1 * x.grad) < before
    optimiser = torch.optim.Adam([x], lr=0.1)
    for _ in range(30):
        optimiser.zero_grad()
        (value := loss(x)).backward()
        optimiser.step()
    assert value < 0.3 * before


# --- memory ------------------------------------------------------------------------------------------------------

PEAK = """
import resource, sys, time, torch
from credro.credal.measures import epistemic
from credro.credal.sets import Box
N, C = {N}, {C}
generator = torch.Generator().manual_seed(0)
probs = torch.empty(2, N, C)
for part in range(0, N, 1000):  # drawn in parts, so that the input itself is the peak so far
    shared = 4 * torch.randn(min(1000, N - part), C, generator=generator)
    probs[:, part : part + 1000] = (shared + torch.randn(2, *shared.shape, generator=generator)).softmax(-1)
epistemic(Box.of(probs[:, :10]))
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before, start = peak(), time.perf_counter()
assert epistemic(Box.of(probs)).shape == (N,)
print(peak() - before, time.perf_counter() - start)
"""


def peak_above_input(N: int, C: int) -> float:
    """Bytes that the entropy gap of N boxes takes beyond the members themselves."""
    code = textwrap.dedent(PEAK.format(N=N, C=C))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used, seconds = map(float, done.stdout.split())
    print(f"N {N}, C {C}: {used / 2**30:.2f} GiB above the input, {seconds:.1f} s")
    return used


def test_memory_grows_with_the_bounds_only():
    """Two bounds and two results in float64 and some chunks: about a twentieth of the large case below."""
    assert peak_above_input(2500, 1000) < 2**30 / 5


@pytest.mark.slow
def test_memory_of_fifty_thousand_samples_and_a_thousand_classes():
    assert peak_above_input(50_000, 1000) < 2 * 2**30
