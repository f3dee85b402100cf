"""The estimator against scikit-learn's own checks, and against what its parts give by hand."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import credro
from credro.data import Data
from credro.methods import make
from credro.sklearn import CredalClassifier
from credro.sklearn._rows import MOST_COPIES, WeightedLoss, copies
from credro.training.defaults import recipe_for
from credro.training.train import FitWarning

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")


def small(method: object = "credro", **settings: object) -> CredalClassifier:
    """Fast, and good enough for what is asked here."""
    return CredalClassifier(method, **{"members": 3, "epochs": 20, "lr": 0.01, "random_state": 0, **settings})


def tiny_net(n_features: int, n_classes: int, hidden: int = 16) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(n_features, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, n_classes))


@pytest.fixture(scope="module")
def wine():
    x, y = load_wine(return_X_y=True)
    return train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def fitted(wine):
    return small().fit(wine[0], wine[2])


@parametrize_with_checks([small(epochs=10, batch_size=64)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


OTHERS = [small(m, epochs=40) for m in ("de", "creens", "credro-hull", "creram", "crerl", "crebnn")]
# One check weighs a class 10 million times another: behind the BatchNorm on CreDE's logits only its bias can follow.
OTHERS += [small("crede", epochs=60, lr=0.05, early_stopping=False)]
OTHERS += [small(missing="mean"), small(calibrate=0.2), small(net=tiny_net), small("de", scale=False, epochs=60)]


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_checks_of_scikit_learn_for_other_settings(estimator, check):
    check(estimator)


def members_by_hand(model: CredalClassifier, train: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Softmax (M, N, C) of each network in double precision, on features standardised by scikit-learn."""
    x = torch.tensor(StandardScaler().fit(train).transform(x))
    with torch.no_grad():
        return np.stack(
            [net.double()(x).softmax(-1).numpy() for net in pickle.loads(pickle.dumps(model.ensemble_.nets))]
        )


def test_probabilities_and_intervals_are_those_of_the_members(wine):
    train, test = wine[0], wine[1]
    fitted = small(early_stopping=False).fit(train, wine[2])  # all rows are trained on, and temperatures are 1
    probs = members_by_hand(fitted, train, test)
    assert len(probs) == 3
    assert not np.allclose(probs[0], probs[1], atol=1e-3)
    np.testing.assert_allclose(fitted.predict_proba(test), probs.mean(0), atol=1e-5)
    np.testing.assert_allclose(fitted.predict_interval(test)[..., 0], probs.min(0), atol=1e-5)
    np.testing.assert_allclose(fitted.predict_interval(test)[..., 1], probs.max(0), atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(test), probs.mean(0).argmax(1))
    lower, upper = probs.min(0), probs.max(0)
    np.testing.assert_array_equal(fitted.predict_set(test), upper >= lower.max(1, keepdims=True))  # maximality on a box
    np.testing.assert_allclose(fitted.epistemic(test), credro.epistemic(credro.Box.of(probs)), atol=1e-4)


def test_uncertainties_of_a_deep_ensemble_are_the_entropies(wine):
    train, test, y_train, _ = wine
    model = small("de", early_stopping=False).fit(train, y_train)
    probs = members_by_hand(model, train, test)

    def entropy(p):
        return -(p * np.log(p)).sum(-1)

    np.testing.assert_allclose(model.total(test), entropy(probs.mean(0)), atol=1e-4)
    np.testing.assert_allclose(model.aleatoric(test), entropy(probs).mean(0), atol=1e-4)
    np.testing.assert_allclose(model.epistemic(test), entropy(probs.mean(0)) - entropy(probs).mean(0), atol=1e-4)
    np.testing.assert_array_equal(model.predict_set(test).sum(1), 1)
    np.testing.assert_array_equal(model.predict_set(test).argmax(1), model.predict(test))


def test_total_is_aleatoric_and_epistemic(wine, fitted):
    test = wine[1]
    np.testing.assert_allclose(fitted.total(test), fitted.aleatoric(test) + fitted.epistemic(test), atol=1e-9)


