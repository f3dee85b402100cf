"""Box and Hull: what they accept, what they refuse and how they say so, and their geometry."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy.spatial import ConvexHull

from credro.credal.sets import Box, Hull
from tests.credal import oracles
from tests.credal.strategies import boxes, ensembles

GOOD = np.array([[[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]], [[0.4, 0.6], [0.1, 0.9], [0.0, 1.0]]])  # M 2, N 3, C 2


def spoiled(value: float, at: tuple[int, int, int] = (1, 2, 1)) -> np.ndarray:
    probs = GOOD.copy()
    probs[at] = value
    return probs


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Hull, Box.of])
@pytest.mark.parametrize("convert", [np.asarray, torch.tensor])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"probs is NaN at member 1, sample \[2\], class 1"),
        (np.inf, r"probs is infinite at member 1, sample \[2\], class 1"),
        (-0.5, r"probs is negative at member 1, sample \[2\], class 1: -0.5"),
        (0.7, r"probs must sum to 1 over the classes: member 1, sample \[2\] sums to 0.7"),
    ],
)
def test_bad_members_are_named(make, convert, value, message):
    with pytest.raises(ValueError, match=message):
        make(convert(spoiled(value)))


def test_the_first_bad_sample_is_named_in_any_leading_shape():
    probs = np.full((3, 2, 5, 4), 0.25)
    probs[2, 1, 3, 0] = probs[0, 1, 4, 0] = np.nan
    with pytest.raises(ValueError, match=r"member 2, sample \[1, 3\], class 0"):
        Hull(probs)
    with pytest.raises(ValueError, match=r"member 1 sums to 1\.1"):
        Hull([[0.5, 0.5], [0.5, 0.6]])


def test_the_first_bad_sample_is_named_across_chunks():
    probs = torch.full((2, 3000, 100), 0.01)
    probs[1, 2999, 7] = -1
    with pytest.raises(ValueError, match=r"negative at member 1, sample \[2999\], class 7"):
        Hull(probs)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (np.ones(3), r"must have shape \(M, ..., C\)"),
        (np.ones((0, 4, 3)), "at least one member"),
        (np.ones((2, 4, 0)), "at least one class"),
        (GOOD * 5 - 2, "are these logits"),
    ],
)
def test_wrong_shapes_and_logits(probs, message):
    with pytest.raises(ValueError, match=message):
        Hull(probs)


@pytest.mark.parametrize(
    "probs", [np.array([["a", "b"]]), np.array([[1j, 0]]), torch.ones(1, 1, dtype=torch.complex64)]
)
def test_wrong_types(probs):
    with pytest.raises(TypeError, match="probs must be"):
        Hull(probs)


LOWER, UPPER = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.1]]), np.array([[0.5, 0.9], [0.6, 0.7], [0.6, 0.5]])


def changed(bound: np.ndarray, value: float) -> np.ndarray:
    bound = bound.copy()
    bound[1, 1] = value
    return bound


@pytest.mark.parametrize("convert", [np.asarray, torch.tensor])
@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (changed(LOWER, np.nan), UPPER, r"lower is NaN at \[1, 1\]"),
        (LOWER, changed(UPPER, np.nan), r"upper is NaN at \[1, 1\]"),
        (LOWER, changed(UPPER, np.inf), r"upper is infinite at \[1, 1\]"),
        (changed(LOWER, -0.1), UPPER, r"lower is negative at \[1, 1\]: -0.1"),
        (changed(LOWER, 0.8), UPPER, r"lower > upper at \[1, 1\]: 0.8 > 0.7"),
        (changed(LOWER, 0.8), changed(UPPER, 0.8), r"the set is empty at \[1\]: lower sums to 1.1, more than 1"),
        (changed(LOWER, 0.3), changed(UPPER, 0.3), r"the set is empty at \[1\]: upper sums to 0.9, less than 1"),
        (LOWER, UPPER[:2], r"must have one shape, got \(3, 2\) and \(2, 2\)"),
        (LOWER[:, :0], UPPER[:, :0], "at least one class"),
    ],
)
def test_bad_bounds_are_named(convert, lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Box(convert(lower), convert(upper))


def test_a_single_empty_box():
    with pytest.raises(ValueError, match=r"the set is empty at the only sample: lower sums to 1\.2"):
        Box([0.6, 0.6], [0.7, 0.7])


# --- what is accepted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_sums_that_miss_by_rounding_are_put_right(dtype):
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(4, 50, 100, generator=generator).softmax(-1).to(dtype)
    hull = Hull(probs)
    assert hull.members.dtype == torch.float64
    torch.testing.assert_close(hull.members.sum(-1), torch.ones(4, 50, dtype=torch.float64), atol=1e-14, rtol=0)
    box = hull.box()
    assert (box.lower.sum(-1) <= 1 + 1e-14).all()
    assert (box.upper.sum(-1) >= 1 - 1e-14).all()


@pytest.mark.parametrize("off", [1e-9, 1e-5])
def test_bounds_whose_sums_miss_by_rounding_are_put_right(off):
    point = np.array([0.2, 0.3, 0.5])
    above, below = Box(point * (1 + off), point * (1 + off)), Box(point * (1 - off), point * (1 - off))
    assert above.lower.sum() == pytest.approx(1, abs=1e-14)
    assert below.upper.sum() == pytest.approx(1, abs=1e-14)
    assert above.contains(point, tol=1e-9)
    assert below.contains(point, tol=1e-9)


def test_whole_numbers_and_lists_are_fine():
    assert Hull([[1, 0], [0, 1]]).box().upper.tolist() == [1.0, 1.0]
    assert Box([0, 0], [1, 1]).width.tolist() == [1.0, 1.0]
    assert Hull(torch.tensor([[True, False], [False, True]])).mean.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("lead", [(), (1,), (4,), (2, 3), (0,), (2, 0, 3)])
def test_any_leading_shape(lead):
    probs = np.full((3, *lead, 5), 0.2)
    for s in (Hull(probs), Box.of(probs), Box(probs[0], probs[0])):
        assert s.shape == (*lead, 5)
        assert s.lower.shape == s.upper.shape == s.width.shape == s.mean.shape == (*lead, 5)
        assert s.contains(probs[0]).shape == lead
        assert s.tighten().shape == (*lead, 5)
        if lead:
            assert len(s) == lead[0]
    assert len(Hull(probs).vertices()) == len(Box.of(probs).vertices()) == int(np.prod(lead))


def test_kind_in_is_kind_out():
    for s in (Hull(GOOD), Box.of(GOOD), Box(LOWER, UPPER)):
        assert all(isinstance(x, np.ndarray) for x in (s.lower, s.upper, s.width, s.mean, s.vertices()[0]))
        assert s.contains(s.mean).dtype == bool
    for s in (Hull(torch.tensor(GOOD)), Box.of(torch.tensor(GOOD)), Box(torch.tensor(LOWER), torch.tensor(UPPER))):
        assert all(isinstance(x, torch.Tensor) for x in (s.lower, s.upper, s.width, s.mean, s.vertices()[0]))
        assert s.contains(s.mean).dtype == torch.bool


@pytest.mark.parametrize("s", [Box(LOWER, UPPER), Hull(GOOD)])
def test_sets_are_frozen(s):
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.numpy = False


def test_members_given_are_not_changed():
    probs = GOOD.copy() * (1 + 1e-6)
    before = probs.copy()
    Box.of(probs).tighten()
    np.testing.assert_array_equal(probs, before)


# --- geometry ----------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(ensembles())
def test_box_of_members_is_the_smallest_and_contains_the_hull(probs):
    box, hull = Box.of(probs), Hull(probs)
    np.testing.assert_allclose(box.lower, probs.min(0), atol=1e-15)
    np.testing.assert_allclose(box.upper, probs.max(0), atol=1e-15)
    mixed = np.tensordot(np.random.default_rng(0).dirichlet(np.ones(len(probs))), probs, 1)
    for p in (probs[-1], mixed):
        assert box.contains(p).all()
        assert hull.contains(p).all()


@settings(max_examples=50, deadline=None)
@given(boxes(max_classes=6))
def test_tightening_keeps_the_corners(bounds):
    box = Box(*bounds)
    tight = box.tighten()
    assert (tight.width <= box.width + 1e-15).all()
    for a, b, low, high in zip(*bounds, tight.lower, tight.upper, strict=True):
        corners = oracles.corners(a, b)
        np.testing.assert_allclose(corners.min(0), low, atol=1e-11)  # every tightened bound is reached
        np.testing.assert_allclose(corners.max(0), high, atol=1e-11)


@settings(max_examples=50, deadline=None)
@given(boxes(max_classes=6))
def test_vertices_are_all_the_corners_once(bounds):
    for found, a, b in zip(Box(*bounds).vertices(), *bounds, strict=True):
        truth = oracles.corners(a, b)
        apart = np.abs(found[:, None] - truth).max(-1)
        assert (apart.min(0) < 1e-9).all()  # none is missing
        assert (apart.min(1) < 1e-9).all()  # none is invented
        gaps = np.abs(truth[:, None] - truth).max(-1)
        if not ((gaps > 1e-13) & (gaps < 1e-6)).any():  # where the true corners are all one or well apart
            among = np.abs(found[:, None] - found).max(-1) + np.eye(len(found))
            assert (among > 1e-9).all()  # none is there twice


def test_vertices_of_a_hand_made_box():
    found = Box([0.0, 0.0, 0.0], [0.5, 0.5, 1.0]).vertices()[0]
    expected = [[0, 0, 1], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    np.testing.assert_allclose(found[np.lexsort(found.T[::-1])], expected, atol=1e-12)


def test_vertices_span_the_box():
    """In three classes the corners are those of a polygon: SciPy's hull of random points of the box stays inside."""
    lower, upper = np.array([0.1, 0.2, 0.15]), np.array([0.5, 0.6, 0.45])
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), 20000)
    inside = points[((points >= lower) & (points <= upper)).all(1)]
    area = ConvexHull(Box(lower, upper).vertices()[0][:, :2]).volume
    sampled = ConvexHull(inside[:, :2]).volume
    assert sampled < area
    assert sampled == pytest.approx(area, rel=0.05)


