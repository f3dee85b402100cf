import json
import math

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from torch import nn

from credro.assess import assess, assess_probs, flat, layout, table
from credro.data import Data
from credro.ensemble import Ensemble
from credro.methods import make
from credro.training.feed import Inputs

MEMBERS, CLASSES, FEATURES = 4, 2, 3


class Counted(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.weight = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(seed))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x @ self.weight


def ensemble(method="crewra", temperatures=None):
    nets = [Counted(seed) for seed in range(MEMBERS)]
    made = Ensemble(nets, make(method), Inputs((FEATURES,)), ("no", "yes"), torch.device("cpu"))
    made.temperatures = temperatures or made.temperatures
    return made


def samples(name, count, seed, scale=1.0):
    draw = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(count, FEATURES, generator=draw)
    return Data(name, x, torch.randint(0, CLASSES, (count,), generator=draw), (FEATURES,), ("no", "yes"))


KNOWN, FAR, NEAR = samples("known", 80, 0), samples("far", 50, 1, 3.0), samples("near", 60, 2)


def probs(made, data, temperatures=(1.0,) * MEMBERS):
    logits = [data.samples.double() @ net.weight.double() / t for net, t in zip(made.nets, temperatures, strict=True)]
    return softmax(np.stack([x.numpy() for x in logits]), axis=-1)


def mutual_information(p):
    return entropy(p.mean(0), axis=-1) - entropy(p, axis=-1).mean(0)


def width(p):
    return p[..., 1].max(0) - p[..., 1].min(0)


@pytest.mark.parametrize("temperatures", [None, [2.0, 0.5, 1.5, 3.0]])
def test_against_scikit_learn_and_scipy(temperatures):
    made = ensemble(temperatures=temperatures)
    found = assess(made, KNOWN, {"far": FAR, "near": NEAR}, ["de", "crewra"])
    assert [(s.method, s.calibrated) for s in found.lines] == [
        (m, c) for c in ((False, True) if temperatures else (False,)) for m in ("de", "crewra")
    ]
    assert made.temperatures == (temperatures or [1.0] * MEMBERS)
    labels = KNOWN.labels.numpy()
    for line in found.lines:
        scale = temperatures if line.calibrated else [1.0] * MEMBERS
        p, measure = probs(made, KNOWN, scale), {"de": mutual_information, "crewra": width}[line.method]
        mean = p.mean(0)
        assert line.accuracy == accuracy_score(labels, mean.argmax(1))
        assert line.nll == pytest.approx(log_loss(labels, mean), rel=1e-5)
        assert line.brier == pytest.approx(2 * brier_score_loss(labels, mean[:, 1]), rel=1e-5)
        each = [accuracy_score(labels, member.argmax(1)) for member in p]
        assert line.members == pytest.approx((min(each), sum(each) / MEMBERS, max(each)))
        assert line.mean_eu == pytest.approx(measure(p).mean(), rel=1e-4)
        aurocs = []
        for name, data in {"far": FAR, "near": NEAR}.items():
            eu = np.concatenate([measure(p), measure(probs(made, data, scale))])
            aurocs.append(roc_auc_score(np.arange(len(eu)) >= len(KNOWN), eu))
            assert line.ood[name].auroc == pytest.approx(aurocs[-1], abs=1e-3)
        assert line.mean_auroc == pytest.approx(np.mean(aurocs), abs=1e-3)


def test_the_members_run_once_over_each_set():
    made = ensemble(temperatures=[2.0] * MEMBERS)
    assess(made, KNOWN, {"far": FAR}, ["de", "crewra"])
    assert [net.calls for net in made.nets] == [2] * MEMBERS


def test_a_methods_own_options_are_kept():
    """Read by its own name, an ensemble keeps the measure it was made with."""
    made = ensemble()
    made.method = make("crewra", measure="gap")
    line = assess(made, KNOWN, methods=["crewra"])["crewra"]
    assert line.mean_eu != pytest.approx(width(probs(made, KNOWN)).mean(), rel=1e-3)


def test_probabilities_of_anybodys_ensemble_give_the_same():
    made = ensemble()
    ours = assess(made, KNOWN, {"far": FAR}, ["de", "crewra"])
    theirs = assess_probs(probs(made, KNOWN), KNOWN.labels.numpy(), {"far": probs(made, FAR)}, ["de", "crewra"])
    for a, b in zip(ours.lines, theirs.lines, strict=True):
        assert a.accuracy == b.accuracy
        assert a.ood["far"].auroc == pytest.approx(b.ood["far"].auroc, abs=1e-3)