def test_intervals_of_crede_hold_its_intersection_probability(wine):
    train, test, y_train, _ = wine
    model = small("crede").fit(train, y_train)
    proba, interval = model.predict_proba(test), model.predict_interval(test)
    width = interval[..., 1] - interval[..., 0]
    part = (1 - interval[..., 0].sum(1)) / width.sum(1)  # the one fraction of the width that brings the sum to 1
    np.testing.assert_allclose(proba, interval[..., 0] + part[:, None] * width, atol=1e-6)
    assert model.score(test, wine[3]) > 0.9


@pytest.mark.parametrize(("load", "margin"), [(load_breast_cancer, 0.02), (load_digits, 0.01), (load_wine, 0.03)])
def test_default_settings_are_about_as_good_as_logistic_regression(load, margin):
    """Or better. The margin is about one standard error of the accuracy on the test half."""
    x, y = load(return_X_y=True)
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    model = CredalClassifier(random_state=0).fit(train, y_train)
    reference = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(train, y_train)
    assert model.score(test, y_test) > reference.score(test, y_test) - margin


def test_default_settings_fit_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CredalClassifier(random_state=0).fit(*load_wine(return_X_y=True))


def test_members_that_have_not_fitted_are_warned_of():
    x, y = make_classification(200, flip_y=0.5, random_state=0)
    with pytest.warns(FitWarning, match="have not fitted"):
        small(epochs=1).fit(x, y)


