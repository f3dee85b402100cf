import warnings

import pytest
import torch

from credro.training.diagnostics import Diagnosis, fitness, warnings_for
from credro.training.recipe import Recipe
from credro.training.records import Fit, Lowest, MemberRecord
from credro.training.train import FitWarning
from tests.training.common import digits, job_of, trained


def codes(records):
    return [d.code for d in warnings_for(records)]


def record(member, accuracy, confidence, delta=None, **more):
    train = Fit(0.1, accuracy=accuracy, confidence=confidence)
    return MemberRecord(member, train=train, traits={} if delta is None else {"delta": delta}, **more)


def test_nothing_is_said_when_all_is_well():
    assert warnings_for([record(i, 1.0, 0.99, 0.5 + i / 8) for i in range(5)]) == []
    assert warnings_for([record(i, 0.99, c) for i, c in enumerate((0.7, 0.9, 0.8))]) == []  # no delta to run with
    assert warnings_for([]) == []
    assert warnings_for([MemberRecord(0, train=Fit(3.0))]) == []  # regression


def test_members_that_have_not_fitted_are_counted_and_the_worst_is_named():
    (found,) = warnings_for([record(0, 0.99, 0.9), record(1, 0.71, 0.9), record(2, 0.9, 0.9)])
    assert found.code == "underfit"
    said = str(found)
    assert "2 of 3 members" in said
    assert "member 1: 71.0%" in said
    assert "train longer" in said


def test_confidence_that_runs_with_delta_is_named():
    confidences = (0.63, 0.66, 0.70, 0.74, 0.78)  # an underfit run on CIFAR-10
    records = [record(i, 1.0, c, 0.5 + i / 8) for i, c in enumerate(confidences)]
    (found,) = warnings_for(records[::-1])  # in whatever order
    assert found.code == "confidence-runs-with-delta"
    said = found.text
    assert "Train until all members fit, or calibrate" in said
    assert "from 0.63 at delta 0.5 to 0.78 at delta 1" in said
    assert "calibrate" in said


def early(best, epochs, loss=0.5):
    return {"best_epoch": best, "epochs": epochs, "stopped_early": best < epochs, "held_out": Fit(loss)}


def watched(epoch, lowest, last, epochs=40):
    return {"epochs": epochs, "held_out": Fit(last), "lowest_held_out": Lowest(epoch, lowest)}


def test_a_member_that_stopped_at_its_best_is_not_told_to_train_longer():
    (found,) = warnings_for([record(0, 0.99, 0.9, **early(9, 12)), record(1, 0.83, 0.8, **early(12, 20))])
    assert found.code == "stopped-early"
    assert "1 of 2 members stopped at their best epoch" in found.text
    assert "member 1: 83.0% right in eval mode; stopped at its best epoch, 12 of 20" in found.text
    assert "total uncertainty" in found.text
    assert "calibrate" in found.text
    assert "longer" not in found.text
    # Early stopping was on, but the last epoch was the best: longer may help.
    assert codes([record(0, 0.9, 0.9, **early(20, 20))]) == ["underfit"]


def test_nor_is_one_whose_held_out_loss_rose():
    """German credit: held-out loss 0.49 after 10 epochs, 1.03 after 40."""
    found = warnings_for([record(0, 0.93, 0.9, **watched(10, 0.491, 1.025)), record(1, 0.99, 0.9)])
    assert [d.code for d in found] == ["overfit", "stopped-early"]
    assert "member 0: held-out loss 0.491 after epoch 10, 1.025 after 40" in found[0].text
    assert "early_stop=5" in found[0].text
    assert not any("train longer" in d.text for d in found)
    # Also where it fits; a small rise is none; one that still falls is told to go on.
    assert codes([record(0, 1.0, 0.99, **watched(10, 0.491, 1.025))]) == ["overfit"]
    assert codes([record(0, 1.0, 0.99, **watched(10, 0.30, 0.33))]) == []
    (still,) = warnings_for([record(0, 0.7, 0.9, **watched(40, 0.6, 0.6))])
    assert still.code == "underfit"
    assert "train longer, with" in still.text


