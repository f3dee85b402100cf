"""NaN and infinity are found, named by sample, and not taken for a learning rate that is too large."""

import math

import numpy as np
import pytest

from credro.data import Data
from credro.training.job import TrainingError
from credro.training.recipe import Recipe
from credro.training.run import Run
from tests.training.common import blobs, digits, small_net, trained

RECIPE = Recipe(epochs=2, batch_size=16, lr=0.01)


def spoilt(value, sample=37, feature=4):
    x, y = blobs()
    x[sample, feature] = value
    return x, y


def lazily(x, y, columns=()):
    return Data("lazy", lambda index: x[index], y, tuple(x.shape[1:]), tuple("abc"), prepared=True, columns=columns)


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "infinite"), (-math.inf, "infinite")])
def test_before_training(tmp_path, value, word):
    with pytest.raises(ValueError, match=rf"train_set: x is {word} in sample 37, value 4: leave such samples out"):
        trained(small_net, spoilt(value), tmp_path)
    with pytest.raises(ValueError, match=rf"held_out: x is {word} in sample 37"):
        trained(small_net, blobs(), tmp_path, held_out=spoilt(value))
    assert not Run(tmp_path).config_path.exists()


def test_the_remedy_it_names_works():
    x, y = (part.numpy() for part in spoilt(math.nan))
    keep = np.isfinite(x).reshape(len(x), -1).all(1)
    trained(small_net, (x[keep], y[keep]))
    trained(small_net, (np.nan_to_num(x), y))


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "infinite")])
def test_where_samples_are_read_when_needed(tmp_path, executor, value, word):
    data = lazily(*spoilt(value), columns=tuple("abcdef"))
    with pytest.raises(TrainingError) as error:
        trained(small_net, data, tmp_path, recipe=RECIPE, method="de", executor=executor)
    said = str(error.value)
    assert f"The learning rate is not at fault. x is {word} in sample 37, column 'e'" in said
    assert "smaller lr" not in said


def test_held_out_samples_that_are_read_when_needed(tmp_path):
    with pytest.raises(TrainingError, match=r"the loss on held_out is nan\. x is NaN in sample 37"):
        trained(small_net, blobs(), tmp_path, held_out=lazily(*spoilt(math.nan)))


def test_a_table_with_missing_values_is_fine_and_one_with_infinite_ones_is_not(tmp_path):
    x, y = spoilt(math.nan)
    kept = Data("table", x, y, (6,), tuple("abc"))
    assert trained("mlp", kept, tmp_path / "nan").records[0].train.loss < 10
    with pytest.raises(ValueError, match=r"x is infinite in sample 37, value 4: leave it empty \(NaN\) in the table"):
        trained("mlp", Data("table", spoilt(math.inf)[0], y, (6,), tuple("abc")), tmp_path / "inf")


def test_a_target_that_is_not_finite():
    x, _ = blobs()
    y = x[:, 0].clone()
    y[5] = math.nan
    with pytest.raises(ValueError, match="target 5 is not finite"):
        trained("mlp", (x, y), recipe=RECIPE.with_(loss="gaussian_nll"))


def test_a_learning_rate_is_at_fault_where_the_samples_are_sound(tmp_path):
    with pytest.raises(TrainingError, match="Try a smaller lr"):
        trained(small_net, lazily(*blobs()), tmp_path, recipe=Recipe(epochs=30, lr=1e20, batch_size=16))


def test_images_are_bytes_and_need_no_look():
    trained("mlp", digits(40))