def test_the_same_random_state_gives_the_same_model(wine):
    train, test, y_train, _ = wine
    first, second = (small(random_state=7, epochs=3).fit(train, y_train).predict_proba(test) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = small(random_state=8, epochs=3).fit(train, y_train).predict_proba(test)
    assert not np.allclose(first, other, atol=1e-4)
    drawn = [
        small(random_state=np.random.RandomState(s), epochs=3).fit(train, y_train).predict_proba(test)
        for s in (1, 1, 2)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.allclose(drawn[0], drawn[2], atol=1e-4)


def test_an_int_is_the_seed_of_the_recipe(wine):
    train, _, y_train, _ = wine
    model = small(random_state=3).fit(train, y_train)
    other = credro.Recipe(epochs=20, batch_size=106 // 4, optimizer="adamw", lr=0.01, weight_decay=0.1, seed=3)
    assert model._recipe(len(train), 3, stops=False) == other
    assert model._recipe(len(train), 3, stops=True) == other.with_(early_stop=15, early_stop_by="calibrated")
    old = small(random_state=3, optimiser="sgd", calibrate=False)
    assert old._recipe(len(train), 3, stops=True) == other.with_(early_stop=15, optimizer="sgd")


def test_training_leaves_the_global_generators_alone(wine):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    small().fit(wine[0], wine[2])
    after = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    assert after == (torch.rand(1), np.random.rand())  # noqa: NPY002


def test_the_order_of_the_rows_does_not_matter(wine, fitted):
    train, test, y_train, _ = wine
    shuffled = np.random.default_rng(0).permutation(len(train))
    other = small().fit(train[shuffled], y_train[shuffled])
    np.testing.assert_array_equal(other.predict_proba(test), fitted.predict_proba(test))


def test_executors_and_jobs_give_the_same_predictions(wine, fitted):
    train, test, y_train, _ = wine
    for settings in ({"n_jobs": 2}, {"executor": "sequential"}, {"executor": "processes", "n_jobs": 2}):
        other = small(**settings).fit(train, y_train)
        np.testing.assert_allclose(other.predict_proba(test), fitted.predict_proba(test), atol=1e-4)


def test_a_daemonic_process_starts_no_processes(wine, fitted):
    train, test, y_train, _ = wine
    with multiprocessing.get_context("spawn").Pool(
        1, torch.set_num_threads, (1,)
    ) as pool:  # its processes are daemonic
        found = pool.apply(small(executor="processes", n_jobs=2).fit, (train, y_train))
    np.testing.assert_allclose(found.predict_proba(test), fitted.predict_proba(test), atol=1e-4)


def test_grid_search_over_method_and_options_in_two_processes(wine):
    train, test, y_train, y_test = wine
    grid = [
        {"method": ["de", "creram"], "members": np.array([2])},
        {"method": ["credro"], "method_options": [{"delta_g": d} for d in np.array([0.5, 0.8])]},
    ]
    model = small(executor="processes", n_jobs=2)  # which the search's own processes do not follow
    search = GridSearchCV(model, grid, cv=2, n_jobs=2, refit=False, error_score="raise").fit(train, y_train)
    assert len(search.cv_results_["params"]) == 4
    assert search.cv_results_["mean_test_score"].min() > 0.9
    best = small(**search.best_params_).fit(train, y_train)
    assert best.ensemble_.method.name == search.best_params_["method"]
    assert best.score(test, y_test) > 0.9
    delta = small(method_options={"delta_g": 0.8}).fit(train, y_train).records_[0].delta
    assert delta == 0.8


def test_own_networks_by_a_function(wine):
    train, test, y_train, y_test = wine
    model = clone(small(net=lambda n_features, n_classes: tiny_net(n_features, n_classes, 24)))
    assert model.fit(train, y_train).score(test, y_test) > 0.9
    assert model.ensemble_.nets[0][0].weight.shape == (24, 13)
    assert model.ensemble_.nets[0][2].weight.shape == (3, 24)
    scores = cross_val_score(model, train, y_train, cv=2, n_jobs=2)  # lambdas reach joblib's workers
    assert scores.min() > 0.8
    widths = GridSearchCV(small(epochs=5), {"net": [partial(tiny_net, hidden=h) for h in (4, 8)]}, cv=2)
    assert widths.fit(train, y_train).best_params_["net"].keywords["hidden"] in (4, 8)


def test_a_method_object_is_taken_as_it_is(wine):
    train, test, y_train, _ = wine
    by_name = small("creens", method_options={"alpha": 0.5}).fit(train, y_train)
    given = small(make("creens", alpha=0.5)).fit(train, y_train)
    np.testing.assert_array_equal(by_name.predict_interval(test), given.predict_interval(test))
    with pytest.raises(ValueError, match="method_options"):
        small(make("creens"), method_options={"alpha": 0.5}).fit(train, y_train)


def test_in_a_pipeline_with_a_data_frame_of_numbers_and_words():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 300)
    frame = pd.DataFrame({"size": rng.normal(1000, 50, 300), "colour": colour, "noise": rng.normal(size=300)})
    y = np.where((frame["size"] > 1000) ^ (colour == "red"), "yes", "no")
    columns = ColumnTransformer([("n", StandardScaler(), ["size", "noise"]), ("w", OneHotEncoder(), ["colour"])])
    model = make_pipeline(columns, small(epochs=30)).fit(frame[:200], y[:200])
    assert model.score(frame[200:], y[200:]) > 0.9  # the two matter together: no linear model can
    assert list(model.classes_) == ["no", "yes"]
    assert cross_val_score(model, frame, y, cv=2).min() > 0.8


def test_a_data_frame_keeps_its_names_and_order(wine):
    frame = load_wine(as_frame=True)
    model = small(epochs=5).fit(frame.data, frame.target)
    assert list(model.feature_names_in_) == list(frame.data.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.data[frame.data.columns[::-1]])


def test_labels_of_any_kind(wine, fitted):
    train, test, y_train, _ = wine
    names = np.array(["barolo", "grignolino", "barbera"])
    for labels in (names, names.astype(object), np.array([-3, 0, 7]), np.array([False, True])):
        codes = y_train % len(labels)
        model = small(epochs=5).fit(train, labels[codes])
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        assert set(model.predict(test)) <= set(labels)
        assert model.score(train, labels[codes]) > 0.6


@pytest.mark.parametrize("dumps", [pickle.dumps, lambda m: _joblib(m)], ids=["pickle", "joblib"])
@pytest.mark.parametrize("method", ["credro", "crede", "crebnn"])
def test_a_fitted_model_survives_being_pickled(wine, dumps, method):
    train, test, y_train, _ = wine
    model = small(method, calibrate=0.3, epochs=5).fit(train, y_train)
    assert model.ensemble_.calibrated
    data = dumps(model)
    again = pickle.loads(data) if dumps is pickle.dumps else joblib.load(io.BytesIO(data))
    np.testing.assert_array_equal(again.predict_interval(test), model.predict_interval(test))
    np.testing.assert_array_equal(again.epistemic(test), model.epistemic(test))
    assert again.records_ == model.records_


class Viewing(torch.nn.Module):
    """``view`` takes channels first only."""

    def __init__(self, shape, classes):
        super().__init__()
        self.conv = torch.nn.Conv2d(shape[0], 4, 3)
        self.head = torch.nn.Linear(4 * (shape[1] - 2) * (shape[2] - 2), classes)

    def forward(self, x):
        return self.head(self.conv(x).relu().view(len(x), -1))


@pytest.mark.parametrize("net", ["cnn", Viewing])
def test_a_pickled_model_of_images_keeps_its_memory_layout(net):
    x = np.random.default_rng(0).random((30, 3, 12, 12), dtype=np.float32)
    model = small(net=net, epochs=2).fit(x, np.arange(30) % 3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    for before, after in zip(model.ensemble_.nets, again.ensemble_.nets, strict=True):
        assert [p.stride() for p in before.parameters()] == [p.stride() for p in after.parameters()]


def _joblib(model: CredalClassifier) -> bytes:
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    return buffer.getvalue()


def test_no_folder_is_left_behind(wine, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        model = small(epochs=2).fit(wine[0], wine[2])
    assert not list(tmp_path.iterdir())
    assert model.ensemble_.run is None


def test_a_run_that_is_kept_predicts_from_the_features_as_they_are(wine, tmp_path):
    train, test, y_train, _ = wine
    model = small(out=tmp_path / "run").fit(train, y_train)
    loaded = credro.load(tmp_path / "run").predict(test.astype(np.float32))
    np.testing.assert_allclose(loaded.mean, model.predict_proba(test), atol=1e-5)
    began = (tmp_path / "run" / "members" / "00" / "done.json").stat().st_mtime_ns
    small(out=tmp_path / "run").fit(train, y_train)  # already trained: nothing to do
    assert (tmp_path / "run" / "members" / "00" / "done.json").stat().st_mtime_ns == began
    with pytest.raises(RuntimeError, match="another configuration"):
        small(out=tmp_path / "run", epochs=3).fit(train, y_train)


@pytest.mark.parametrize("method", ["crewra", "crede"])
def test_class_weights_raise_the_recall_of_a_rare_class(method):
    x, y = make_classification(1200, 6, weights=[0.95], n_informative=3, class_sep=0.7, flip_y=0.02, random_state=1)
    train, test, y_train, y_test = train_test_split(x, y, random_state=0, stratify=y)

    def recall(**settings):
        model = small(method, epochs=10, lr=0.003, **settings).fit(train, y_train)
        return recall_score(y_test, model.predict(test))

    plain, balanced = recall(), recall(class_weight="balanced")
    assert balanced > plain + 0.2
    rate = (y_train == 1).mean()
    assert recall(class_weight={0: 0.5 / (1 - rate), 1: 0.5 / rate}) == balanced  # what "balanced" stands for


def test_the_weighted_loss_is_the_weight_times_the_loss():
    logits, target = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 1, 0])
    by_hand = -logits.softmax(-1).log()[range(5), target] * torch.tensor([1.0, 2.0, 5.0])[target]
    torch.testing.assert_close(WeightedLoss((1.0, 2.0, 5.0))(logits, target), by_hand)


def test_equal_class_weights_are_none_for_every_head(wine):
    """CreDE's interval loss with a loss of the user's own in it is the published one where that is cross-entropy."""
    train, test, y_train, _ = wine
    for method in ("credro", "crede"):  # by SGD: Adam makes steps of gradients that are rounding alone
        model = small(method, epochs=3, optimizer="sgd")
        plain, even = (clone(model).set_params(class_weight=w).fit(train, y_train) for w in (None, {0: 2, 1: 2, 2: 2}))
        np.testing.assert_allclose(even.predict_interval(test), plain.predict_interval(test), atol=1e-4)


def test_whole_weights_are_repetitions(wine):
    train, test, y_train, _ = wine
    weights = np.random.default_rng(0).integers(0, 4, len(train))
    weighted = small(epochs=5).fit(train, y_train, sample_weight=weights * 0.5)  # only proportions matter
    repeated = small(epochs=5).fit(train.repeat(weights, 0), y_train.repeat(weights))
    np.testing.assert_array_equal(weighted.predict_proba(test), repeated.predict_proba(test))


def test_copies_follow_the_weights():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(copies(np.array([2.0, 4, 6, 2]), 0), [1, 2, 3, 1])
    np.testing.assert_array_equal(copies(np.full(7, 0.1), 0), 1)
    weights = rng.exponential(size=50)
    wanted = weights * MOST_COPIES / weights.mean()
    found = np.stack([copies(weights, seed) for seed in range(500)])
    assert (found >= np.floor(wanted)).all()
    assert (found <= np.ceil(wanted)).all()
    np.testing.assert_allclose(found.mean(0), wanted, atol=0.12)  # five standard errors of a rounding
    assert set(found.sum(1)) <= {200, 201}


def test_missing_values(wine):
    train, _, y_train, _ = wine
    holes = np.random.default_rng(0).random(train.shape) < 0.1
    train = np.where(holes, np.nan, train)
    with pytest.raises(ValueError, match=r"Input X contains NaN: .*missing='mean'"):
        small().fit(train, y_train)
    model = small(missing="mean", early_stopping=False).fit(train, y_train)
    at_mean = np.where(np.isnan(train), np.nanmean(train, 0), train)
    np.testing.assert_allclose(model.predict_proba(train), model.predict_proba(at_mean), atol=1e-4)
    assert model.score(train, y_train) > 0.9
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 13), np.inf))
    for rows in (train.tolist(), pd.DataFrame(train), sp.csr_matrix(train)):  # by what X holds, in every form
        with pytest.raises(ValueError, match="missing='mean'"):
            small().fit(rows, y_train)


