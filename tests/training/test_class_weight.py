"""Class weights multiply the loss of every sample before the risk looks at it, in every head and executor."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from credro._names import ArgumentError, UnknownName
from credro.data.adapt import as_data
from credro.methods import METHODS, make
from credro.training.balance import class_weights
from credro.training.diagnostics import fitness
from credro.training.recipe import Recipe
from credro.training.run import RunError
from tests.training.common import assert_bitwise, blobs, job_of, small_net, trained, weights

WEIGHTS = {"0": 3.0, "2": 0.5}


def uneven(count=60):
    """Classes 0, 1 and 2 with 2/3, 1/6 and 1/6 of the samples."""
    x, _ = blobs(count)
    return x, torch.tensor([0, 0, 1, 0, 0, 2]).repeat(count // 6)


def test_balanced_is_what_scikit_learn_calls_so():
    from sklearn.utils.class_weight import compute_class_weight

    x, y = uneven()
    theirs = compute_class_weight("balanced", classes=torch.arange(3).numpy(), y=y.numpy())
    assert class_weights("balanced", as_data((x, y)), 3).tolist() == pytest.approx(theirs.tolist())


def test_balanced_leaves_a_class_without_samples_at_one():
    x, y = uneven()
    found = class_weights("balanced", as_data((x, y), classes=4), 4)
    assert found.tolist() == pytest.approx([60 / (3 * 40), 60 / (3 * 10), 60 / (3 * 10), 1.0])


@pytest.mark.parametrize(
    ("names", "given", "wanted"),
    [
        (["cat", "dog", "eel"], {"dog": 2.0}, [1, 2, 1]),
        (["cat", "dog", "eel"], {0: 4, 2: 2.0}, [4, 1, 2]),
        (["1", "2", "3"], {1: 5.0}, [5, 1, 1]),  # a number that is a name is the name
        (["1", "2", "3"], {0: 5.0, 1: 2.0}, [5, 2, 1]),  # unless another of them can only be a place
    ],
)
def test_classes_are_named_or_numbered(names, given, wanted):
    data = as_data((torch.zeros(6, 2), torch.arange(6) % 3), classes=3)
    data = type(data)(**{**vars(data), "classes": tuple(names)})
    assert class_weights(Recipe(class_weight=given).class_weight, data, 3).tolist() == wanted


@pytest.mark.parametrize(
    "given", [{0: 0.0}, {0: -1}, {0: math.inf}, {0: math.nan}, {0: "a"}, {0: True}, {0: 1.0, "0": 2.0}]
)
def test_weights_are_positive_numbers(given):
    with pytest.raises(ArgumentError) as error:
        Recipe(class_weight=given)
    assert error.value.argument == "class_weight"


def test_unknown_words_and_classes_are_refused(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'balanced'"):
        Recipe(class_weight="balance")
    with pytest.raises(UnknownName) as error:
        trained(small_net, uneven(), tmp_path, recipe=Recipe(epochs=1, class_weight={"7": 2.0}))
    assert error.value.argument == "class_weight"
    assert not (tmp_path / "config.json").exists()
    with pytest.raises(ArgumentError, match="class_weight"):
        trained("mlp", (blobs()[0], torch.rand(64)), recipe=Recipe(class_weight="balanced", loss="gaussian_nll"))


def test_recipes_with_weights_are_kept_and_compared():
    recipe = Recipe(class_weight={2: 0.5, 0: 3})
    assert recipe.class_weight == WEIGHTS
    assert Recipe.from_json(recipe.to_json()) == recipe == Recipe(class_weight=WEIGHTS)
    assert hash(recipe) == hash(Recipe(class_weight=WEIGHTS))


@pytest.mark.parametrize("method", list(METHODS))
def test_every_head_multiplies_before_the_risk(tmp_path, method):
    """Against losses taken one sample at a time, with a weight of their own each."""
    data = as_data(uneven())
    plain = job_of(tmp_path, small_net, data, method=method, classes=3)
    job = job_of(tmp_path, small_net, data, method=method, classes=3, recipe=Recipe(class_weight=WEIGHTS))
    each = torch.tensor([3.0, 1.0, 0.5])[data.labels]
    member = job.member(0)
    torch.manual_seed(0)
    output = job.network(0).train()(data.samples.float()).detach()
    before, now = (member.head.losses(output, data.labels, j.loss) for j in (plain, job))
    torch.testing.assert_close(now.robust, before.robust * each, rtol=1e-4, atol=1e-5)
    assert (now.plain is None) == (before.plain is None)
    if now.plain is not None:
        torch.testing.assert_close(now.plain, before.plain * each, rtol=1e-4, atol=1e-5)


def test_cvar_selects_by_the_weighted_loss(tmp_path):
    data = as_data(uneven())
    job = job_of(
        tmp_path, small_net, data, classes=3, recipe=Recipe(class_weight=WEIGHTS), method=make("credro", delta_g=0.5)
    )
    output = job.network(0)(data.samples.float())
    pairs = zip(output, data.labels, strict=True)
    losses = [float(cross_entropy(z[None], y[None])) * [3.0, 1.0, 0.5][int(y)] for z, y in pairs]
    worst = sorted(losses, reverse=True)[:30]
    assert float(job.member(0).loss(output, data.labels, job.loss, torch.Generator())) == pytest.approx(sum(worst) / 30)


def test_soft_labels_weigh_by_their_classes(tmp_path):
    x, y = uneven()
    soft = 0.8 * torch.nn.functional.one_hot(y, 3).float() + 0.2 / 3
    job = job_of(tmp_path, small_net, as_data((x, soft)), classes=3, recipe=Recipe(class_weight=WEIGHTS))
    output = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    each = soft @ torch.tensor([3.0, 1.0, 0.5])
    torch.testing.assert_close(job.loss(output, soft), cross_entropy(output, soft, reduction="none") * each)


def test_the_likelihood_is_that_of_the_data(tmp_path):
    data = as_data(uneven())
    plain = job_of(tmp_path, small_net, data, classes=3)
    job = job_of(tmp_path, small_net, data, classes=3, recipe=Recipe(class_weight=WEIGHTS))
    fit, unweighted = (fitness(j.network(0), j, 0, data) for j in (job, plain))
    assert fit.nll == unweighted.nll
    assert abs(fit.loss - unweighted.loss) > 1e-3


def test_weights_of_one_change_nothing_and_others_do(tmp_path):
    runs = {name: tmp_path / name for name in ("none", "ones", "others")}
    for name, given in (("none", None), ("ones", {0: 1, 1: 1, 2: 1}), ("others", "balanced")):
        trained(small_net, uneven(), runs[name], recipe=Recipe(epochs=2, batch_size=16, class_weight=given))
    assert_bitwise(weights(runs["none"]), weights(runs["ones"]))
    assert not torch.equal(weights(runs["none"])["0.0.weight"], weights(runs["others"])["0.0.weight"])


def test_stacked_and_processes_train_the_same(tmp_path):
    recipe = Recipe(epochs=2, batch_size=16, class_weight="balanced")
    for executor in ("sequential", "processes", "stacked"):
        trained(small_net, uneven(), tmp_path / executor, recipe=recipe, executor=executor, workers=2)
    one = weights(tmp_path / "sequential")
    assert_bitwise(one, weights(tmp_path / "processes"))
    stacked = weights(tmp_path / "stacked")
    for name, t in one.items():
        torch.testing.assert_close(t, stacked[name], rtol=1e-4, atol=1e-5)


def test_a_run_with_other_weights_is_another_run(tmp_path):
    recipe = Recipe(epochs=1, batch_size=16, class_weight={0: 2.0})
    trained(small_net, uneven(), tmp_path, recipe=recipe)
    trained(small_net, uneven(), tmp_path, recipe=recipe)
    for other in (None, "balanced", {0: 3.0}):
        with pytest.raises(RunError, match=r"recipe\.class_weight"):
            trained(small_net, uneven(), tmp_path, recipe=recipe.with_(class_weight=other))
