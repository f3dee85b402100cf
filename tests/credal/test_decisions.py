"""Decisions against linear programmes over the set, written as the rules are defined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from credro.credal import games
from credro.credal.decisions import RULES, SCORES, decide, label, max_entropy_point
from credro.credal.entropy import InexactWarning
from credro.credal.sets import Box, Hull
from tests.credal.strategies import boxes, ensembles

SETS = ("interval_dominance", "maximality", "e_admissibility")
many = settings(max_examples=100, deadline=None)
CLEAR = 1e-7
"""How far from 0 a linear programme's value must be for its sign to be trusted."""


class Polytope:
    """A set of distributions ``{B x : x >= lo, x <= hi, sum x = 1}``: a box (B = identity) or a hull (x = weights)."""

    def __init__(self, B, lo, hi):
        self.B, self.lo, self.hi = B, lo, hi

    def smallest(self, c):
        """min c.p over the set."""
        n = self.B.shape[1]
        result = linprog(c @ self.B, A_eq=np.ones((1, n)), b_eq=[1], bounds=np.c_[self.lo, self.hi])
        assert result.success
        return result.fun

    def lead(self, k):
        """max over the set of min_j (p_k - p_j), j != k: how clearly k can be made most probable."""
        C, n = self.B.shape
        rows = np.stack([self.B[k] - self.B[j] for j in range(C) if j != k])
        result = linprog(
            np.r_[np.zeros(n), -1],
            A_ub=np.c_[-rows, np.ones(C - 1)],
            b_ub=np.zeros(C - 1),
            A_eq=np.r_[np.ones(n), 0][None],
            b_eq=[1],
            bounds=[*zip(self.lo, self.hi, strict=True), (None, None)],
        )
        assert result.success
        return -result.fun


def box_polytope(lower, upper):
    return Polytope(np.eye(len(lower)), lower, upper)


def hull_polytope(members):
    M = len(members)
    return Polytope(members.T, np.zeros(M), np.ones(M))


def margins(polytope, rule):
    """For each class a number that is at least 0 if and only if the rule keeps it."""
    C = polytope.B.shape[0]
    e = np.eye(C)
    others = [[j for j in range(C) if j != k] for k in range(C)]
    if rule == "interval_dominance":
        low = [polytope.smallest(e[k]) for k in range(C)]
        return [-polytope.smallest(-e[k]) - max(low[j] for j in others[k]) for k in range(C)]
    if rule == "maximality":
        return [-max(polytope.smallest(e[j] - e[k]) for j in others[k]) for k in range(C)]
    if rule == "e_admissibility":
        return [polytope.lead(k) for k in range(C)]
    sign = 1 if rule == "gamma_maximin" else -1
    score = np.array([sign * polytope.smallest(sign * e[k]) for k in range(C)])
    return score - score.max()


def agrees(kept, polytope, rule, *, ties=CLEAR):
    """``kept`` (C,) against the linear programmes: margins above ``ties`` keep a class, those below -CLEAR do not."""
    for k, margin in enumerate(margins(polytope, rule)):
        if margin > ties:
            assert kept[k], (rule, k, margin)
        elif margin < -CLEAR:
            assert not kept[k], (rule, k, margin)


