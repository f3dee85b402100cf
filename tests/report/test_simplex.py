from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import credro
from credro.report.simplex import convex, polygon, simplex, to_plane

TRIANGLE = np.sqrt(3) / 4


def shoelace(corners: np.ndarray) -> float:
    """Signed area: positive for corners in anticlockwise order."""
    x, y = corners.T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def turns_left(corners: np.ndarray) -> bool:
    a, b = np.roll(corners, -1, 0) - corners, np.roll(corners, -2, 0) - corners
    return bool((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0] > 0).all())


def members(seed: int, count: int, sharpness: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(3, sharpness), size=count)


def clipped_area(low: np.ndarray, high: np.ndarray) -> float:
    """Area of a box's slice in the plane, by cutting corners off the triangle: another way than its corner points."""
    # {p >= low} is a triangle of side s; beyond p_k = high_k lies a triangle of side s - (high_k - low_k), and
    # inclusion and exclusion counts what two such cuts share.
    side = 1 - low.sum()
    width = high - low
    area = side**2
    for n in (1, 2, 3):
        for cut in itertools.combinations(range(3), n):
            area += (-1) ** n * max(0.0, side - width[list(cut)].sum()) ** 2
    return TRIANGLE * area


def test_the_triangle_is_equilateral() -> None:
    corners = to_plane(np.eye(3))
    sides = np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1)
    assert sides == pytest.approx(np.ones(3))
    assert to_plane(np.full(3, 1 / 3)) == pytest.approx(corners.mean(0))


def test_distances_keep_their_proportion() -> None:
    p = members(0, 50).reshape(2, 25, 3)
    plane = to_plane(torch.from_numpy(p).float())
    assert plane.shape == (2, 25, 2)
    between = np.linalg.norm(p[0] - p[1], axis=1)
    assert np.linalg.norm(plane[0] - plane[1], axis=1) == pytest.approx(between / np.sqrt(2), abs=1e-6)


@given(seed=st.integers(0, 10_000), count=st.integers(3, 12), sharpness=st.sampled_from([0.3, 1.0, 8.0]))
@settings(max_examples=150, deadline=None)
def test_a_hull_is_scipys(seed: int, count: int, sharpness: float) -> None:
    spatial = pytest.importorskip("scipy.spatial", reason="the oracle is SciPy's hull")
    p = members(seed, count, sharpness)
    corners = polygon(credro.Hull(p))
    oracle = spatial.ConvexHull(to_plane(p))
    assert shoelace(corners) == pytest.approx(oracle.volume, abs=1e-9)
    if oracle.volume > 1e-6:
        assert len(corners) <= len(oracle.vertices)
        assert turns_left(corners)


@given(seed=st.integers(0, 10_000), count=st.integers(2, 8), sharpness=st.sampled_from([0.3, 1.0, 8.0]))
@settings(max_examples=150, deadline=None)
def test_a_box_has_the_area_of_the_triangle_without_what_is_cut_off(seed: int, count: int, sharpness: float) -> None:
    p = members(seed, count, sharpness)
    corners = polygon(credro.Box.of(p[:, None]))
    assert abs(shoelace(corners) if len(corners) > 2 else 0.0) == pytest.approx(
        clipped_area(p.min(0), p.max(0)), abs=1e-9
    )
    assert len(corners) <= 6


def test_the_box_contains_the_hull_and_six_corners_come_in_order() -> None:
    box = credro.Box([0.2, 0.2, 0.2], [0.5, 0.5, 0.5])
    corners = polygon(box)
    hexagon = {tuple(to_plane(np.array(p)).round(9)) for p in itertools.permutations([0.2, 0.3, 0.5])}
    assert {tuple(c) for c in corners.round(9)} == hexagon
    assert shoelace(corners) > 0
    assert turns_left(corners)
    p = members(3, 6)
    assert shoelace(polygon(credro.Box.of(p))) >= shoelace(polygon(credro.Hull(p)))


