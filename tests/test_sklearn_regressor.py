"""The regressor: scikit-learn's own checks, and that its numbers are those of the networks inside."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1, make_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import credro
from credro.sklearn import CredalRegressor


@parametrize_with_checks([CredalRegressor(members=2, epochs=12, lr=0.02, random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def small(method="credro", **settings):
    return CredalRegressor(method, **{"members": 3, "epochs": 30, "lr": 0.01, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def diabetes():
    return train_test_split(*load_diabetes(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def fitted(diabetes):
    train, _, y_train, _ = diabetes
    return small().fit(train, y_train)


def test_it_learns_what_a_linear_model_cannot():
    train, test, y_train, y_test = train_test_split(*make_friedman1(500, noise=1.0, random_state=0), random_state=0)
    model = CredalRegressor(members=3, random_state=0).fit(train, y_train)
    assert model.score(test, y_test) > LinearRegression().fit(train, y_train).score(test, y_test) + 0.1


def test_calibration_makes_intervals_hold_what_they_say():
    """Networks that have learnt 200 rows by heart are far too sure; held-out rows tell them."""
    x, y = make_friedman1(600, noise=1.0, random_state=0)
    covered = {}
    for share in (False, 0.25):
        model = small("de", epochs=60, early_stopping=False, calibrate=share).fit(x[:200], y[:200])
        ends = model.predict_interval(x[200:], 0.9)
        covered[share] = ((y[200:] >= ends[:, 0]) & (y[200:] <= ends[:, 1])).mean()
    assert covered[False] < 0.7
    assert covered[0.25] > 0.85
    again = pickle.loads(pickle.dumps(model))
    assert again.ensemble_.temperatures == model.ensemble_.temperatures != [1.0] * 3
    np.testing.assert_array_equal(again.predict_interval(x), model.predict_interval(x))


@pytest.mark.parametrize("method", ["credro", "credro-hull", "crewra", "creram", "de", "en-dro"])
def test_predictions_are_the_networks_own(diabetes, method):
    train, test, y_train, _ = diabetes
    model = small(method, epochs=3, early_stopping=False).fit(train, y_train)  # all rows are trained on
    mean, std = (
        torch.tensor(train.astype(np.float32)).double().mean(0),
        torch.tensor(train).double().std(0, correction=0),
    )
    x = (torch.tensor(test.astype(np.float32)).double() - mean) / std
    with torch.no_grad():
        outputs = torch.stack([net.double()(x) for net in pickle.loads(pickle.dumps(model)).ensemble_.nets]).numpy()
    means, variances = outputs[..., 0], np.exp(outputs[..., 1])
    point, std = model.predict(test, return_std=True)
    np.testing.assert_allclose(point, means.mean(0), rtol=1e-5)
    np.testing.assert_allclose(std**2, (variances + means**2).mean(0) - means.mean(0) ** 2, rtol=1e-3)
    if method in ("de", "en-dro"):
        np.testing.assert_allclose(model.epistemic(test), means.var(0), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(model.aleatoric(test), variances.mean(0), rtol=1e-4)
    else:
        np.testing.assert_allclose(model.aleatoric(test), variances.min(0), rtol=1e-4)
        weights = np.random.default_rng(0).dirichlet([0.5] * 3, 400)
        mixed = weights @ (variances + means**2) - (weights @ means) ** 2
        assert (model.total(test) >= mixed.max(0) * (1 - 1e-4)).all()
        assert (model.total(test) <= mixed.max(0) * 1.05).all()
    np.testing.assert_allclose(model.total(test), model.aleatoric(test) + model.epistemic(test), rtol=1e-6)


def test_the_unit_of_the_target_does_not_matter(diabetes):
    train, test, y_train, _ = diabetes
    one, other = small(epochs=5).fit(train, y_train), small(epochs=5).fit(train, 0.01 * y_train - 5)
    np.testing.assert_allclose(other.predict(test), 0.01 * one.predict(test) - 5, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.epistemic(test), 1e-4 * one.epistemic(test), rtol=0.02)


def test_intervals_hold_what_they_say_and_widen_where_there_is_no_data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (600, 1))
    y = np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=600)
    model = CredalRegressor(members=5, epochs=150, random_state=0).fit(x[:400], y[:400])
    ends = model.predict_interval(x[400:], level=0.9)
    covered = ((y[400:] >= ends[:, 0]) & (y[400:] <= ends[:, 1])).mean()
    assert covered > 0.86  # 0.9 less two standard errors of 200 rows
    far = np.array([[8.0], [-8.0]])
    assert model.epistemic(far).min() > 5 * np.median(model.epistemic(x[400:]))
    wide = model.predict_interval(far, 0.9)
    assert (wide[:, 1] - wide[:, 0]).min() > 2 * np.median(ends[:, 1] - ends[:, 0])


def test_abstaining(diabetes, fitted):
    test = diabetes[1]
    assert not fitted.abstains(test).any()
    limit = float(np.median(fitted.epistemic(test)))
    model = clone(fitted).set_params(max_epistemic=limit).fit(diabetes[0], diabetes[2])
    np.testing.assert_array_equal(model.abstains(test), model.epistemic(test) >= limit)
    assert 0.3 < model.abstains(test).mean() < 0.7


def test_pipelines_searches_and_cross_validation(diabetes):
    train, test, y_train, _ = diabetes
    pipe = make_pipeline(StandardScaler(), small(epochs=3))
    assert len(cross_val_score(pipe, train, y_train, cv=2)) == 2
    search = GridSearchCV(small(epochs=2), {"members": np.array([2, 3]), "method": ["de", "credro"]}, cv=2)
    assert search.fit(train, y_train).predict(test).shape == (len(test),)


def test_a_fitted_model_survives_being_pickled(diabetes, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_interval(diabetes[1]), fitted.predict_interval(diabetes[1]))


def own_net(features, outputs):
    return torch.nn.Linear(features, outputs)


def test_ones_own_network_is_a_linear_model_if_it_is_linear():
    x, y = make_regression(300, 4, noise=0.1, random_state=0)
    model = CredalRegressor("de", net=own_net, members=2, epochs=300, lr=0.02, weight_decay=0.0, random_state=0)
    expected = LinearRegression().fit(x, y).predict(x)
    np.testing.assert_allclose(model.fit(x, y).predict(x), expected, atol=0.02 * np.std(y))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))


def test_a_run_that_is_kept_loads_and_goes_on(diabetes, tmp_path):
    train, test, y_train, _ = diabetes
    model = small(epochs=3, out=tmp_path / "run").fit(train, y_train)
    loaded = credro.load(tmp_path / "run").predict_regression(test.astype(np.float32))
    np.testing.assert_allclose(loaded.mean, model.predict(test), rtol=1e-4)
    with pytest.raises(ValueError, match="predict real numbers, not classes: use predict_regression"):
        credro.load(tmp_path / "run").predict(test.astype(np.float32))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"method": "crede"},
            "method 'crede' is for classes; these do regression: de, crewra, en-dro, credro, credro-",
        ),
        ({"method": "creens"}, "method 'creens' is for classes"),
        ({"method": "crebnn"}, "method 'crebnn' is for classes"),
        ({"method": "crerl"}, "method 'crerl' is for classes"),
        ({"missing": "mean", "scale": False}, "missing='mean' needs scale=True"),
        ({"recipe_options": {"loss": "focal"}}, "loss='focal' is for classes"),
    ],
)
def test_wrong_settings_are_named(diabetes, settings, words):
    with pytest.raises(ValueError, match=words):
        small(**settings).fit(diabetes[0], diabetes[2])


def test_equal_targets_are_no_accident():
    x = np.random.default_rng(0).normal(size=(40, 3))
    model = small(epochs=20).fit(x, np.full(40, 7.0))
    np.testing.assert_allclose(model.predict(x), 7.0, atol=0.5)
