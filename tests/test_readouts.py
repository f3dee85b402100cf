import math

import numpy as np
import pytest
import torch

import credro
from credro.credal.bounds import intersection
from credro.readouts import READOUTS, AveragedBoxReadOut, BoxReadOut, HullReadOut, MeanReadOut, NearestHullReadOut


def outputs(members=5, samples=30, classes=4, seed=0, dtype=torch.float32):
    logits = 2 * torch.randn(members, samples, classes, generator=torch.Generator().manual_seed(seed))
    return logits.softmax(-1).to(dtype)


def entropy(p):
    return -sum(float(v) * math.log(float(v)) for v in p if v > 0)


@pytest.mark.parametrize(
    ("alpha", "count"), [(0, 20), (0.2, 16), (0.4, 12), (0.6, 8), (0.8, 4), (0.9, 2), (0.95, 1), (0.99, 1)]
)
def test_nearest_hull_keeps_the_papers_counts(alpha, count):
    assert NearestHullReadOut(alpha=alpha).count(20) == count
    assert NearestHullReadOut(alpha=alpha)(outputs(20)).set.members.shape[0] == count


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.4, 0.75])
def test_nearest_hull_keeps_the_nearest_by_brute_force(alpha):
    probs = outputs(8, 25)
    prediction = NearestHullReadOut(alpha=alpha)(probs)
    values = probs.double().numpy()
    for n in range(25):
        mean = values[:, n].mean(0)
        distances = [math.dist(values[m, n], mean) for m in range(8)]
        nearest = sorted(range(8), key=lambda m: distances[m])[: NearestHullReadOut(alpha=alpha).count(8)]
        chosen = prediction.set.members[:, n].double().numpy()
        assert len(chosen) == len(nearest)
        assert {int(np.abs(values[:, n] - p).sum(-1).argmin()) for p in chosen} == set(nearest)
    torch.testing.assert_close(prediction.mean, probs.double().mean(0), atol=1e-7, rtol=0)


def test_nearest_hull_of_all_is_the_hull():
    probs = outputs(6)
    torch.testing.assert_close(NearestHullReadOut()(probs).epistemic, HullReadOut()(probs).epistemic)


def test_mean_is_mutual_information():
    probs = outputs()
    prediction = MeanReadOut()(probs)
    assert prediction.set is None
    for n in range(30):
        members = probs[:, n].double().numpy()
        total, aleatoric = entropy(members.mean(0)), np.mean([entropy(p) for p in members])
        assert float(prediction.total[n]) == pytest.approx(total, abs=1e-6)
        assert float(prediction.aleatoric[n]) == pytest.approx(aleatoric, abs=1e-6)
        assert float(prediction.epistemic[n]) == pytest.approx(total - aleatoric, abs=1e-6)
    torch.testing.assert_close(prediction.lower, probs.amin(0))
    torch.testing.assert_close(prediction.upper, probs.amax(0))


def test_box_is_the_members_minimum_and_maximum():
    probs = outputs()
    prediction = BoxReadOut()(probs)
    torch.testing.assert_close(prediction.lower, probs.double().amin(0), atol=1e-6, rtol=0)
    torch.testing.assert_close(prediction.upper, probs.double().amax(0), atol=1e-6, rtol=0)
    gap = credro.upper_entropy(prediction.set) - credro.lower_entropy(prediction.set)
    torch.testing.assert_close(prediction.epistemic, gap)
    assert torch.equal(prediction.label, prediction.mean.argmax(-1))
    assert len(prediction) == 30


def test_lower_entropy_of_the_hull_is_the_least_of_the_members():
    probs = outputs()
    least = torch.tensor([min(entropy(p) for p in probs[:, n].double()) for n in range(30)], dtype=torch.float64)
    torch.testing.assert_close(HullReadOut()(probs).aleatoric, least, atol=1e-6, rtol=0)


def test_two_classes_use_the_width():
    probs = outputs(classes=2)
    width = (probs.amax(0) - probs.amin(0))[:, 1].double()
    torch.testing.assert_close(BoxReadOut()(probs).epistemic, width, atol=1e-6, rtol=0)
    torch.testing.assert_close(BoxReadOut(measure="width")(probs).epistemic, width, atol=1e-6, rtol=0)
    gap = BoxReadOut(measure="gap")(probs)
    torch.testing.assert_close(gap.epistemic, gap.total - gap.aleatoric)
    with pytest.raises(ValueError, match="measure='width' needs two classes, got 4"):
        BoxReadOut(measure="width")(outputs())


@pytest.mark.parametrize("name", ["mean", "box", "hull", "nearest_hull"])
@pytest.mark.parametrize("classes", [2, 5])
def test_members_that_agree_leave_nothing_to_know(name, classes):
    prediction = READOUTS[name]()(outputs(1, classes=classes).expand(4, -1, -1).clone())
    assert float(prediction.epistemic.abs().max()) < 1e-6
    assert torch.equal(prediction.label, prediction.probs[0].argmax(-1))