def test_sets_without_area() -> None:
    p = np.array([0.2, 0.3, 0.5])
    q = np.array([0.6, 0.3, 0.1])
    third = (p + q) / 2
    point, segment = np.stack([p, p, p]), np.stack([p, third, q, p])
    for kind in (credro.Hull, credro.Box.of):
        assert polygon(kind(point)) == pytest.approx(to_plane(p)[None])
        found = polygon(kind(segment))
        assert found == pytest.approx(to_plane(np.stack([p, q])[np.lexsort(to_plane(np.stack([p, q])).T[::-1])]))
    # A corner of the triangle, in single precision.
    assert polygon(credro.Hull(torch.eye(3)[[1, 1]])) == pytest.approx(to_plane(np.eye(3)[1])[None])


def test_points_on_an_edge_are_no_corners() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0], [1, 0.3], [0.2, 0.7], [0, 0]], float)
    assert convex(square) == pytest.approx(np.array([[0, 0], [1, 0], [1, 1], [0, 1]]))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one sample and three classes, shape \(3,\) or \(1, 3\), got \(4,\)"):
        polygon(credro.Hull(np.full((2, 4), 0.25)))
    with pytest.raises(ValueError, match=r"got \(2, 3\)"):
        polygon(credro.Hull(np.full((5, 2, 3), 1 / 3)))


@pytest.fixture
def ax():
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from credro.report.style import plotting

    plt = plotting()
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def drawn(ax, label: str) -> np.ndarray:
    return next(np.stack(line.get_data(), -1) for line in ax.lines if line.get_label() == label)


def test_what_is_drawn_is_where_it_should_be(ax) -> None:
    p = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.4, 0.2, 0.4], [0.1, 0.1, 0.8]])
    hull = credro.Hull(p[:3, None])
    simplex(ax, hull, probs=p[:, None], names=("a", "b", "c"))
    assert {t.get_text() for t in ax.texts} == {"a", "b", "c"}
    assert drawn(ax, "members") == pytest.approx(to_plane(p[:3]))
    assert drawn(ax, "members outside the set") == pytest.approx(to_plane(p[3:]))
    assert drawn(ax, "mean")[0] == pytest.approx(to_plane(p[:3].double().mean(0)))
    # The lowest entropy of a hull is at a member, by brute force; the highest at its point nearest to uniform, here
    # uniform itself: (0.6, 0.3, 0.1) / 3 + ... covers it, since the triangle of the three contains (1, 1, 1) / 3.
    entropies = -(p[:3] * p[:3].log()).sum(1)
    assert drawn(ax, "lowest entropy")[0] == pytest.approx(to_plane(p[int(entropies.argmin())]), abs=1e-6)
    assert drawn(ax, "highest entropy")[0] == pytest.approx(to_plane(np.full(3, 1 / 3)), abs=1e-4)


def test_without_a_set_members_and_mean_are_drawn(ax) -> None:
    p = members(1, 5)
    simplex(ax, None, probs=p, names=("a", "b", "c"))
    assert len(drawn(ax, "members")) == 5
    assert drawn(ax, "mean")[0] == pytest.approx(to_plane(p.mean(0)))
    assert not any("entropy" in line.get_label() for line in ax.lines)


@pytest.mark.parametrize("p", [[[0.2, 0.3, 0.5]] * 3, [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]], ids=["point", "segment"])
def test_sets_without_area_are_drawn_too(ax, p) -> None:
    simplex(ax, credro.Box.of(np.array(p)), probs=np.array(p))
    assert drawn(ax, "credal set") == pytest.approx(polygon(credro.Hull(np.array(p))))


def test_three_names_are_needed(ax) -> None:
    with pytest.raises(ValueError, match="names must be those of three classes, got 2"):
        simplex(ax, None, probs=members(0, 3), names=("a", "b"))