def test_confidence_that_runs_with_delta_after_early_stopping_is_to_be_calibrated():
    confidences = (0.63, 0.66, 0.70, 0.74, 0.78)
    records = [record(i, 1.0, c, 0.5 + i / 8, **early(9, 12)) for i, c in enumerate(confidences)]
    (found,) = warnings_for(records)
    assert found.code == "confidence-runs-with-delta"
    assert "Train until" not in found.text
    assert "Calibrate each on held-out data" in found.text


def test_what_calibration_settles_is_told_by_code_and_not_by_words(monkeypatch):
    from credro.ensemble import _ensemble as module

    fitted = trained("mlp", digits(60))
    said = [Diagnosis("confidence-runs-with-delta", "anything"), Diagnosis("underfit", "confidence runs with delta")]
    monkeypatch.setattr(module, "warnings_for", lambda records: said)
    assert fitted.warnings == ["anything", "confidence runs with delta"]
    fitted.temperatures = [2.0] * len(fitted)
    assert fitted.warnings == ["confidence runs with delta"]


def test_a_run_that_stopped_early_says_so():
    """Labels at random: what can be learnt is nothing, so every member stops long before it fits."""
    data = digits(120)
    data = data.relabel(torch.randint(10, (120,), generator=torch.Generator().manual_seed(0)))
    recipe = Recipe(epochs=60, lr=3e-3, batch_size=32, optimizer="adamw", early_stop=3)
    with pytest.warns(FitWarning, match="stopped at their best epoch"):
        ensemble = trained("mlp", data, recipe=recipe, held_out=digits(200).subset(range(120, 200)), quiet=False)
    assert all(r.stopped_early for r in ensemble.records)
    assert not any("longer" in w for w in ensemble.warnings)
    with pytest.warns(FitWarning, match="trained past their best"):
        trained("mlp", data, recipe=recipe.with_(early_stop=0), held_out=digits(200).subset(range(120, 200)),
                quiet=False)  # fmt: skip


def test_confidence_that_merely_varies_is_not():
    for confidences in ((0.90, 0.97, 0.91, 0.95, 0.94), (0.95, 0.955, 0.96, 0.965, 0.97), (0.9, 0.8, 0.7, 0.6, 0.5)):
        assert warnings_for([record(i, 1.0, c, 0.5 + i / 8) for i, c in enumerate(confidences)]) == []


def test_a_real_underfit_run_warns_and_a_fitted_one_does_not():
    with pytest.warns(FitWarning, match="have not fitted the training data"):
        trained("mlp", digits(), recipe=Recipe(epochs=1, lr=0.01), members=3, quiet=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        fitted = trained("mlp", digits(100), recipe=Recipe(epochs=30, lr=0.1, batch_size=25), quiet=False)
    assert all(r.train.accuracy == 1.0 for r in fitted.records)


def test_fitness_is_that_of_the_whole_set_in_eval_mode(tmp_path):
    """Against one pass over everything; the set is larger than a batch of the evaluation."""
    data = digits(701)
    job = job_of(tmp_path, "mlp", data)
    net = job.network(0).train()
    found = fitness(net, job, 0, data)
    logits = net(job.inputs(data.samples)).detach().double()
    assert found.loss == pytest.approx(float(torch.nn.functional.cross_entropy(logits, data.labels)), rel=1e-5)
    assert found.accuracy == pytest.approx(float((logits.argmax(1) == data.labels).double().mean()))
    assert found.confidence == pytest.approx(float(logits.softmax(1).amax(1).mean()), rel=1e-5)
    assert found.nll == pytest.approx(found.loss, rel=1e-6)  # cross-entropy is the likelihood
    assert net.training
