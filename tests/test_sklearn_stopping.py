"""Early stopping of the estimators, what they calibrate on, and which rows a threshold may be chosen on."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine, make_classification, make_friedman1
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from credro.nets import MLP, TableNet
from credro.sklearn import CredalClassifier, CredalRegressor
from credro.training.seen import SeenSamples

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")


def small(method: object = "credro", **settings: object) -> CredalClassifier:
    return CredalClassifier(method, **{"members": 3, "epochs": 20, "lr": 0.01, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def noisy():
    """A fifth of the labels are wrong: who learns them by heart is sure of nonsense."""
    x, y = make_classification(900, 10, n_informative=4, flip_y=0.4, random_state=0)
    return train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def stopped(noisy):
    return small(epochs=60, n_iter_no_change=5).fit(noisy[0], noisy[2])


def test_it_stops_before_the_noise_is_learnt(noisy, stopped):
    train, test, y_train, y_test = noisy
    longer = small(epochs=60, early_stopping=False).fit(train, y_train)
    assert longer.ensemble_.temperatures == [1.0] * 3
    assert all(r.epochs < 60 and r.best_epoch <= r.epochs - 5 for r in stopped.records_)
    assert all(r.epochs == 60 and r.best_epoch is None for r in longer.records_)
    ours, theirs = (log_loss(y_test, m.predict_proba(test)) for m in (stopped, longer))
    assert ours < theirs - 0.05
    assert ours < log_loss(y_test, np.full(len(y_test), y_train.mean()))  # better than knowing the class counts alone


def test_rows_to_stop_by_are_a_tenth_of_each_class_and_not_trained_on(noisy, stopped):
    seen = stopped.ensemble_.seen
    assert len(seen["trained"]) == 405
    assert len(seen["watched"]) == 45
    assert not torch.isin(seen["watched"], seen["trained"]).any()
    assert not np.allclose(stopped.ensemble_.inputs.mean, noisy[0].mean(0), atol=1e-4)  # nor scaled by
    half = small(epochs=1, validation_fraction=0.5).fit(noisy[0], noisy[2])
    assert len(half.ensemble_.seen["watched"]) == 225


def test_the_order_of_rows_and_pickling_change_nothing(noisy, stopped):
    train, test, y_train, _ = noisy
    order = np.random.default_rng(1).permutation(len(train))
    other = small(epochs=60, n_iter_no_change=5).fit(train[order], y_train[order])
    np.testing.assert_array_equal(other.predict_interval(test), stopped.predict_interval(test))
    again = pickle.loads(pickle.dumps(stopped))
    np.testing.assert_array_equal(again.predict_interval(test), stopped.predict_interval(test))


def test_copies_never_fall_on_both_sides(noisy):
    train, _, y_train, _ = noisy
    model = small(epochs=1).fit(train.repeat(2, 0), y_train.repeat(2))
    assert not torch.isin(model.ensemble_.seen["watched"], model.ensemble_.seen["trained"]).any()
    weighted = small(epochs=3).fit(train, y_train, sample_weight=np.full(len(train), 2.0))
    plain = small(epochs=3).fit(train, y_train)
    np.testing.assert_array_equal(weighted.predict_proba(train), plain.predict_proba(train))


def test_few_rows_are_all_trained_on():
    x, y = load_wine(return_X_y=True)
    model = small(epochs=2).fit(x[::4], y[::4])
    assert "watched" not in model.ensemble_.seen
    assert model.ensemble_.temperatures == [1.0] * 3
    lone = np.where(np.arange(len(x)) == 0, 9, y)  # a class of one row stays where it can be learnt
    model = small(epochs=2).fit(x, lone)
    assert list(model.classes_) == [0, 1, 2, 9]


def test_temperatures_make_no_member_surer(noisy, stopped):
    assert min(stopped.ensemble_.temperatures) >= 1
    assert len(stopped.ensemble_.seen["calibrated"]) == 45
    bare = small(epochs=60, n_iter_no_change=5, calibrate=False).fit(noisy[0], noisy[2])
    assert bare.ensemble_.temperatures == [1.0] * 3
    assert "calibrated" not in bare.ensemble_.seen
    both = small(epochs=3, calibrate=0.2).fit(noisy[0], noisy[2])
    assert [len(both.ensemble_.seen[use]) for use in ("trained", "watched", "calibrated")] == [324, 36, 90]


def test_the_net_goes_by_the_number_of_features(noisy):
    assert isinstance(small(epochs=1).fit(noisy[0], noisy[2]).ensemble_.nets[0], TableNet)
    wide = small(epochs=1).fit(np.random.default_rng(0).normal(size=(20, 600)), np.arange(20) % 2)
    assert type(wide.ensemble_.nets[0]) is MLP


def test_a_threshold_is_not_chosen_on_rows_that_were_used(noisy, stopped):
    train, test, y_train, y_test = noisy
    with pytest.raises(SeenSamples, match=r"405 of 450 samples were trained on, 45 of 450 samples were watched"):
        stopped.choose_threshold(train, y_train)
    again = pickle.loads(pickle.dumps(stopped))
    alone = again.choose_threshold(test, y_test, max_error=0.3)
    mixed_x, mixed_y = np.concatenate([train[:50], test]), np.concatenate([y_train[:50], y_test])
    with pytest.warns(UserWarning, match="they are left out"):
        mixed = again.choose_threshold(mixed_x, mixed_y, max_error=0.3)
    assert mixed == alone
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.choose_threshold(test, y_test)


def test_numbers_are_stopped_and_widened_too():
    x, y = make_friedman1(600, noise=1.0, random_state=0)
    model = CredalRegressor("de", members=3, epochs=150, n_iter_no_change=8, lr=0.01, random_state=0)
    model.fit(x[:300], y[:300])
    assert all(r.best_epoch < r.epochs < 150 for r in model.records_)
    low, high = model.predict_interval(x[300:]).T
    assert ((low <= y[300:]) & (y[300:] <= high)).mean() > 0.8
