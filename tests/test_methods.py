"""The table of methods, and any other combination of the five choices."""

from __future__ import annotations

import ast
import itertools
import json
from pathlib import Path

import pytest
import torch

import credro
from credro.members import (
    Biased,
    CVaR,
    End,
    Fresh,
    Interval,
    Mean,
    RandomSubset,
    RelativeLikelihood,
    Softmax,
    Variational,
)
from credro.methods import (
    CHOICES,
    METHODS,
    Method,
    as_read,
    colour,
    for_regression,
    known_methods,
    label,
    make,
    method_of,
    of_probabilities,
    options,
)
from credro.readouts import (
    AveragedBoxReadOut,
    BoxReadOut,
    HullReadOut,
    MeanReadOut,
    NearestHullReadOut,
)
from credro.training.executors import run_sequential
from tests.training.common import blobs, small_net, trained

SOURCE = Path(credro.__file__).parent

TABLE = {  # the paper's methods and their five choices
    "de": (Fresh, Mean, Softmax, End, MeanReadOut),
    "crewra": (Fresh, Mean, Softmax, End, BoxReadOut),
    "creens": (Fresh, Mean, Softmax, End, NearestHullReadOut),
    "en-dro": (Fresh, CVaR, Softmax, End, MeanReadOut),
    "credro": (Fresh, CVaR, Softmax, End, BoxReadOut),
    "credro-hull": (Fresh, CVaR, Softmax, End, HullReadOut),
    "creram": (Fresh, RandomSubset, Softmax, End, BoxReadOut),
    "crerl": (Biased, Mean, Softmax, RelativeLikelihood, BoxReadOut),
    "crede": (Fresh, CVaR, Interval, End, AveragedBoxReadOut),
    "crebnn": (Fresh, Mean, Variational, End, HullReadOut),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_method_is_five_choices(name):
    method, entry = make(name), METHODS[name]
    assert tuple(type(getattr(method, what)) for what in CHOICES) == TABLE[name]
    assert (method.name, tuple(TABLE)) == (name, tuple(METHODS))
    assert entry.title
    assert entry.reference
    assert len({e.colour for e in METHODS.values()}) == len(METHODS)


def test_options_reach_the_choice_they_belong_to():
    method = make("credro", delta_g=0.7, measure="gap", remainder=True)
    assert method.risk == CVaR(delta_g=0.7, remainder=True)
    assert method.readout == BoxReadOut(measure="gap")
    assert method.name == "credro"
    assert make("creens", alpha=0.8).readout == NearestHullReadOut(alpha=0.8)
    assert options("de") == {"norm": "none"}
    assert options("credro") == {
        "delta_g": 0.5,
        "spacing": "uniform",
        "delta": None,
        "remainder": False,
        "norm": "none",
        "measure": "auto",
    }


def test_a_choice_is_changed_by_its_name():
    method = make("credro", start="biased", bias=7.0, **{"head.norm": "batch"})
    assert method == Method(Biased(7.0), CVaR(), Softmax(norm="batch"), End(), BoxReadOut(), name=method.name)
    assert method.name == "credro+start=biased"
    assert label(method.name) == "CreDRO, start=biased"
    assert make("de", risk=CVaR(delta=0.5)).risk.level == 0.5
    assert make("de", risk={"kind": "cvar", "delta": 0.5}) == make("de", risk=CVaR(delta=0.5))


def test_unknown_names_and_options_say_what_there_is():
    with pytest.raises(ValueError, match=r"method must be one of de, .*got 'creddro' \(did you mean 'credro'\?\)"):
        make("creddro")
    with pytest.raises(ValueError, match=r"'credro' has no option 'alpha'.*defaults: delta_g=0\.5"):
        make("credro", alpha=0.1)
    with pytest.raises(ValueError, match="'de' has no option 'delta_g'"):
        make("de", delta_g=0.7)
    with pytest.raises(ValueError, match="delta_g must lie in"):
        make("credro", delta_g=7)
    with pytest.raises(ValueError, match=r"start must be one of fresh, biased, got 'baised' \(did you mean 'biased'"):
        make("credro", start="baised")
    with pytest.raises(ValueError, match="has no option 'nrom'"):
        make("credro", **{"head.nrom": "batch"})
    with pytest.raises(ValueError, match="delta_g must be a number, got 'x'"):
        make("credro", delta_g="x")


def test_what_makes_no_sense_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"reads bounds of the members, and head 'softmax' gives probabilities: take"):
        Method(readout="averaged_box")
    with pytest.raises(ValueError, match=r"'hull' reads probabilities or gaussians .* head 'interval' gives bounds"):
        Method(head="interval", readout="hull")
    with pytest.raises(ValueError, match="regression has none"):
        Method(start="biased", head="gaussian", readout="box")
    with pytest.raises(ValueError, match="method 'crede' is for classes; these do regression: de, "):
        make("crede").for_regression()
    assert "credro" in for_regression()
    assert "crerl" not in for_regression()


