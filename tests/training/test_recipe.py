import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.optim import lr_scheduler

from credro.training.recipe import PRESETS, Recipe, learning_rate, make_optimizer, plateau_reductions


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("epochs", 0, "epochs must be a whole number of at least 1, got 0"),
        ("epochs", 2.5, "epochs must be a whole number"),
        ("epochs", True, "epochs must be a whole number"),
        ("batch_size", -1, "batch_size must be a whole number of at least 1, got -1"),
        ("patience", 0, "patience must be a whole number"),
        ("optimizer", "lion", "optimizer must be one of sgd, adam, adamw, got 'lion'"),
        ("optimiser", "lion", "optimizer must be one of sgd, adam, adamw, got 'lion'"),
        ("early_stop", -1, "early_stop must be a whole number of epochs, or 0 for no early stopping, got -1"),
        ("early_stop", 1.5, "early_stop must be a whole number of epochs"),
        ("early_stop", True, "early_stop must be a whole number of epochs"),
        ("schedule", "cosin", "schedule must be one of constant, cosine, step, plateau, got 'cosin'"),
        ("precision", "fp8", "precision must be one of fp32, bf16, fp16, got 'fp8'"),
        ("lr", 0, "lr must be positive and finite, got 0"),
        ("lr", math.inf, "lr must be positive and finite, got inf"),
        ("lr", math.nan, "lr must be positive and finite, got nan"),
        ("momentum", -0.1, "momentum must not be negative"),
        ("momentum", 1.0, r"momentum must lie in \[0, 1\), got 1.0"),
        ("weight_decay", -1e-4, "weight_decay must not be negative"),
        ("warmup", -1, "warmup must not be negative"),
        ("warmup", 21, "warmup must not be longer than the training: 21 of 20 epochs"),
        ("final_lr", math.nan, "final_lr must not be negative"),
        ("clip", -1, "clip must not be negative"),
        ("gamma", 0, r"gamma must lie in \(0, 1\], got 0"),
        ("gamma", 2, r"gamma must lie in \(0, 1\]"),
    ],
)
def test_every_bad_field_is_named(field, value, words):
    with pytest.raises(ValueError, match=words):
        Recipe(**{field: value})


def test_nesterov_needs_momentum():
    with pytest.raises(ValueError, match="nesterov needs a momentum above 0"):
        Recipe(nesterov=True, momentum=0.0)


def test_json_and_back():
    for recipe in [*PRESETS.values(), Recipe(milestones=[3, 5], schedule="step")]:
        assert Recipe.from_json(recipe.to_json()) == recipe
    assert Recipe().with_(epochs=3).epochs == 3


def test_either_spelling_of_the_optimizer():
    assert Recipe(optimiser="adam") == Recipe(optimizer="adam")
    assert Recipe().with_(optimiser="adamw").optimizer == Recipe(optimizer="adamw").optimiser == "adamw"
    assert Recipe(optimizer="adam").with_(lr=1.0).optimizer == "adam"
    assert "optimiser" not in Recipe().to_json()
    with pytest.raises(TypeError, match=r"optimizer was given twice: optimizer and optimiser"):
        Recipe(optimizer="adam", optimiser="sgd")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("learning_rate", ""), ("epoch", "epochs"), ("optimzer", "optimizer"), ("batchsize", "batch_size")],
)
def test_what_is_no_field_is_named_with_the_nearest(name, meant):
    hint = rf" \(did you mean '{meant}'\?\)" if meant else ""
    for make in (Recipe, Recipe().with_):
        with pytest.raises(TypeError, match=rf"a recipe has no field '{name}'{hint}; it has epochs, batch_size, "):
            make(**{name: 3})


def rates_of(scheduler_of, epochs, recipe, losses=None):
    """What torch's own scheduler gives, epoch by epoch."""
    sgd = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=recipe.lr)
    scheduler, rates = scheduler_of(sgd), []
    for epoch in range(epochs):
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        scheduler.step(*([] if losses is None else [losses[epoch]]))
    return rates


def test_cosine_per_epoch_is_torchs():
    recipe = Recipe(epochs=17, lr=0.3, final_lr=1e-3, per_step=False)
    torchs = rates_of(lambda o: lr_scheduler.CosineAnnealingLR(o, 17, eta_min=1e-3), 17, recipe)
    assert [learning_rate(recipe, e) for e in range(17)] == pytest.approx(torchs, rel=1e-9)
    assert learning_rate(recipe, 3.9) == learning_rate(recipe, 3)


def test_cosine_per_step_is_torchs_with_one_epoch_a_step():
    recipe, steps = Recipe(epochs=4, lr=0.3), 4 * 7
    torchs = rates_of(lambda o: lr_scheduler.CosineAnnealingLR(o, steps), steps, recipe)
    ours = [learning_rate(recipe, e + b / 7) for e in range(4) for b in range(7)]
    assert ours == pytest.approx(torchs, rel=1e-9, abs=1e-12)