def test_features_are_standardised_whatever_their_size(wine):
    train, test, y_train, _ = wine
    change = np.logspace(-6, 6, 13)
    model = small(epochs=1, early_stopping=False).fit(train * change, y_train)
    ours = model.ensemble_.inputs(torch.tensor(test * change, dtype=torch.float32))
    np.testing.assert_allclose(ours, StandardScaler().fit(train).transform(test), atol=1e-4)
    constant = np.column_stack([train, np.full(len(train), 0.1), np.full(len(train), 1e7)])
    model = small(epochs=1).fit(constant, y_train)
    ours = model.ensemble_.inputs(torch.tensor(constant, dtype=torch.float32))
    np.testing.assert_allclose(ours[:, -2:], 0, atol=1e-6)


def test_abstaining(wine, fitted):
    test = wine[1]
    assert not fitted.abstains(test).any()
    limit = float(np.median(fitted.epistemic(test)))
    model = small(max_epistemic=limit).fit(wine[0], wine[2])
    np.testing.assert_array_equal(model.abstains(test), model.epistemic(test) >= limit)
    assert len(model.predict(test)) == len(test)  # labels all the same


def test_the_chosen_threshold_holds_its_error_on_fresh_data():
    x, y = make_classification(6000, 8, n_informative=4, n_classes=3, n_clusters_per_class=1, flip_y=0, random_state=0)
    y = np.array(["a", "b", "c"])[y]
    model = small(epochs=15).fit(x[:600], y[:600])
    assert (model.predict(x[2000:]) != y[2000:]).mean() > 0.03  # without abstention the error is larger
    found = model.choose_threshold(x[600:2000], y[600:2000], max_error=0.03)
    assert found.found
    assert model.max_epistemic_ == found.threshold
    answered = ~model.abstains(x[2000:])
    assert answered.mean() > 0.5
    error = (model.predict(x[2000:]) != y[2000:])[answered].mean()
    assert error <= 0.03  # holds with 95 % confidence over the draw of the held-out rows
    assert not model.choose_threshold(x[600:620], y[600:620]).found  # too few to show anything
    assert model.abstains(x[2000:]).all()
    with pytest.raises(ValueError, match="one label per row"):
        model.choose_threshold(x[:5], y[:4])


