"""Names, slices and the columns of predictions, against what NumPy and SciPy make of the members' probabilities."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import entropy, norm

import credro
from credro.data import Data
from credro.prediction import GaussianPrediction, Prediction, prediction_columns
from credro.readouts import READOUTS
from tests.training.common import blobs, small_net, trained

CLASSES = ("cat", "dog", "a, b", "<script>")
FILES = tuple(f"photos/{i:02d}.jpg" for i in range(12))


def members(count=5, samples=12, classes=4, seed=0):
    logits = 2 * torch.randn(count, samples, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    return logits.softmax(-1)


def made(readout="box", **names):
    probs = members()
    if readout == "averaged_box":
        probs = torch.stack([0.6 * probs, 0.6 * probs + 0.4], -2)
    found = READOUTS[readout]()(probs)
    return Prediction(found.probs, found.mean, found.set, found.measure, **{"classes": CLASSES, **names})


def gaussians(credal=True, **names):
    draw = torch.Generator().manual_seed(3)
    outputs = torch.randn(4, 12, 2, generator=draw, dtype=torch.double)
    found = GaussianPrediction.of(outputs, credal)
    return GaussianPrediction(found.means, found.stds, found.set, **names)


def values(prediction):
    """All that can be asked of a prediction."""
    if isinstance(prediction, GaussianPrediction):
        ends = prediction.interval(0.8)
        return [prediction.mean, prediction.std, prediction.epistemic, prediction.aleatoric, prediction.total, *ends]
    bounds = [prediction.lower, prediction.upper, prediction.possible]
    return [prediction.mean, prediction.label, prediction.epistemic, prediction.aleatoric, prediction.total, *bounds]


MAKERS = {name: (lambda name=name: made(name, samples=FILES)) for name in READOUTS}
MAKERS |= {"gaussians": lambda: gaussians(samples=FILES)}
MAKERS |= {"gaussians without a set": lambda: gaussians(False, samples=FILES)}
MASK = np.arange(12) % 3 == 0
INDICES = {
    "one": (5, [5]),
    "from the end": (-1, [11]),
    "slice": (slice(2, 9, 3), [2, 5, 8]),
    "backwards": (slice(None, None, -1), list(range(11, -1, -1))),
    "nothing": (slice(0, 0), []),
    "empty list": ([], []),
    "mask": (MASK, [0, 3, 6, 9]),
    "mask tensor": (torch.from_numpy(MASK), [0, 3, 6, 9]),
    "mask series": (pd.Series(MASK), [0, 3, 6, 9]),
    "mask list": (MASK.tolist(), [0, 3, 6, 9]),
    "numbers": ([7, 1, 1], [7, 1, 1]),
    "order": (torch.arange(11, -1, -1), list(range(11, -1, -1))),
}


@pytest.mark.parametrize("computed", [True, False])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("index", INDICES)
def test_a_slice_is_the_prediction_of_those_samples(kind, index, computed):
    whole = MAKERS[kind]()
    expected = values(MAKERS[kind]())
    if computed:
        values(whole)
    given, chosen = INDICES[index]
    part = whole[given]
    assert type(part) is type(whole)
    assert len(part) == len(chosen)
    assert part.samples == tuple(FILES[i] for i in chosen)
    assert getattr(part, "classes", ()) == getattr(whole, "classes", ())
    for got, want in zip(values(part), expected, strict=True):
        torch.testing.assert_close(got, want[chosen], rtol=1e-9, atol=1e-9)


def test_what_was_computed_is_not_computed_again(monkeypatch):
    whole = made()
    wanted = whole.epistemic[3:5]
    monkeypatch.setattr(credro.prediction.classes, "total", lambda _: pytest.fail("computed again"))
    assert torch.equal(whole[3:5].epistemic, wanted)


def test_sample_numbers_follow_a_slice_of_a_slice():
    part = made()[2:][torch.tensor([0, 4])]
    assert part.samples == (2, 6)
    assert list(part.to_frame().index) == [2, 6]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (12, "sample 12 is out of range: there are 12, numbered from 0"),
        ([0, -13], "sample -13 is out of range"),
        (np.ones(11, bool), r"one entry for each of 12 samples, got shape \(11,\)"),
        (np.ones((12, 4), bool), r"got shape \(12, 4\)"),
        (1.5, "chosen by numbers, a slice or a mask"),
        (True, r"one entry for each of 12 samples, got shape \(\)"),
    ],
)
def test_what_cannot_be_chosen_is_said(index, words):
    with pytest.raises(IndexError, match=words):
        made()[index]
    with pytest.raises(IndexError, match=words):
        gaussians()[index]


def test_samples_one_by_one():
    assert [p.samples[0] for p in made(samples=FILES)] == list(FILES)


def test_names_are_those_of_the_labels():
    wanted = members().mean(0).argmax(-1).tolist()
    assert made().names == [CLASSES[k] for k in wanted]
    assert made(classes=()).names == [str(k) for k in wanted]


def test_repr_is_a_line_without_tensors():
    probs = members().numpy()
    eu = float(np.mean(credro.epistemic(credro.Box.of(probs))))
    assert repr(made(method="credro")) == f"Prediction(12 samples, 4 classes, credro (box); mean EU {eu:.3g})"
    assert repr(made("mean")[0]).startswith("Prediction(1 sample, 4 classes, no credal set; mean EU ")
    assert repr(made()[:0]) == "Prediction(0 samples, 4 classes, box)"
    assert repr(gaussians(method="de")).startswith(
        "GaussianPrediction(12 samples, 4 Gaussians each, de (mixtures); mean"
    )


def test_a_large_prediction_is_shown_without_computing_it(monkeypatch):
    monkeypatch.setattr(credro.prediction.classes, "total", lambda _: pytest.fail("computed"))
    probs = members(2, 6000)
    assert repr(READOUTS["hull"]()(probs)) == "Prediction(6,000 samples, 4 classes, hull)"


def test_predictions_pickle():
    again = pickle.loads(pickle.dumps(made(samples=FILES)))
    pd.testing.assert_frame_equal(again.to_frame(), made(samples=FILES).to_frame())


@pytest.mark.parametrize("names", [{"classes": ("a", "b")}, {"samples": FILES[:5]}])
def test_names_must_be_as_many_as_what_they_name(names):
    with pytest.raises(ValueError, match=r"must be (4|12) names, or none, got (2|5)"):
        made(**names)


def test_frame_of_a_box_against_numpy():
    probs = members().numpy()
    frame = made(samples=FILES).to_frame()
    assert list(frame.index) == list(FILES)
    assert frame.index.name == "sample"
    mean, low, high = probs.mean(0), probs.min(0), probs.max(0)
    each = [f"{kind}:{name}" for name in CLASSES for kind in ("p", "lower", "upper")]
    assert list(frame.columns) == ["label", "probability", "lower", "upper", "eu", "au", "tu", "possible", *each]
    for k, name in enumerate(CLASSES):
        np.testing.assert_allclose(frame[f"p:{name}"], mean[:, k], atol=1e-12)
        np.testing.assert_allclose(frame[f"lower:{name}"], low[:, k], atol=1e-12)
        np.testing.assert_allclose(frame[f"upper:{name}"], high[:, k], atol=1e-12)
    rows, top = np.arange(12), mean.argmax(1)
    assert list(frame["label"]) == [CLASSES[k] for k in top]
    np.testing.assert_allclose(frame["probability"], mean[rows, top], atol=1e-12)
    np.testing.assert_allclose(frame["lower"], low[rows, top], atol=1e-12)
    np.testing.assert_allclose(frame["upper"], high[rows, top], atol=1e-12)
    np.testing.assert_allclose(frame["eu"], frame["tu"] - frame["au"], atol=1e-9)
    np.testing.assert_allclose(frame["tu"], credro.upper_entropy(credro.Box.of(probs)), atol=1e-9)
    remain = credro.decide(credro.Box.of(probs))
    assert list(frame["possible"]) == [[CLASSES[k] for k in row.nonzero()[0]] for row in remain]


def test_frame_without_a_set_against_scipy():
    probs = members().numpy()
    frame = made("mean").to_frame("short")
    assert list(frame.columns) == ["label", "probability", "lower", "upper", "eu", "au", "tu", "possible"]
    assert list(frame.index) == list(range(12))
    np.testing.assert_allclose(frame["tu"], entropy(probs.mean(0), axis=-1), atol=1e-9)
    np.testing.assert_allclose(frame["au"], entropy(probs, axis=-1).mean(0), atol=1e-9)
    np.testing.assert_allclose(frame["eu"], frame["tu"] - frame["au"], atol=1e-9)
    assert [[label] for label in frame["label"]] == list(frame["possible"])


def test_two_classes_of_one_name_are_told_apart():
    columns = prediction_columns(made(classes=("a", "b", "a", "c")))
    assert [c for c in columns if c.startswith("p:")] == ["p:a#0", "p:b#1", "p:a#2", "p:c#3"]
    np.testing.assert_allclose(columns["p:a#2"], members().numpy().mean(0)[:, 2], atol=1e-12)


def test_columns_are_plain_values():
    columns = prediction_columns(made(samples=FILES), all=False)
    assert columns["sample"] == list(FILES)
    kinds = {name: {type(v) for v in column} for name, column in columns.items()}
    assert kinds["label"] == {str}
    assert kinds["possible"] == {list}
    assert all(kinds[name] == {float} for name in ("probability", "lower", "upper", "eu", "au", "tu"))


def test_frame_of_a_regression_against_numpy_and_scipy():
    prediction = gaussians(samples=FILES)
    means, stds = prediction.means.numpy(), prediction.stds.numpy()
    frame = prediction.to_frame()
    each = [f"{kind}:{i}" for i in range(4) for kind in ("mean", "std")]
    assert list(frame.columns) == ["mean", "std", "lower", "upper", "eu", "au", "tu", *each]
    assert list(prediction.to_frame("short").columns) == ["mean", "std", "lower", "upper", "eu", "au", "tu"]
    np.testing.assert_allclose(frame["mean"], means.mean(0))
    np.testing.assert_allclose(frame["std"], np.sqrt((stds**2).mean(0) + means.var(0)))
    np.testing.assert_allclose(frame["lower"], norm.ppf(0.05, means, stds).min(0))
    np.testing.assert_allclose(frame["upper"], norm.ppf(0.95, means, stds).max(0))
    np.testing.assert_allclose(frame["au"], (stds**2).min(0))
    np.testing.assert_allclose(frame["eu"], frame["tu"] - frame["au"])
    np.testing.assert_allclose(frame["std:2"], stds[2])
    without = gaussians(False).to_frame()
    np.testing.assert_allclose(without["eu"], means.var(0), atol=1e-12)


def test_bad_columns_and_a_missing_pandas_are_said(monkeypatch):
    with pytest.raises(ValueError, match="columns must be 'all' or 'short', got 'some'"):
        made().to_frame("some")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pandas is needed here: pip install 'credro\[data\]'"):
        made().to_frame()
    assert len(prediction_columns(made())["label"]) == 12


def test_an_ensemble_fills_in_names():
    x, y = blobs(30)
    data = Data("own", x, y, (6,), ("low", "mid", "<high>"), prepared=True)
    ensemble = trained(small_net, data)
    named = Data("own", x, y, (6,), paths=tuple(Path(f"in/{i}.png") for i in range(30)), prepared=True)
    prediction = ensemble.predict(named, cache=False)
    assert prediction.classes == ("low", "mid", "<high>")
    assert prediction.samples[3] == str(Path("in/3.png"))
    assert prediction.method == "credro"
    assert ensemble.predict(x).samples == ()
    rows = pd.DataFrame(x.numpy(), index=[f"row {i}" for i in range(30)])
    frame = ensemble.predict(rows[10:20]).to_frame()
    assert list(frame.index) == list(rows.index[10:20])
    np.testing.assert_allclose(frame["p:<high>"], ensemble.predict(x).mean[10:20, 2], rtol=1e-4, atol=1e-6)