@pytest.mark.parametrize("name", ["box", "hull", "nearest_hull"])
def test_the_mean_lies_in_the_set(name):
    prediction = READOUTS[name]()(outputs())
    assert bool(prediction.set.contains(prediction.mean).all())
    assert bool((prediction.lower <= prediction.mean + 1e-9).all())
    assert bool((prediction.mean <= prediction.upper + 1e-9).all())


def test_box_knows_least_and_uncertainty_is_never_negative():
    probs = outputs()
    box, hull, mean = (READOUTS[name]()(probs) for name in ("box", "hull", "mean"))
    assert bool((box.epistemic >= hull.epistemic - 1e-6).all())
    assert bool((hull.epistemic >= mean.epistemic - 1e-6).all())
    assert bool((mean.epistemic >= 0).all())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NearestHullReadOut(alpha=1.0), r"alpha must lie in \[0, 1\), got 1.0"),
        (lambda: NearestHullReadOut(alpha=-0.1), r"alpha must lie in \[0, 1\)"),
        (lambda: BoxReadOut(measure="area"), "measure must be one of auto, gap, width, got 'area'"),
    ],
)
def test_bad_options_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_config_names_the_readout_and_its_options():
    assert NearestHullReadOut(alpha=0.2).config() == {"kind": "nearest_hull", "alpha": 0.2}
    assert BoxReadOut().config() == {"kind": "box", "measure": "auto"}
    assert all(name == readout.kind for name, readout in READOUTS.items())


@pytest.mark.parametrize(
    ("alpha", "members", "count"), [(0.5, 1, 1), (0.5, 3, 2), (0.5, 5, 2), (0.5, 7, 4), (0.1, 5, 4), (0.3, 5, 4)]
)
def test_halves_are_rounded_to_even_as_the_published_code_does(alpha, members, count):
    """(1 - alpha) M is 0.5, 1.5, 2.5, 3.5, 4.5, 3.5 in decimals: 0.7 * 5 in floats is 3.4999999999999996."""
    assert NearestHullReadOut(alpha=alpha).count(members) == count


def bounds(members=5, samples=30, classes=4):
    """Lower and upper probabilities of every member, around its own point."""
    probs = outputs(members, samples, classes, dtype=torch.float64)
    probs /= probs.sum(-1, keepdim=True)
    return torch.stack([0.6 * probs, 0.6 * probs + 0.4], -2)


@pytest.mark.parametrize("classes", [2, 4])
def test_averaged_box_is_the_members_mean_bounds(classes):
    """0.4 more on each class leaves bounds that are reachable, so that nothing is tightened."""
    given = bounds(classes=classes)
    prediction = AveragedBoxReadOut()(given)
    lower, upper = given.numpy().mean(0).transpose(1, 0, 2)
    np.testing.assert_allclose(prediction.lower, lower, atol=1e-9)
    np.testing.assert_allclose(prediction.upper, upper, atol=1e-9)
    fraction = (1 - lower.sum(-1, keepdims=True)) / (upper - lower).sum(-1, keepdims=True)
    np.testing.assert_allclose(prediction.mean, lower + fraction * (upper - lower), atol=1e-9)


def test_two_classes_of_intervals_use_the_width_as_every_other_box_does():
    given = bounds(classes=2)
    width = (given[:, :, 1, 1] - given[:, :, 0, 1]).mean(0)
    torch.testing.assert_close(AveragedBoxReadOut()(given).epistemic, width)
    gap = AveragedBoxReadOut(measure="gap")(given)
    torch.testing.assert_close(gap.epistemic, gap.total - gap.aleatoric)
    assert not torch.allclose(gap.epistemic, width)


def test_of_intervals_a_box_takes_the_outermost_and_the_mean_their_points():
    given = bounds()
    box, mean = BoxReadOut()(given), MeanReadOut()(given)
    torch.testing.assert_close(box.lower, given[:, :, 0].amin(0))
    torch.testing.assert_close(box.upper, given[:, :, 1].amax(0))
    points = intersection(given[:, :, 0], given[:, :, 1])
    torch.testing.assert_close(mean.mean, points.mean(0))
    torch.testing.assert_close(box.mean, points.mean(0))
    assert mean.set is None


@pytest.mark.parametrize("name", ["nearest_hull", "averaged_box"])
def test_what_is_for_classes_refuses_a_regression(name):
    with pytest.raises(ValueError, match=f"read-out '{name}' is for classes, and the members do regression"):
        READOUTS[name]().regression(torch.zeros(3, 5, 2))