def test_methods_that_agree_in_all_but_the_readout_have_the_same_networks():
    assert known_methods(make("de")) == ["de", "crewra", "creens"] == of_probabilities()
    assert known_methods(make("credro", delta_g=0.7)) == ["en-dro", "credro", "credro-hull"]
    assert known_methods(make("creram")) == ["creram"]
    assert make("en-dro").training() == make("credro").training()
    assert make("en-dro").training() != make("credro", delta_g=0.7).training()
    read = as_read(make("credro", delta_g=0.7), "en-dro")
    assert (read.risk, read.readout) == (CVaR(delta_g=0.7), MeanReadOut())
    with pytest.raises(ValueError, match=r"method 'de' needs members trained by .*risk mean.*These read them: en-dro"):
        as_read(make("credro"), "de")
    with pytest.raises(ValueError, match=r"needs members trained by .*delta_g=0\.7"):
        as_read(make("credro"), make("en-dro", delta_g=0.7))


@pytest.mark.parametrize("method", [make("credro", delta_g=0.7), make("crede"), make("de", start="biased", bias=3.0)])
def test_config_is_enough_to_make_it_again(method):
    assert method_of(json.loads(json.dumps(method.config()))) == method


def test_a_method_of_ones_own_is_asked_for():
    config = make("credro").config()
    config["risk"] = {"kind": "mine"}
    with pytest.raises(ValueError, match=r"risk 'mine' is none of credro's own: give it as method="):
        method_of(config)


def test_colours_and_labels_of_methods_that_are_not_in_the_table():
    assert label("mine") == "mine"
    assert colour("mine") not in {entry.colour for entry in METHODS.values()}


def same_weights(a, b):
    pairs = [
        zip(x.state_dict().values(), y.state_dict().values(), strict=True) for x, y in zip(a.nets, b.nets, strict=True)
    ]
    return all(torch.equal(s, t) for pair in pairs for s, t in pair)


def named(choices):
    return "-".join(str(value) for part in choices for value in part.config().values())[:70]


HEADS = [Softmax(), Softmax(norm="batch"), Interval(), Interval(norm="none"), Variational(samples=2)]
COMBINATIONS = list(
    itertools.product(
        [Fresh(), Biased(5.0)], [Mean(), CVaR(delta_g=0.6), RandomSubset()], HEADS, [End(), RelativeLikelihood(0.5)]
    )
)


@pytest.mark.parametrize(
    "choices", COMBINATIONS, ids=lambda c: "-".join(str(v) for p in c for v in p.config().values())[:70]
)
def test_every_combination_trains_loads_and_predicts(choices, tmp_path):
    start, risk, head, stop = choices
    data = blobs(32)
    readouts = [r for r in (MeanReadOut, BoxReadOut, HullReadOut, NearestHullReadOut, AveragedBoxReadOut)
                if head.gives in r.takes]  # fmt: skip
    method = Method(start, risk, head, stop, readouts[0]())
    ensemble = trained(small_net, data, tmp_path / "run", members=3, method=method, recipe=credro.Recipe(epochs=1))
    again = credro.load(tmp_path / "run", make_net=small_net)
    assert again.method.training() == method.training()
    for readout in readouts:
        read = Method(start, risk, head, stop, readout())
        first, second = (e.read_as(read).predict(data[0]) for e in (ensemble, again))
        assert torch.equal(first.mean, second.mean)
        assert torch.allclose(first.mean.sum(1), torch.ones(32, dtype=first.mean.dtype), atol=1e-6)
        eu = torch.as_tensor(first.epistemic)
        assert bool((eu >= 0).all())
        if first.set is not None and readout is not NearestHullReadOut:
            assert bool(first.set.contains(first.mean).all())


UNUSUAL = [
    Method(Biased(5.0), CVaR(delta_g=0.6), Softmax(norm="batch"), End(), BoxReadOut()),
    Method(Biased(5.0), RandomSubset(), Interval(norm="none"), RelativeLikelihood(0.5), BoxReadOut()),
]