def ensemble(seed, M, N, C):
    """Members that agree in part: several classes are in the running, and not all of them at once."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.standard_normal((1, N, C)) + rng.standard_normal((M, N, C))
    p = np.exp(logits)
    return p / p.sum(-1, keepdims=True)


# --- against linear programmes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("M", "C"), [(2, 3), (4, 4), (6, 5), (3, 7)])
def test_decisions_agree_with_linear_programmes(M, C, rule):
    probs = ensemble(10 * M + C, M, 8, C)
    box = Box.of(probs)
    by_box, by_hull = decide(box, rule), decide(Hull(probs), rule)
    for n in range(probs.shape[1]):
        agrees(by_box[n], box_polytope(box.lower[n], box.upper[n]), rule)
        agrees(by_hull[n], hull_polytope(probs[:, n]), rule)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=20, deadline=None)
@given(bounds=boxes(min_classes=2, max_classes=5, max_samples=2))
def test_loose_boxes_agree_with_linear_programmes(rule, bounds):
    box = Box(*bounds)
    for kept, lower, upper in zip(decide(box, rule), box.lower, box.upper, strict=True):
        agrees(kept, box_polytope(lower, upper), rule)


@pytest.mark.parametrize("rule", RULES)
def test_ties_on_a_grid_keep_every_tied_class(rule):
    """Eighths: a margin this close to 0 is 0, and then the class must remain."""
    probs = np.random.default_rng(3).multinomial(8, np.full(3, 1 / 3), (3, 25)) / 8
    box = Box.of(probs)
    by_box, by_hull = decide(box, rule), decide(Hull(probs), rule)
    for n in range(probs.shape[1]):
        agrees(by_box[n], box_polytope(box.lower[n], box.upper[n]), rule, ties=-1e-9)
        agrees(by_hull[n], hull_polytope(probs[:, n]), rule, ties=-1e-9)


@pytest.mark.parametrize("make", [Box.of, Hull])
@pytest.mark.parametrize("rule", SETS)
def test_a_class_that_leads_at_a_corner_remains(make, rule):
    probs = ensemble(4, 4, 20, 5)
    for kept, vertices in zip(decide(make(probs), rule), make(probs).vertices(), strict=True):
        assert kept[vertices.argmax(-1)].all()


def test_the_three_rules_differ_where_they_should():
    # No member favours class 2, but their mixture at equal weights does.
    members = np.array([[0.55, 0.05, 0.40], [0.05, 0.55, 0.40]])[:, None]
    assert decide(Hull(members), "e_admissibility").tolist() == [[True, True, True]]
    # Neither does any mixture here, yet neither of the others beats it under both members.
    members = np.array([[0.70, 0.0, 0.30], [0.0, 0.70, 0.30]])[:, None]
    assert decide(Hull(members), "e_admissibility").tolist() == [[True, True, False]]
    assert decide(Hull(members), "maximality").tolist() == [[True, True, True]]
    # Class 1 is behind class 0 in both members, though their intervals overlap.
    members = np.array([[0.5, 0.4, 0.1], [0.35, 0.3, 0.35]])[:, None]
    assert decide(Hull(members), "maximality").tolist() == [[True, False, True]]
    assert decide(Hull(members), "interval_dominance").tolist() == [[True, True, True]]
    # A box where class 2's interval reaches class 0's, but never everyone's at once.
    box = Box([[0.3, 0.3, 0.0]], [[0.7, 0.7, 0.32]])
    assert decide(box, "maximality").tolist() == [[True, True, True]]
    assert decide(box, "e_admissibility").tolist() == [[True, True, False]]


# --- properties ------------------------------------------------------------------------------------------------------


@many
@given(ensembles())
def test_stricter_rules_and_smaller_sets_keep_fewer_classes_but_never_none(probs):
    box, hull = Box.of(probs), Hull(probs)
    for credal_set in (box, hull):
        dominance, maximal, admissible = (decide(credal_set, rule) for rule in SETS)
        assert (admissible <= maximal).all()
        assert (maximal <= dominance).all()
        assert admissible.any(-1).all()
        assert (decide(credal_set, "gamma_maximin") <= maximal).all()
        assert (decide(credal_set, "gamma_maximax") <= admissible).all()
    for rule in RULES:
        assert (decide(hull, rule) <= decide(box, rule)).all()
        assert decide(hull, rule).any(-1).all()


@many
@given(boxes())
def test_order_of_the_rules_on_loose_boxes(bounds):
    box = Box(*bounds)
    dominance, maximal, admissible = (decide(box, rule) for rule in SETS)
    assert (admissible <= maximal).all()
    assert (maximal <= dominance).all()
    assert admissible.any(-1).all()
    for rule in RULES:
        assert (decide(box, rule) == decide(box.tighten(), rule)).all()


@many
@given(ensembles(), st.sampled_from(sorted(RULES)), st.integers(0, 99))
def test_classes_and_members_may_be_renumbered(probs, rule, seed):
    rng = np.random.default_rng(seed)
    classes, members = rng.permutation(probs.shape[-1]), rng.permutation(len(probs))
    for make in (Box.of, Hull):
        assert (decide(make(probs[members][..., classes]), rule) == decide(make(probs), rule)[..., classes]).all()


@many
@given(ensembles(max_members=1), st.sampled_from(sorted(RULES)))
def test_one_member_leaves_its_most_probable_classes(probs, rule):
    expected = probs[0] >= probs[0].max(-1, keepdims=True) - 1e-12
    for make in (Box.of, Hull):
        assert (decide(make(probs), rule) == expected).all()


@many
@given(ensembles(min_classes=2, max_classes=2), st.sampled_from(SETS))
def test_with_two_classes_a_hull_is_a_box_and_all_set_rules_agree(probs, rule):
    expected = (probs >= 0.5 - 1e-12).any(0)
    for make in (Box.of, Hull):
        kept = decide(make(probs), rule)
        assert (kept == expected).all() or (abs(probs - 0.5).min() < 1e-11)  # twice the tolerance at the middle


# --- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Box.of, Hull])
@pytest.mark.parametrize("rule", RULES)
def test_kinds_shapes_and_degenerate_sets(make, rule):
    probs = ensemble(5, 4, 10, 3).reshape(4, 2, 5, 3).astype(np.float32)
    kept, tensor = decide(make(probs), rule), decide(make(torch.from_numpy(probs)), rule)
    assert isinstance(kept, np.ndarray)
    assert kept.dtype == bool
    assert kept.shape == (2, 5, 3)
    assert isinstance(tensor, torch.Tensor)
    assert (tensor.numpy() == kept).all()
    assert (decide(make(probs[:, 0, 0]), rule) == kept[0, 0]).all()
    assert decide(make(probs[:, :, :0]), rule).shape == (2, 0, 3)
    assert decide(make(np.ones((2, 3, 1))), rule).all()
    everything = decide(make(np.eye(3)[:, None]), rule)  # one-hot members, one for each class: nothing is known
    assert everything.all()
    same = np.repeat(probs[:1, :, :, ::-1], 3, 0)
    assert (decide(make(same.copy()), rule) == (same[0] == same[0].max(-1, keepdims=True))).all()


def test_no_gradient_is_asked_for():
    probs = torch.from_numpy(ensemble(6, 3, 4, 4)).requires_grad_()
    for make in (Box.of, Hull):
        assert not decide(make(probs), "e_admissibility").requires_grad


def test_wrong_arguments_are_named():
    box = Box.of(ensemble(7, 2, 1, 3))
    with pytest.raises(ValueError, match="rule must be one of interval_dominance, maximality"):
        decide(box, "maximal")
    with pytest.raises(ValueError, match="tol must be at least 0, got -1"):
        decide(box, tol=-1)
    with pytest.raises(ValueError, match="by must be one of mean, intersection"):
        label(box, "median")


def test_tolerance_keeps_what_is_that_close():
    probs = np.array([[[0.5 + 1e-6, 0.5 - 1e-6]]])
    for make in (Box.of, Hull):
        for rule in RULES:
            assert decide(make(probs), rule).tolist() == [[True, False]]
            assert decide(make(probs), rule, tol=1e-5).tolist() == [[True, True]]


def test_games_left_open_are_reported(monkeypatch):
    monkeypatch.setattr(games, "MAX_PIVOTS", 0)
    members = np.array([[0.55, 0.05, 0.40], [0.05, 0.55, 0.40]])[:, None]  # only a mixture makes class 2 lead
    with pytest.warns(InexactWarning, match="1 classes were kept without a proof"):
        kept = decide(Hull(members), "e_admissibility")
    assert kept.all()


def test_many_classes_and_many_samples():
    probs = ensemble(8, 5, 400, 60)
    box, hull = decide(Box.of(probs), "e_admissibility"), decide(Hull(probs), "e_admissibility")
    assert (hull <= box).all()
    leaders = np.zeros_like(hull)
    np.put_along_axis(leaders, probs.argmax(-1).T, True, -1)
    assert (leaders <= hull).all()
    more = (hull & ~leaders).nonzero()
    assert len(more[0]) > 5  # only a mixture makes these lead: the linear programmes were needed
    for n, k in list(zip(*more, strict=True))[:20]:
        assert hull_polytope(probs[:, n]).lead(k) > -1e-9


# --- point predictions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Box.of, Hull])
def test_max_entropy_point_against_a_convex_solver(make):
    probs = ensemble(9, 3, 5, 4)
    credal_set = make(probs)
    points = max_entropy_point(credal_set)
    assert credal_set.contains(points, tol=1e-8).all()
    for n, p in enumerate(points):
        vertices = credal_set.vertices()[n]
        V = len(vertices)
        result = minimize(
            lambda w, vertices=vertices: (w @ vertices) @ np.log(w @ vertices),
            np.full(V, 1 / V),
            bounds=[(0, 1)] * V,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert np.allclose(p, result.x @ vertices, atol=1e-3)
        assert -(p @ np.log(p)) >= -result.fun - 2e-8


def test_labels():
    lower, upper = [[0.1, 0.30, 0.0]], [[0.7, 0.45, 0.4]]
    box = Box(lower, upper)
    assert label(box, "lower").tolist() == [1]
    assert label(box, "upper").tolist() == [0]
    assert label(box).tolist() == label(box, "intersection").tolist() == [0]  # 0.413, 0.378, 0.209
    assert label(box, "max_entropy").tolist() == [0]  # a third each
    probs = ensemble(11, 5, 30, 4)
    for make in (Box.of, Hull):
        assert (label(make(probs)) == probs.mean(0).argmax(-1)).all()
        assert (label(make(probs), "lower") == probs.min(0).argmax(-1)).all()
        assert (label(make(probs), "upper") == probs.max(0).argmax(-1)).all()
        for by in SCORES:
            assert label(make(probs), by).shape == (30,)
            assert isinstance(label(make(torch.from_numpy(probs)), by), torch.Tensor)
