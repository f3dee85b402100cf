"""Sparse rows, data frames with words, parameters inside the method, and estimators inside pipelines."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (it is what makes the next import work)
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from credro.methods import make
from credro.sklearn import CredalClassifier, CredalRegressor, _inputs, prediction, uncertainty

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")


def small(method: object = "credro", **settings: object) -> CredalClassifier:
    return CredalClassifier(method, **{"members": 3, "epochs": 5, "lr": 0.01, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def wine():
    return train_test_split(*load_wine(return_X_y=True), test_size=0.4, random_state=0)


def frame_of_numbers_and_words(rows: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], rows)
    frame = pd.DataFrame({"size": rng.normal(1000, 50, rows), "colour": colour}, index=[f"r{i}" for i in range(rows)])
    return frame, np.where((frame["size"] > 1000) ^ (colour == "red"), "yes", "no")


# Parameters inside the method and the recipe.


def test_deep_parameters_list_the_methods_options_with_their_values():
    model = small(method_options={"delta_g": 0.7})
    found = model.get_params()
    assert (found["method__delta_g"], found["method__spacing"]) == (0.7, "uniform")
    assert found["recipe__augment"] == "none"
    assert not any("__" in name for name in model.get_params(deep=False))
    assert "method__alpha" in small("creens").get_params()
    assert small(make("credro", delta_g=0.6)).get_params()["method__delta_g"] == 0.6
    of_de = {name: v for name, v in small("de").get_params().items() if name.startswith("method__")}
    kinds = {"start": "fresh", "risk": "mean", "head": "softmax", "stop": "end", "readout": "mean"}
    assert of_de == {**{f"method__{what}": kind for what, kind in kinds.items()}, "method__norm": "none"}
    two = small("crerl", method_options={"readout": "nearest_hull"}).get_params()  # both have an alpha
    assert {name for name in two if "alpha" in name} == {"method__stop__alpha", "method__readout__alpha"}


def test_choices_of_the_method_are_parameters(wine):
    model = small().set_params(method__start="biased", method__norm="batch", method__bias=50.0)
    assert model.method_options == {"start": "biased", "norm": "batch", "bias": 50.0}
    by_name = model.fit(wine[0], wine[2])
    wanted = make("credro", start="biased", norm="batch", bias=50.0)
    assert by_name.ensemble_.method == wanted
    given = small(make("credro")).set_params(method__start="biased", method__bias=50.0, method__head__norm="batch")
    assert given.method.training() == wanted.training()
    np.testing.assert_array_equal(
        given.fit(wine[0], wine[2]).predict_interval(wine[1]), by_name.predict_interval(wine[1])
    )
    search = GridSearchCV(small(epochs=2), {"method__start": ["fresh", "biased"]}, cv=2, error_score="raise")
    assert search.fit(wine[0], wine[2]).best_params_["method__start"] in ("fresh", "biased")
    with pytest.raises(ValueError, match="take one of"):  # a read-out of bounds under a head that gives probabilities
        small(method_options={"readout": "averaged_box"}).fit(wine[0], wine[2])


def test_setting_a_deep_parameter_is_what_reaches_the_members(wine):
    model = small().set_params(method__delta_g=0.8, recipe__clip=0.5)
    assert model.method_options == {"delta_g": 0.8}
    assert model.recipe_options == {"clip": 0.5}
    model.fit(wine[0], wine[2])
    assert model.records_[0].delta == 0.8
    assert model.ensemble_.method.risk.delta_g == 0.8
    given = small(make("credro")).set_params(method__delta_g=0.8, recipe__clip=0.5).fit(wine[0], wine[2])
    np.testing.assert_array_equal(given.predict_interval(wine[1]), model.predict_interval(wine[1]))


def test_setting_changes_nobody_elses_options():
    options = {"delta_g": 0.7}
    first = small(method_options=options)
    second = clone(first).set_params(method__spacing="exponential")
    third = pickle.loads(pickle.dumps(second)).set_params(method__delta_g=0.9)
    assert options == {"delta_g": 0.7} == first.method_options
    assert second.method_options == {"delta_g": 0.7, "spacing": "exponential"}
    assert third.method_options == {"delta_g": 0.9, "spacing": "exponential"}


def test_the_method_is_set_before_its_options_whatever_their_order():
    model = small("de").set_params(method__delta_g=0.6, method="credro")
    assert (model.method, model.method_options) == ("credro", {"delta_g": 0.6})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("method__deltag", r"method 'credro' has no option 'deltag' \(did you mean 'method__delta_g'\?\); .*spacing="),
        ("recipe__clipp", r"the recipe has no field 'clipp' \(did you mean 'recipe__clip'\?\)"),
        ("recipe__epochs", "set epochs in its place"),
        ("recipe__seed", "set random_state in its place"),
        ("nothing__delta_g", "Invalid parameter 'nothing'"),
    ],
)
def test_unknown_deep_parameters_are_named_with_what_is_allowed(name, words):
    with pytest.raises(ValueError, match=words):
        small().set_params(**{name: 1})


def test_an_option_that_the_new_method_lacks_is_an_error_at_fit(wine):
    model = small().set_params(method__delta_g=0.7).set_params(method="de")
    with pytest.raises(ValueError, match=r"method 'de' has no option 'delta_g'.*set_params\(method_options=None\)"):
        model.fit(wine[0], wine[2])


def test_a_search_in_a_pipeline_reaches_the_option(wine):
    train, test, y_train, _ = wine
    pipe = Pipeline([("scale", StandardScaler()), ("clf", small())])
    grid = {"clf__method__delta_g": np.array([0.5, 0.9])}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(train, y_train)
    best = search.best_params_["clf__method__delta_g"]
    assert search.best_estimator_["clf"].records_[0].delta == best
    by_hand = clone(pipe).set_params(clf__method_options={"delta_g": float(best)}).fit(train, y_train)
    np.testing.assert_array_equal(search.predict_proba(test), by_hand.predict_proba(test))


def test_a_halving_search_reaches_the_option(wine):
    search = HalvingGridSearchCV(
        small(), {"method__delta_g": [0.5, 0.7, 0.9]}, cv=2, random_state=0, error_score="raise", min_resources=40
    ).fit(wine[0], wine[2])
    assert search.best_params_["method__delta_g"] in (0.5, 0.7, 0.9)


def test_the_regressor_has_them_too():
    x, y = load_diabetes(return_X_y=True)
    model = CredalRegressor(members=2, epochs=1, random_state=0).set_params(method__delta_g=0.9).fit(x, y)
    assert model.records_[0].delta == 0.9


# Uncertainty through a pipeline.


def test_a_pipelines_uncertainty_is_that_of_its_last_step_on_transformed_rows():
    frame, y = frame_of_numbers_and_words()
    columns = ColumnTransformer([("n", StandardScaler(), ["size"]), ("w", OneHotEncoder(), ["colour"])])
    pipe = make_pipeline(columns, small()).fit(frame, y)
    last, rows = pipe[-1], columns.fit(frame).transform(frame)
    found = uncertainty(pipe, frame)
    np.testing.assert_array_equal(found.epistemic, last.epistemic(rows))
    np.testing.assert_array_equal(found.aleatoric, last.aleatoric(rows))
    np.testing.assert_array_equal(found.total, last.total(rows))
    np.testing.assert_array_equal(prediction(pipe, frame).mean, pipe.predict_proba(frame))
    assert list(prediction(pipe, frame).samples) == list(frame.index)
    assert prediction(pipe, frame).names == list(pipe.predict(frame))


def test_uncertainty_of_searches_nested_pipelines_and_bare_estimators(wine):
    train, test, y_train, _ = wine
    model = small().fit(train, y_train)
    expected = model.epistemic(test)
    np.testing.assert_array_equal(uncertainty(model, test).epistemic, expected)
    alone = Pipeline([("clf", model)])
    np.testing.assert_array_equal(uncertainty(alone, test).epistemic, expected)
    passed = Pipeline([("skip", "passthrough"), ("in", alone)])
    np.testing.assert_array_equal(uncertainty(passed, test).epistemic, expected)
    search = GridSearchCV(make_pipeline(StandardScaler(), small()), {"credalclassifier__epochs": [2, 3]}, cv=2)
    with pytest.raises(NotFittedError, match="call fit first"):
        uncertainty(search, test)
    search.fit(train, y_train)
    inner = search.best_estimator_
    np.testing.assert_array_equal(uncertainty(search, test).total, inner[-1].total(inner[:-1].transform(test)))
    inside = Pipeline([("skip", "passthrough"), ("search", search)])
    np.testing.assert_array_equal(uncertainty(inside, test).total, uncertainty(search, test).total)


def test_models_without_one_credal_estimator_are_refused_with_the_remedy(wine):
    train, test, y_train, _ = wine
    calibrated = CalibratedClassifierCV(small(), cv=2).fit(train, y_train)
    with pytest.raises(TypeError, match=r"CredalClassifier\(calibrate=0.2\)"):
        uncertainty(calibrated, test)
    with pytest.raises(TypeError, match="got RandomForestClassifier"):
        uncertainty(make_pipeline(StandardScaler(), RandomForestClassifier()).fit(train, y_train), test)
    with pytest.raises(TypeError, match="its step 'last' is 'passthrough'"):
        uncertainty(Pipeline([("last", "passthrough")]), test)
    with pytest.raises(NotFittedError):
        uncertainty(small(), test)


# What is handed in as X.


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix])
def test_sparse_rows_are_the_same_rows(wine, container):
    train, test, y_train, _ = wine
    full = small().fit(train, y_train)
    model = small().fit(container(train), y_train)
    np.testing.assert_array_equal(model.predict_interval(container(test)), full.predict_interval(test))
    np.testing.assert_array_equal(model.predict_interval(test), full.predict_interval(test))


def test_sparse_rows_too_large_to_be_dense_are_refused_before_memory_is_taken(monkeypatch):
    wide = sp.eye(100_000, 50_000, format="csr")  # 18.6 GiB as it would be dense
    with pytest.raises(ValueError, match=r"100,000 rows of 50,000 features would take 18.6 GiB.*TruncatedSVD"):
        small().fit(wide, np.arange(100_000) % 2)
    x, y = sp.random(20, 4, density=0.5, format="csr", random_state=0), np.arange(20) % 2
    monkeypatch.setattr(_inputs, "DENSE_BYTES", 20 * 4 * 4)
    model = small(epochs=1).fit(x, y)  # just fits
    monkeypatch.setattr(_inputs, "DENSE_BYTES", 20 * 4 * 4 - 1)
    with pytest.raises(ValueError, match="20 rows of 4 features"):
        model.predict(x)


def test_sparse_output_of_a_one_hot_encoder_goes_straight_in():
    frame, y = frame_of_numbers_and_words()
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), sparse_threshold=1.0)
    assert sp.issparse(columns.fit_transform(frame))
    assert uncertainty(make_pipeline(columns, small()).fit(frame, y), frame).epistemic.shape == (len(frame),)


def test_a_data_frame_with_words_is_refused_with_the_way_to_encode_them():
    frame, y = frame_of_numbers_and_words()
    with pytest.raises(ValueError, match=r"these columns do not: colour \(text\).*OneHotEncoder\(handle_unknown") as e:
        small().fit(frame, y)
    code = str(e.value).split("for example ")[1].split(", with make_pipeline")[0]
    code = code.replace("CredalClassifier(...)", "small()")
    pipe = eval(code)  # what the message says can be typed
    assert pipe.fit(frame, y).predict(frame).shape == (len(frame),)


def test_kinds_of_columns_that_are_not_numbers(wine):
    days = pd.date_range("2020-01-01", periods=4)
    frame = pd.DataFrame(
        {
            "number": [1.0, 2, 3, 4],
            "flag": [True, False, True, False],
            "whole": pd.array([1, 2, 3, 4], "Int64"),
            "late": pd.Series([1, 2, 3, 4], dtype=object),
            "code": pd.Categorical([1, 2, 1, 2]),  # scikit-learn would take the codes for quantities
            "word": ["a", "b", "a", "b"],
            "string": pd.array(["a", "b", "a", "b"], "string"),
            "day": days,
        }
    )
    assert _inputs.word_columns(frame) == {
        "code": "categories",
        "word": "text",
        "string": "text",
        "day": "dates",
    }
    assert _inputs.word_columns(np.array([["a"]])) == {}
    model = small(epochs=1).fit(frame[["number", "flag", "whole", "late"]], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"these columns do not: late \(text\)"):
        model.predict(frame[["number", "flag", "whole", "late"]].assign(late=["x", "1", "2", "3"]))


def test_a_single_class_is_said_to_be_one(wine):
    with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class: \['only'\]"):
        small().fit(wine[0], np.full(len(wine[0]), "only"))


def test_a_prediction_knows_its_classes_and_rows(wine):
    names = np.array(["barolo", "grignolino", "barbera"])
    frame = pd.DataFrame(wine[0], index=[f"w{i}" for i in range(len(wine[0]))]).rename(columns=str)
    found = small(epochs=1).fit(frame, names[wine[2]]).prediction(frame)
    assert found.classes == tuple(sorted(names))
    assert list(found.to_frame().index) == list(frame.index)
    assert found.method == "credro"
