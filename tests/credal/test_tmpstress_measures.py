"""Measures against definitions written out subset by subset, vertex by vertex, and by a textbook formula."""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import entropy as scipy_entropy

from credro.credal import measures as m
from credro.credal.entropy import lower_entropy, upper_entropy
from credro.credal.sets import Box, Hull
from credro.credal.subsets import box_imprecision, event_sums, hartley_weights
from tests.credal.strategies import boxes, ensembles

few = settings(max_examples=2000, deadline=None)
BOTH = [Box.of, Hull]


def events(C):
    return [list(a) for a in chain.from_iterable(combinations(range(C), r) for r in range(C + 1))]


def extremes(vertices):
    """Lower and upper probability of every event, from the corner points of a set."""
    return {tuple(a): (vertices[:, a].sum(1).min(), vertices[:, a].sum(1).max()) for a in events(vertices.shape[1])}


def hartley_by_definition(vertices):
    """Sum over A of m(A) log|A| with m(A) = sum over B in A of (-1)^|A - B| P_(B), nothing rearranged."""
    total = 0.0
    lower = {a: low for a, (low, _) in extremes(vertices).items()}
    for a in lower:
        if a:
            inside = chain.from_iterable(combinations(a, r) for r in range(len(a) + 1))
            total += math.log(len(a)) * sum((-1) ** (len(a) - len(b)) * lower[b] for b in inside)
    return total


def imprecision_by_definition(vertices):
    return max(high - low for low, high in extremes(vertices).values())


# --- the entropy gap -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", BOTH)
def test_gap_total_and_aleatoric_are_the_entropies(make):
    probs = np.random.default_rng(0).dirichlet(np.ones(4), (3, 5))
    credal_set = make(probs)
    assert np.allclose(m.total(credal_set), upper_entropy(credal_set))
    assert np.allclose(m.aleatoric(credal_set), lower_entropy(credal_set))
    assert np.allclose(m.total(credal_set) - m.aleatoric(credal_set), m.epistemic(credal_set))


def test_gap_of_two_classes_by_hand():
    probs = np.array([[[0.2, 0.8]], [[0.6, 0.4]]])  # the interval holds one half; 0.2 is farther from it than 0.6
    expected = 1 - scipy_entropy([0.2, 0.8], base=2)
    for make in BOTH:
        assert np.allclose(m.epistemic(make(probs), base=2), expected, atol=1e-12)
        assert np.allclose(m.epistemic(make(probs)), expected * math.log(2), atol=1e-12)


@few
@given(ensembles())
def test_gap_is_not_negative_and_the_box_is_never_less_uncertain(probs):
    box, hull = m.epistemic(Box.of(probs)), m.epistemic(Hull(probs))
    assert (hull >= 0).all()
    assert (box >= hull - 2e-8).all()


@pytest.mark.parametrize("make", BOTH)
def test_gradient_of_the_gap_agrees_with_finite_differences(make):
    logits = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    tol = 1e-5 if make is Box.of else 1e-3  # the hull is solved to 1e-8, which differences magnify
    assert torch.autograd.gradcheck(lambda x: m.epistemic(make(x.softmax(-1))), logits, atol=tol, eps=1e-5)


def test_rounding_below_zero_neither_shows_nor_stops_the_gradient():
    x = torch.tensor([-1e-17, 0.0, 0.5], dtype=torch.float64, requires_grad=True)
    y = m._not_negative(x)
    y.sum().backward()
    assert y.tolist() == [0.0, 0.0, 0.5]
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


# --- mutual information ----------------------------------------------------------------------------------------------


@few
@given(ensembles())
def test_mutual_information_is_entropy_of_the_mean_less_mean_entropy(probs):
    expected = scipy_entropy(probs.mean(0), axis=-1) - scipy_entropy(probs, axis=-1).mean(0)
    assert np.allclose(m.mutual_information(probs), expected, atol=1e-12)
    assert np.allclose(m.mutual_information(probs, base=2), expected / math.log(2), atol=1e-12)
    assert (m.mutual_information(probs) >= 0).all()