def test_a_list_of_modules_goes_straight_in():
    made = ensemble()
    ours = assess(made, KNOWN, {"far": FAR})
    theirs = assess(made.nets, (KNOWN.samples, KNOWN.labels), {"far": FAR.samples.numpy()})
    assert theirs.lines == ours.lines
    assert (theirs.data, theirs.members, theirs.ood) == ("own", MEMBERS, {"far": 50})


def test_images_are_brought_to_the_shape_of_the_run():
    class Bright(nn.Module):
        def forward(self, x):
            return torch.stack([x.mean((1, 2, 3)), -x.mean((1, 2, 3))], 1)

    made = Ensemble([Bright(), Bright()], make("de"), Inputs((1, 4, 4)), ("a", "b"), torch.device("cpu"))
    grey = Data("grey", torch.zeros(3, 1, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.long), (1, 4, 4))
    colour = Data("colour", torch.zeros(2, 3, 9, 8, dtype=torch.uint8), torch.zeros(2, dtype=torch.long), (3, 9, 8))
    assert assess(made, grey, {"colour": colour}, ["de"])["de"].ood["colour"].auroc == 0.5
    with pytest.raises(ValueError, match=r"'known' has samples of shape \(3,\), the ensemble takes \(1, 4, 4\)"):
        assess(made, KNOWN)


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="methods must be among de, crewra, creens for this ensemble, got credro"):
        assess(ensemble(), KNOWN, methods=["credro"])
    with pytest.raises(ValueError, match="'known' must have class labels"):
        assess(ensemble(), KNOWN.relabel(torch.zeros(80)))
    with pytest.raises(ValueError, match=r"probs must have shape \(M, N, C\), got \(4, 3\)"):
        assess_probs(np.ones((4, 3)), np.zeros(3))
    with pytest.raises(TypeError, match="labels must hold class numbers from 0, got <U1"):
        assess_probs(np.full((2, 2, 2), 0.5), ["a", "b"])
    with pytest.raises(ValueError, match="at least one module"):
        assess([], KNOWN)
    with pytest.raises(ValueError, match=r"logits \(B, C\) of the same classes, got \[\(1, 2\), \(1, 3\)\]"):
        assess([nn.Linear(FEATURES, 2), nn.Linear(FEATURES, 3)], KNOWN)
    with pytest.raises(KeyError, match="no line for 'credro'"):
        assess(ensemble(), KNOWN, methods=["de"])["credro"]


def test_json_csv_and_text_hold_the_same():
    found = assess(ensemble(), KNOWN, {"far-away": FAR}, ["de"], name="mine")
    line = json.loads(json.dumps(found.to_dict(), allow_nan=False))["lines"][0]
    header, [row] = flat([found])
    cells = dict(zip(header, row, strict=True))
    assert cells["auroc:far-away"] == line["ood"]["far-away"]["auroc"]
    assert (cells["run"], cells["member_max"]) == ("mine", line["members"]["max"])
    text = layout([found]).splitlines()[-1].split()
    assert text == [
        "de",
        f"{100 * line['accuracy']:.2f}",
        f"{100 * line['ece']:.2f}",
        f"{100 * line['mean_auroc']:.2f}",
    ]


def test_runs_with_different_strangers_share_a_table():
    first = assess(ensemble(), KNOWN, {"far": FAR}, ["de"], name="first")
    second = assess(ensemble(), KNOWN, {"near": NEAR}, ["de"], name="second")
    lines = [line.split() for line in layout([first, second]).splitlines()[-2:]]
    assert [(r[0], r[4] == "-", r[5] == "-") for r in lines] == [("first", False, True), ("second", True, False)]
    assert math.isnan(assess(ensemble(), KNOWN, methods=["de"])["de"].mean_auroc)


def test_table_is_aligned():
    text = table([["a", "1.5", "x"], ["bcd", "-", "yz"]], ["name", "a long-number", "word"], widest=6)
    assert text.splitlines() == [
        "           a",
        "       long-",
        "name  number  word",
        "----  ------  ----",
        "a        1.5  x",
        "bcd        -  yz",
    ]
    assert table([], ["a"]).splitlines() == ["a", "-"]