@pytest.mark.parametrize("method", UNUSUAL, ids=lambda m: m.name[:30])
def test_a_combination_is_trained_by_every_executor_that_can(method, tmp_path):
    data = blobs(48)
    plain = trained(small_net, data, tmp_path / "one", members=3, method=method)
    apart = trained(small_net, data, tmp_path / "processes", members=3, method=method, executor="processes", workers=2)
    assert same_weights(plain, apart)
    if method.stop == End():
        stacked = trained(small_net, data, tmp_path / "stacked", members=3, method=method, executor="stacked")
        assert torch.allclose(plain.predict(data[0]).mean, stacked.predict(data[0]).mean, atol=1e-4)
    else:
        with pytest.raises(ValueError, match="executor='stacked' cannot train this run"):
            trained(small_net, data, tmp_path / "stacked", members=3, method=method, executor="stacked")


def test_a_combination_resumes_to_the_same_weights(tmp_path, monkeypatch):
    data, method = blobs(48), UNUSUAL[1]
    recipe = credro.Recipe(epochs=4, batch_size=16, lr=0.05)
    whole = trained(small_net, data, tmp_path / "whole", members=3, method=method, recipe=recipe)
    seen = []

    def interrupted(job, report):
        def stop_after_three(progress):
            report(progress)
            seen.append(progress)
            if len(seen) == 3:
                raise KeyboardInterrupt

        run_sequential(job, stop_after_three)

    with monkeypatch.context() as patch:
        patch.setattr("credro.training.train.run_sequential", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained(small_net, data, tmp_path / "cut", members=3, method=method, recipe=recipe, checkpoint_seconds=0)
    assert same_weights(whole, trained(small_net, data, tmp_path / "cut", members=3, method=method, recipe=recipe))


def test_equal_members_of_other_combinations_are_reused(tmp_path):
    data = blobs(48)
    de = trained(small_net, data, tmp_path / "de", members=3, method="de")
    biased = make("de", start="biased")
    other = trained(small_net, data, tmp_path / "biased", members=3, method=biased, reuse=[tmp_path / "de"])
    assert [r.trained_in for r in other.records] == ["de", None, None]  # the first member starts fresh
    for a, b in zip(de.nets[0].parameters(), other.nets[0].parameters(), strict=True):
        assert torch.equal(a, b)
    alone = trained(small_net, data, tmp_path / "alone", members=3, method=biased)
    assert same_weights(alone, other)
    normed = trained(
        small_net, data, tmp_path / "n", members=3, method=make("de", norm="batch"), reuse=[tmp_path / "de"]
    )
    assert [r.trained_in for r in normed.records] == [None] * 3


def test_class_weights_change_crede(tmp_path):
    """A loss of one's own reaches every head, or is refused."""
    data = blobs(60)
    weights = torch.tensor([1.0, 50.0, 1.0])

    def weighted(output, target):
        return torch.nn.functional.cross_entropy(output, target, weights, reduction="none")

    plain = trained(small_net, data, tmp_path / "plain", method="crede")
    heavy = trained(small_net, data, tmp_path / "heavy", method="crede", loss=weighted)
    assert not same_weights(plain, heavy)
    assert heavy.predict(data[0]).mean[:, 1].mean() > plain.predict(data[0]).mean[:, 1].mean() + 0.05


@pytest.mark.parametrize("loss", ["weights", "focal"])
def test_crerl_compares_likelihoods_whatever_the_loss(tmp_path, loss):
    """Three times the cross-entropy has three times the loss, and the same likelihood."""
    data = blobs(60)

    def three_times(output, target):
        return 3 * torch.nn.functional.cross_entropy(output, target, reduction="none")

    recipe = credro.Recipe(epochs=3, batch_size=16, lr=0.02, loss="focal" if loss == "focal" else "cross_entropy")
    ensemble = trained(
        small_net, data, tmp_path, members=3, method="crerl", recipe=recipe,
        loss=three_times if loss == "weights" else None,
    )  # fmt: skip
    inputs = ensemble.inputs(data[0])
    logs = [float(net(inputs).log_softmax(-1)[range(60), data[1]].mean()) for net in ensemble.nets]
    for record, own in zip(ensemble.records[1:], logs[1:], strict=True):
        expected = float(torch.tensor(own - logs[0]).exp())
        assert record.traits["relative_likelihood"] == pytest.approx(expected, rel=1e-4)


def test_nobody_else_knows_a_methods_name():
    """But for what the paper's experiments compare, and the default of an argument."""
    names, found = set(METHODS) - {"credro"}, []  # which is the package's name as well
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE).as_posix()
        if inside == "methods.py" or inside.startswith("experiments/"):
            continue
        tree = ast.parse(path.read_text())
        defaults = {id(d) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)
                    for d in [*f.args.defaults, *f.args.kw_defaults] if d is not None}  # fmt: skip
        defaults |= {id(a.value) for a in ast.walk(tree) if isinstance(a, ast.AnnAssign) and a.value is not None}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in names and id(node) not in defaults:
                found.append(f"{inside}:{node.lineno} {node.value}")
    assert found == []