def test_mutual_information_of_almost_equal_members_keeps_its_digits():
    d = 1e-7
    probs = np.array([[[0.5 + d, 0.5 - d]], [[0.5 - d, 0.5 + d]]])
    assert np.allclose(m.mutual_information(probs), 2 * d**2, rtol=1e-6)  # where the entropies differ by 90 ulp


def test_mutual_information_has_its_gradient():
    logits = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: m.mutual_information(x.softmax(-1)), logits)


def test_mutual_information_has_no_nan_gradient_at_zeros():
    probs = torch.tensor([[[0.0, 0.0, 1.0]], [[0.0, 0.5, 0.5]]], dtype=torch.float64, requires_grad=True)
    m.mutual_information(probs).sum().backward()
    assert torch.isfinite(probs.grad).all()


# --- widths ----------------------------------------------------------------------------------------------------------


@few
@given(ensembles())
def test_interval_length_is_the_mean_range(probs):
    expected = np.ptp(probs, axis=0).mean(-1)
    for make in BOTH:
        assert np.allclose(m.interval_length(make(probs)), expected, atol=1e-12)


def test_interval_width_is_for_two_classes():
    probs = np.array([[[0.3, 0.7], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]])
    for make in BOTH:
        assert np.allclose(m.interval_width(make(probs)), [0.2, 1.0])
        with pytest.raises(ValueError, match="two classes, got C = 3"):
            m.interval_width(make(np.full((2, 1, 3), 1 / 3)))


# --- generalised Hartley ---------------------------------------------------------------------------------------------


@few
@given(ensembles(max_classes=5, max_samples=2))
def test_hartley_of_a_hull_by_definition(probs):
    expected = [hartley_by_definition(v) for v in Hull(probs).vertices()]
    assert np.allclose(m.generalized_hartley(Hull(probs)), expected, atol=1e-11)


@few
@given(boxes(max_classes=5, max_samples=2))
def test_hartley_of_a_box_by_definition(bounds):
    box = Box(*bounds)
    expected = [hartley_by_definition(v) for v in box.vertices()]
    assert np.allclose(m.generalized_hartley(box), expected, atol=1e-10)


@few
@given(ensembles())
def test_hartley_lies_between_zero_and_log_C_and_grows_with_the_set(probs):
    hull, box = m.generalized_hartley(Hull(probs)), m.generalized_hartley(Box.of(probs))
    assert (hull >= 0).all()
    assert (box >= hull - 1e-12).all()
    assert (box <= math.log(probs.shape[-1]) + 1e-12).all()


@pytest.mark.parametrize("C", [1, 2, 5, 10, 16])
def test_hartley_of_everything_is_log_C(C):
    box = Box(np.zeros((2, C)), np.ones((2, C)))
    assert np.allclose(m.generalized_hartley(box), math.log(C), atol=1e-12)
    assert np.allclose(m.generalized_hartley(Hull(np.eye(C)[:, None])), math.log(C), atol=1e-12)
    assert np.allclose(m.generalized_hartley(box, base=2), math.log2(C), atol=1e-12)


@pytest.mark.parametrize("C", [3, 10, 16])
def test_hartley_of_a_mixture_with_everything(C):
    """A linear-vacuous mixture has masses (1 - e) p_k on the classes and e on the whole space: e log C."""
    p = np.random.default_rng(C).dirichlet(np.ones(C))
    box = Box((0.7 * p)[None], (0.7 * p + 0.3)[None])
    assert np.allclose(m.generalized_hartley(box), 0.3 * math.log(C), atol=1e-12)


def test_weights_of_the_hartley_measure_against_a_long_division_of_integrals():
    """``log(b + j)`` is an integral of exponentials, so the weight is -int e^(-b t) (1 - e^(-t))^n / t dt."""
    from scipy.integrate import quad

    C = 16
    weights = hartley_weights(C)
    for b in (1, 2, 7, 15):
        n = C - b
        expected = -quad(lambda t, b=b, n=n: math.exp(-b * t) * (-math.expm1(-t)) ** n / t, 1e-300, 60, limit=400)[0]
        assert math.isclose(float(weights[(1 << b) - 1]), expected, rel_tol=1e-7)