def test_copies_of_a_row_do_not_help_calibration():
    """Labels that say nothing can be memorised, but not predicted: the temperature must see that."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 20)).repeat(3, 0), rng.integers(0, 2, 100).repeat(3)
    model = small("de", calibrate=0.3, epochs=40).fit(x, y)
    assert min(model.ensemble_.temperatures) > 2


def test_calibration_takes_rows_of_its_own(wine):
    train, _, y_train, _ = wine
    model = small(calibrate=0.3).fit(train, y_train)
    assert all(t != 1 for t in model.ensemble_.temperatures)
    # The means that features are scaled by are those of the other 70 %.
    assert not np.allclose(model.ensemble_.inputs.mean, train.mean(0), rtol=1e-4)
    np.testing.assert_allclose(model.ensemble_.inputs.mean, train.mean(0), rtol=0.15)


@pytest.mark.parametrize("kind", ["bytes", "floats", "grey"])
def test_images(kind):
    digits = load_digits()
    x, y = digits.images[:400], digits.target[:400]
    x = {"bytes": (x * 15).astype(np.uint8)[:, None], "floats": x[:, None], "grey": x}[kind]
    model = small(net="cnn", epochs=6, executor="sequential").fit(x[:300], y[:300])
    assert model.score(x[300:], y[300:]) > 0.8
    assert model.ensemble_.inputs.shape == (1, 8, 8)
    with pytest.raises(ValueError, match="shape"):
        model.predict(np.concatenate([x, x], -1))
    if kind == "bytes":
        with pytest.raises(ValueError, match="uint8"):
            model.predict(x / 255)


def test_tables_have_two_dimensions():
    with pytest.raises(ValueError, match="dim 3"):
        small().fit(np.zeros((4, 2, 2)), [0, 1, 0, 1])


def test_own_network_for_images_gets_their_shape():
    seen = []

    def net(shape, n_classes):
        seen.append((shape, n_classes))
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, n_classes))

    small(net=net, epochs=1).fit(np.random.default_rng(0).random((20, 1, 4, 4)), [0, 1] * 10)
    assert set(seen) == {((1, 4, 4), 2)}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "nothing"}, "method must be one of"),
        ({"method_options": {"deltas": 1}}, "has no option 'deltas'"),
        ({"method_options": {"start": "biassed"}}, "start must be one of fresh, biased"),
        ({"net": "nothing"}, "name must be one of"),
        ({"members": 0}, "members must be at least 1"),
        ({"epochs": 0}, "epochs must be"),
        ({"lr": -1.0}, "lr must be positive"),
        ({"optimizer": "lbfgs"}, "optimizer must be one of"),
        ({"optimiser": "lbfgs"}, "optimizer must be one of"),
        ({"decision_rule": "nothing"}, "decision_rule must be one of"),
        ({"executor": "nothing"}, "executor must be one of"),
        ({"calibrate": 1.5}, "calibrate must be False or"),
        ({"calibrate": True}, "calibrate must be False or"),
        ({"calibrate": "yes"}, "calibrate must be False or"),
        ({"early_stopping": "yes"}, "early_stopping must be True, False or 'auto'"),
        ({"early_stopping": True}, "No samples are held out to stop by: there are 4.*early_stopping='auto'"),
        ({"validation_fraction": 0}, "validation_fraction must lie in"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be a whole number"),
        ({"recipe_options": {"early_stop": 3}}, "set early_stopping and n_iter_no_change"),
        ({"missing": "drop"}, "missing must be"),
        ({"missing": "mean", "scale": False}, "needs scale=True"),
        ({"class_weight": "even"}, "class_weight"),
    ],
)
def test_errors_name_the_argument(settings, words):
    with pytest.raises(ValueError, match=words):
        small(**settings).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])


def test_progress_only_when_asked(wine, capfd):
    small(epochs=1).fit(wine[0], wine[2])
    assert capfd.readouterr() == ("", "")
    small(epochs=1, verbose=1).fit(wine[0], wine[2])
    assert "member 2: epoch 1/1" in capfd.readouterr().err


def test_numbers_of_numpy_are_welcome(wine):
    settings = {"members": np.int64(2), "epochs": np.int64(1), "batch_size": np.int32(8), "lr": np.float32(0.01)}
    assert len(small(**settings).fit(wine[0], wine[2]).ensemble_) == 2


@pytest.mark.parametrize("rows", [20, 100, 1000, 3000, 10_000])
def test_defaults_are_those_that_training_takes_for_tables(rows):
    data = Data("rows", torch.zeros(rows, 3), torch.arange(rows) % 2, (3,), ("a", "b"))
    wanted, model = recipe_for(data), CredalClassifier()
    found = model._recipe(rows, 0, stops=True)
    for name in ("optimizer", "lr", "weight_decay", "batch_size", "early_stop_by"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert (found.epochs, found.early_stop, found.lr, found.weight_decay) == (60, 15, 1e-3, 0.1)
