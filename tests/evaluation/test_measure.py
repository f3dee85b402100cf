"""Every measure against scikit-learn and SciPy, and everything predicted once."""

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from torch import nn

from credro.data import Data
from credro.ensemble import Ensemble
from credro.evaluation import evaluate, evaluate_sets, result_of, results_table, sets_of
from credro.methods import make
from credro.report.page import write_report
from credro.training.feed import Inputs
from tests.evaluation.common import FAR, FEATURES, KNOWN, MEMBERS, NEAR, ensemble, probs


def mutual_information(p):
    return entropy(p.mean(0), axis=-1) - entropy(p, axis=-1).mean(0)


def width(p):
    return p[..., 1].max(0) - p[..., 1].min(0)


@pytest.mark.parametrize("temperatures", [None, [2.0, 0.5, 1.5, 3.0]])
def test_against_scikit_learn_and_scipy(temperatures):
    made = ensemble(temperatures=temperatures)
    found = evaluate(made, KNOWN, {"far": FAR, "near": NEAR}, ["de", "crewra"])
    assert [(s.method, s.calibrated) for s in found.results] == [
        (m, c) for c in ((False, True) if temperatures else (False,)) for m in ("de", "crewra")
    ]
    assert made.temperatures == (temperatures or [1.0] * MEMBERS)
    labels = KNOWN.labels.numpy()
    for result in found.results:
        scale = temperatures if result.calibrated else [1.0] * MEMBERS
        p, measure = probs(made, KNOWN, scale), {"de": mutual_information, "crewra": width}[result.method]
        mean = p.mean(0)
        assert result.accuracy == accuracy_score(labels, mean.argmax(1))
        assert result.nll == pytest.approx(log_loss(labels, mean), rel=1e-5)
        assert result.brier == pytest.approx(2 * brier_score_loss(labels, mean[:, 1]), rel=1e-5)
        each = [accuracy_score(labels, member.argmax(1)) for member in p]
        assert result.members == pytest.approx((min(each), sum(each) / MEMBERS, max(each)))
        assert result.mean_eu == pytest.approx(measure(p).mean(), rel=1e-4)
        aurocs = []
        for name, data in {"far": FAR, "near": NEAR}.items():
            eu = np.concatenate([measure(p), measure(probs(made, data, scale))])
            aurocs.append(roc_auc_score(np.arange(len(eu)) >= len(KNOWN), eu))
            assert result.ood[name].auroc == pytest.approx(aurocs[-1], abs=1e-3)
        assert result.mean_auroc == pytest.approx(np.mean(aurocs), abs=1e-3)


def forwards(made):
    """Samples that each member was asked about since the last look."""
    found = {net.seen for net in made.nets}
    for net in made.nets:
        net.calls, net.seen = 0, 0
    (each,) = found
    return each


def test_the_members_run_once_over_each_set():
    made = ensemble(temperatures=[2.0] * MEMBERS)
    evaluate(made, KNOWN, {"far": FAR}, ["de", "crewra"])
    assert [net.calls for net in made.nets] == [2] * MEMBERS
    assert forwards(made) == len(KNOWN) + len(FAR)


def test_a_report_and_all_that_follows_an_evaluation_forward_nothing_again(tmp_path):
    made = ensemble(temperatures=[2.0] * MEMBERS)
    write_report(tmp_path / "alone.html", made, KNOWN, ood={"far": FAR, "near": NEAR})
    assert forwards(made) == len(KNOWN) + len(FAR) + len(NEAR)
    found = evaluate(made, KNOWN, {"far": FAR, "near": NEAR})
    assert forwards(made) == len(KNOWN) + len(FAR) + len(NEAR)
    write_report(tmp_path / "with.html", made, found)
    results_table([found])
    found.prediction("crewra", True, "far").epistemic.mean()
    assert forwards(made) == 0


def test_what_was_predicted_is_handed_on():
    made = ensemble(temperatures=[2.0] * MEMBERS)
    found = evaluate(made, KNOWN, {"far": FAR}, ["de", "crewra"])
    assert found.predictions.keys() == {(m, c) for m in ("de", "crewra") for c in (False, True)}
    for (method, calibrated), predictions in found.predictions.items():
        assert predictions.keys() == {"", "far"}
        wanted = (made if calibrated else made.plain()).read_as(method)
        for ood, data in {"": KNOWN, "far": FAR}.items():
            prediction = found.prediction(method, calibrated, ood)
            assert torch.equal(prediction.probs, wanted.predict(data).probs)
            assert torch.equal(prediction.epistemic, wanted.predict(data).epistemic)
            assert (prediction.method, prediction.classes) == (method, ("no", "yes"))
        again = result_of(method, calibrated, predictions[""], KNOWN.labels, {"far": predictions["far"]})
        assert again == found.result(method, calibrated)
    with pytest.raises(KeyError, match="no result for 'creens'"):
        found.prediction("creens")