def test_hartley_refuses_many_classes():
    with pytest.raises(ValueError, match="at most 16 classes, got C = 17"):
        m.generalized_hartley(Box(np.zeros((1, 17)), np.ones((1, 17))))


def test_hartley_has_its_gradient():
    logits = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    for make in BOTH:
        assert torch.autograd.gradcheck(lambda x, make=make: m.generalized_hartley(make(x.softmax(-1))), logits)


# --- maximum mean imprecision ----------------------------------------------------------------------------------------


@few
@given(ensembles(max_classes=6, max_samples=2))
def test_imprecision_of_a_hull_by_definition(probs):
    expected = [imprecision_by_definition(v) for v in Hull(probs).vertices()]
    assert np.allclose(m.max_mean_imprecision(Hull(probs)), expected, atol=1e-12)


@few
@given(boxes(max_classes=6, max_samples=2))
def test_imprecision_of_a_box_by_definition_and_its_bound(bounds):
    box = Box(*bounds)
    exact, bound = m.max_mean_imprecision(box), m.max_mean_imprecision(box, bound=True)
    assert np.allclose(exact, [imprecision_by_definition(v) for v in box.vertices()], atol=1e-10)
    assert (exact <= bound + 1e-12).all()


def test_imprecision_of_many_classes_against_linear_programmes_on_every_event():
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.full(9, 0.5), (3, 1))
    box = Box.of(probs)
    best = 0.0
    for a in events(9):
        c = np.isin(np.arange(9), a).astype(float)
        kwargs = {"A_eq": np.ones((1, 9)), "b_eq": [1], "bounds": np.c_[box.lower[0], box.upper[0]]}
        if c.sum() <= 4:  # an event and its complement are equally imprecise
            best = max(best, -linprog(-c, **kwargs).fun - linprog(c, **kwargs).fun)
    assert np.allclose(m.max_mean_imprecision(box), best, atol=1e-9)


def test_imprecision_searches_all_subsets_at_21_classes():
    w = torch.rand(3, 21, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) / 21
    lower = (1 - w.sum(-1, keepdim=True) / 2) / 21 * torch.ones_like(w)  # sum l = 1 - W/2: only the subset sum limits
    expected = event_sums(w)
    expected = torch.minimum(expected, w.sum(-1, keepdim=True) - expected).amax(-1)
    assert torch.allclose(box_imprecision(lower, lower + w), expected, atol=1e-12, rtol=0)


def test_imprecision_with_two_equal_halves_is_not_lost_to_rounding():
    w = np.array([[0.1, 0.2, 0.3]])  # 0.1 + 0.2 > 0.3 in floats
    lower = (1 - w.sum() / 2) / 3 * np.ones((1, 3))
    assert np.allclose(m.max_mean_imprecision(Box(lower, lower + w)), 0.3, atol=1e-12)


def test_imprecision_of_many_classes_names_the_bound():
    probs = np.random.default_rng(6).dirichlet(np.ones(40), (3, 2))
    with pytest.raises(ValueError, match="at most 30 classes, got C = 40: pass bound=True"):
        m.max_mean_imprecision(Box.of(probs))
    bound, hull = m.max_mean_imprecision(Box.of(probs), bound=True), m.max_mean_imprecision(Hull(probs))
    assert (hull <= bound + 1e-12).all()
    tv = [max(abs(a - b).sum() / 2 for a in p for b in p) for p in probs.transpose(1, 0, 2)]
    assert np.allclose(hull, tv)


def test_imprecision_has_its_gradient():
    logits = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(7), requires_grad=True)
    for make in BOTH:
        assert torch.autograd.gradcheck(lambda x, make=make: m.max_mean_imprecision(make(x.softmax(-1))), logits)


# --- the intersection probability ------------------------------------------------------------------------------------


