import warnings

import pytest
import torch

from credro.training.diagnostics import fitness, warnings_for
from credro.training.recipe import Recipe
from credro.training.train import FitWarning
from tests.training.common import digits, job_of, trained


def record(member, accuracy, confidence, delta=None):
    made_up = {"member": member, "train": {"loss": 0.1, "accuracy": accuracy, "confidence": confidence}}
    return made_up | ({} if delta is None else {"delta": delta})


def test_nothing_is_said_when_all_is_well():
    assert warnings_for([record(i, 1.0, 0.99, 0.5 + i / 8) for i in range(5)]) == []
    assert warnings_for([record(i, 0.99, c) for i, c in enumerate((0.7, 0.9, 0.8))]) == []  # no delta to run with
    assert warnings_for([]) == []
    assert warnings_for([{"member": 0, "train": {"loss": 3.0}}]) == []  # regression


def test_members_that_have_not_fitted_are_counted_and_the_worst_is_named():
    (said,) = warnings_for([record(0, 0.99, 0.9), record(1, 0.71, 0.9), record(2, 0.9, 0.9)])
    assert "2 of 3 members" in said
    assert "member 1: 71.0%" in said
    assert "train longer" in said


def test_confidence_that_runs_with_delta_is_named():
    confidences = (0.63, 0.66, 0.70, 0.74, 0.78)  # an underfit run on CIFAR-10
    records = [record(i, 1.0, c, 0.5 + i / 8) for i, c in enumerate(confidences)]
    (said,) = warnings_for(records[::-1])  # in whatever order
    assert "from 0.63 at delta 0.5 to 0.78 at delta 1" in said
    assert "calibrate" in said


def test_confidence_that_merely_varies_is_not():
    for confidences in ((0.90, 0.97, 0.91, 0.95, 0.94), (0.95, 0.955, 0.96, 0.965, 0.97), (0.9, 0.8, 0.7, 0.6, 0.5)):
        assert warnings_for([record(i, 1.0, c, 0.5 + i / 8) for i, c in enumerate(confidences)]) == []


def test_a_real_underfit_run_warns_and_a_fitted_one_does_not():
    with pytest.warns(FitWarning, match="have not fitted the training data"):
        trained("mlp", digits(), recipe=Recipe(epochs=1, lr=0.01), members=3, quiet=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        fitted = trained("mlp", digits(100), recipe=Recipe(epochs=30, lr=0.1, batch_size=25), quiet=False)
    assert all(r["train"]["accuracy"] == 1.0 for r in fitted.records)


def test_fitness_is_that_of_the_whole_set_in_eval_mode(tmp_path):
    """Against one pass over everything; the set is larger than a batch of the evaluation."""
    data = digits(701)
    job = job_of(tmp_path, "mlp", data)
    net = job.network(0).train()
    found = fitness(net, job, data)
    logits = net(job.inputs(data.samples)).detach().double()
    assert found["loss"] == pytest.approx(float(torch.nn.functional.cross_entropy(logits, data.labels)), rel=1e-5)
    assert found["accuracy"] == pytest.approx(float((logits.argmax(1) == data.labels).double().mean()))
    assert found["confidence"] == pytest.approx(float(logits.softmax(1).amax(1).mean()), rel=1e-5)
    assert net.training