def test_a_result_is_labelled_as_the_world_writes_it():
    found = evaluate(ensemble("credro", [2.0] * MEMBERS), KNOWN, methods=["credro", "en-dro"])
    assert [r.label for r in found.results] == ["CreDRO", "EN-DRO", "CreDRO, calibrated", "EN-DRO, calibrated"]


def test_what_to_measure_on_may_be_settled_before():
    made = ensemble()
    sets = sets_of(made, KNOWN, {"far": FAR})
    found = evaluate_sets(made, sets, ["de"], name="mine")
    assert found.results == evaluate(made, KNOWN, {"far": FAR}, ["de"]).results
    assert (found.name, found.sets) == ("mine", sets)


def test_a_methods_own_options_are_kept():
    """Read by its own name, an ensemble keeps the measure it was made with."""
    made = ensemble()
    made.method = make("crewra", measure="gap")
    result = evaluate(made, KNOWN, methods=["crewra"])["crewra"]
    assert result.mean_eu != pytest.approx(width(probs(made, KNOWN)).mean(), rel=1e-3)


def test_probabilities_of_anybodys_ensemble_give_the_same():
    made = ensemble()
    ours = evaluate(made, KNOWN, {"far": FAR}, ["de", "crewra"])
    theirs = evaluate(probs(made, KNOWN), KNOWN.labels.numpy(), {"far": probs(made, FAR)}, ["de", "crewra"])
    for a, b in zip(ours.results, theirs.results, strict=True):
        assert a.accuracy == b.accuracy
        assert a.ood["far"].auroc == pytest.approx(b.ood["far"].auroc, abs=1e-3)


def test_a_list_of_modules_goes_straight_in():
    made = ensemble()
    ours = evaluate(made, KNOWN, {"far": FAR})
    theirs = evaluate(made.nets, (KNOWN.samples, KNOWN.labels), {"far": FAR.samples.numpy()})
    assert theirs.results == ours.results
    assert (theirs.data, theirs.members, theirs.ood) == ("own", MEMBERS, {"far": 50})


def test_images_are_brought_to_the_shape_of_the_run():
    class Bright(nn.Module):
        def forward(self, x):
            return torch.stack([x.mean((1, 2, 3)), -x.mean((1, 2, 3))], 1)

    made = Ensemble([Bright(), Bright()], make("de"), Inputs((1, 4, 4)), ("a", "b"), torch.device("cpu"))
    grey = Data("grey", torch.zeros(3, 1, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.long), (1, 4, 4))
    colour = Data("colour", torch.zeros(2, 3, 9, 8, dtype=torch.uint8), torch.zeros(2, dtype=torch.long), (3, 9, 8))
    assert evaluate(made, grey, {"colour": colour}, ["de"])["de"].ood["colour"].auroc == 0.5
    with pytest.raises(ValueError, match=r"'known' has samples of shape \(3,\), the ensemble takes \(1, 4, 4\)"):
        evaluate(made, KNOWN)


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="methods must be among de, crewra, creens for this ensemble, got credro"):
        evaluate(ensemble(), KNOWN, methods=["credro"])
    with pytest.raises(ValueError, match="'known' must have class labels"):
        evaluate(ensemble(), KNOWN.relabel(torch.zeros(80)))
    with pytest.raises(ValueError, match=r"probs must have shape \(M, N, C\), got \(4, 3\)"):
        evaluate(np.ones((4, 3)), np.zeros(3))
    with pytest.raises(TypeError, match="labels must hold class numbers from 0, got <U1"):
        evaluate(np.full((2, 2, 2), 0.5), ["a", "b"])
    with pytest.raises(ValueError, match="at least one module"):
        evaluate([], KNOWN)
    with pytest.raises(ValueError, match=r"logits \(B, C\) of the same classes, got \[\(1, 2\), \(1, 3\)\]"):
        evaluate([nn.Linear(FEATURES, 2), nn.Linear(FEATURES, 3)], KNOWN)
    with pytest.raises(KeyError, match="no result for 'credro'; there are de"):
        evaluate(ensemble(), KNOWN, methods=["de"])["credro"]