def test_vertices_of_many_classes_are_refused():
    with pytest.raises(ValueError, match=r"at most 12 classes .* got C = 13"):
        Box(np.zeros(13), np.ones(13)).vertices()


def test_outside_is_outside():
    hull = Hull(np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]))
    assert hull.contains([1 / 3, 1 / 3, 1 / 3])
    assert not hull.contains([0.45, 0.45, 0.1 - 1e-3])
    assert not hull.contains([0.9, 0.05, 0.05])
    assert hull.box().contains([0.45, 0.45, 0.1])
    assert not hull.box().contains([0.9, 0.05, 0.05])
    assert not hull.box().contains([0.2, 0.2, 0.2])  # within the bounds, but no distribution


def test_mean_is_that_of_the_members_or_the_intersection_probability():
    np.testing.assert_allclose(Box.of(GOOD).mean, GOOD.mean(0))
    np.testing.assert_allclose(Hull(GOOD).mean, GOOD.mean(0))
    np.testing.assert_allclose(Box([0.1, 0.2, 0.3], [0.3, 0.4, 0.7]).mean, [0.2, 0.3, 0.5])


def test_gradients_flow_to_the_members():
    probs = torch.tensor(GOOD, requires_grad=True)
    Box.of(probs).width.sum().backward()
    assert probs.grad is not None
    assert probs.grad.abs().sum() > 0