def test_step_is_torchs():
    recipe = Recipe(epochs=12, lr=0.1, schedule="step", milestones=(4, 7, 10), gamma=0.3)
    torchs = rates_of(lambda o: lr_scheduler.MultiStepLR(o, [4, 7, 10], gamma=0.3), 12, recipe)
    assert [learning_rate(recipe, e) for e in range(12)] == pytest.approx(torchs, rel=1e-12)


@given(
    losses=st.lists(st.integers(1, 12).map(lambda v: v / 4), min_size=1, max_size=40),
    patience=st.integers(1, 4),
)
def test_plateau_is_torchs(losses, patience):
    recipe = Recipe(epochs=50, lr=0.1, schedule="plateau", patience=patience, gamma=0.5, final_lr=0.01)

    def torchs_own(sgd):
        return lr_scheduler.ReduceLROnPlateau(sgd, factor=0.5, patience=patience, min_lr=0.01)

    torchs = rates_of(torchs_own, len(losses), recipe, losses)
    ours = [learning_rate(recipe, e, plateau_reductions(losses[:e], patience)) for e in range(len(losses))]
    assert ours == pytest.approx(torchs, rel=1e-9)


def test_warm_up_then_cosine_in_closed_form():
    recipe = Recipe(epochs=25, lr=0.1, warmup=5, warmup_lr=1e-3, final_lr=1e-6)
    for progress in (0.0, 1.0, 2.5, 4.999):
        assert learning_rate(recipe, progress) == pytest.approx(1e-3 + (0.1 - 1e-3) * progress / 5)
    for progress in (5.0, 6.2, 15.0, 24.9):
        cosine = 1e-6 + (0.1 - 1e-6) * (1 + math.cos(math.pi * (progress - 5) / 20)) / 2
        assert learning_rate(recipe, progress) == pytest.approx(cosine)
    assert learning_rate(recipe, 25.0) == pytest.approx(1e-6)
    assert learning_rate(Recipe(schedule="constant", lr=0.2), 7.3) == 0.2
    assert learning_rate(Recipe(epochs=5, warmup=5, lr=0.2), 2.5) == pytest.approx(0.1)


def by_hand(recipe, parameter, gradients):
    """The published update rules, a step at a time."""
    w, lr, wd = parameter.clone(), recipe.lr, recipe.weight_decay
    velocity = first = second = torch.zeros_like(w)
    for t, gradient in enumerate(gradients, 1):
        if recipe.optimizer == "sgd":
            g = gradient + wd * w
            velocity = g if t == 1 else recipe.momentum * velocity + g
            w = w - lr * (g + recipe.momentum * velocity if recipe.nesterov else velocity)
            continue
        g = gradient + wd * w if recipe.optimizer == "adam" else gradient
        if recipe.optimizer == "adamw":
            w = w - lr * wd * w
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        w = w - lr * (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)).sqrt() + 1e-8)
    return w


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(momentum=0.0),
        Recipe(nesterov=True),
        Recipe(optimizer="adam", lr=1e-2),
        Recipe(optimizer="adamw", lr=1e-2, weight_decay=0.1),
    ],
    ids=lambda r: f"{r.optimizer} {r.momentum} {r.nesterov}",
)
def test_optimizers_by_hand(recipe):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(7, generator=generator, dtype=torch.float64)
    gradients = torch.randn(6, 7, generator=generator, dtype=torch.float64)
    parameter = nn.Parameter(copy.deepcopy(start))
    ours = make_optimizer(recipe, [parameter])
    for gradient in gradients:
        parameter.grad = gradient.clone()
        ours.step()
    torch.testing.assert_close(parameter.detach(), by_hand(recipe, start, gradients), rtol=1e-9, atol=1e-12)


def test_the_papers_recipes():
    main = PRESETS["paper-cifar10"]
    assert (main.epochs, main.batch_size, main.lr, main.momentum, main.weight_decay) == (200, 128, 0.1, 0.9, 5e-4)
    assert (main.optimizer, main.schedule, main.per_step, main.augment) == ("sgd", "cosine", False, "crop-flip")
    shifted = PRESETS["paper-cifar10-c"]
    assert [learning_rate(shifted, e) for e in (0, 14, 15, 19)] == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4])
    wide = PRESETS["paper-cifar100-c"]
    assert learning_rate(wide, 0) == pytest.approx(1e-3)
    assert learning_rate(wide, 5) == pytest.approx(0.1)
    assert learning_rate(wide, 200) == pytest.approx(1e-6)
    assert PRESETS["paper-camelyon17"].schedule == "plateau"