@few
@given(boxes())
def test_intersection_probability_cuts_every_interval_at_one_share(bounds):
    box = Box(*bounds)
    p = m.intersection_probability(box)
    assert box.contains(p).all()
    for row, low, width in zip(p, box.lower, box.width, strict=True):
        if (wide := width > 1e-6).any():
            assert np.ptp(((row - low)[wide]) / width[wide]) < 1e-6


def test_intersection_probability_of_a_hull_is_that_of_its_box():
    probs = np.random.default_rng(8).dirichlet(np.ones(4), (3, 5))
    assert np.allclose(m.intersection_probability(Hull(probs)), m.intersection_probability(Box.of(probs)))


def test_tightening_changes_the_intersection_probability():
    box = Box(np.array([[0.0, 0.5, 0.0]]), np.array([[1.0, 0.6, 0.1]]))  # 1.0 and 0.0 cannot be attained
    assert np.allclose(m.intersection_probability(box), [[0.41666667, 0.54166667, 0.04166667]])
    assert not np.allclose(m.intersection_probability(box.tighten()), m.intersection_probability(box))


@few
@given(ensembles())
def test_bounds_of_members_are_reachable(probs):
    box = Box.of(probs)
    assert np.allclose(box.lower, box.tighten().lower, atol=1e-14)
    assert np.allclose(box.upper, box.tighten().upper, atol=1e-14)


# --- all of them -----------------------------------------------------------------------------------------------------

EVERY = {
    "epistemic": m.epistemic,
    "generalized_hartley": m.generalized_hartley,
    "max_mean_imprecision": m.max_mean_imprecision,
    "bound": lambda s: m.max_mean_imprecision(s, bound=True),
    "interval_length": m.interval_length,
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("make", BOTH)
@settings(max_examples=1000, deadline=None)
@given(probs=ensembles(), seed=st.integers(0, 99))
def test_zero_for_one_member_and_blind_to_the_order_of_classes(make, name, probs, seed):
    measure = EVERY[name]
    value = measure(make(probs))
    assert value.shape == probs.shape[1:-1]
    assert (value >= 0).all()
    assert np.allclose(measure(make(probs[:1])), 0, atol=1e-12)
    assert np.allclose(m.mutual_information(probs[:1]), 0, atol=1e-15)
    order = np.random.default_rng(seed).permutation(probs.shape[-1])
    assert np.allclose(measure(make(probs[..., order])), value, atol=1e-7)


@pytest.mark.parametrize("name", [*EVERY, "aleatoric", "total"])
@pytest.mark.parametrize("make", BOTH)
def test_kinds_and_shapes(make, name):
    measure = EVERY.get(name) or getattr(m, name)
    probs = np.random.default_rng(9).dirichlet(np.ones(3), (4, 2, 5)).astype(np.float32)
    value, tensor = measure(make(probs)), measure(make(torch.from_numpy(probs)))
    assert isinstance(value, np.ndarray)
    assert value.dtype == np.float64
    assert value.shape == (2, 5)
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.float64
    assert np.allclose(tensor.numpy(), value)
    assert measure(make(probs[:, 0, 0])).shape == ()
    assert np.allclose(measure(make(probs[:, 0, 0])), value[0, 0], atol=1e-8)
    assert measure(make(probs[:, :, :0])).shape == (2, 0)
    assert np.allclose(measure(make(np.ones((2, 3, 1)))), 0)


def test_mutual_information_kinds_and_shapes():
    probs = np.random.default_rng(10).dirichlet(np.ones(3), (4, 2, 5)).astype(np.float32)
    assert isinstance(m.mutual_information(torch.from_numpy(probs)), torch.Tensor)
    assert m.mutual_information(probs).dtype == np.float64
    assert m.mutual_information(probs[:, :, :0]).shape == (2, 0)
    with pytest.raises(ValueError, match="base must be greater than 1"):
        m.mutual_information(probs, base=1)


def test_chunks_do_not_show():
    probs = np.random.default_rng(11).dirichlet(np.ones(12), (3, 200))  # 2^12 events x 3 members: 21 samples at a time
    for make in BOTH:
        value = m.generalized_hartley(make(probs))
        assert np.allclose(value[150:], m.generalized_hartley(make(probs[:, 150:])), atol=1e-14)
