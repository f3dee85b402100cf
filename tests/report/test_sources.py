"""What a report can be made from: everything is predicted once, whatever it is, and an evaluation not at all."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import credro
from credro import methods
from credro.data.base import Data
from credro.report.page import write_report
from tests.report.test_page import Parsed, ensemble, written

FAR = 9 + torch.rand(40, 3, generator=torch.Generator().manual_seed(2))


def rows(count: int, seed: int) -> Data:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    return Data("rows", x, x.argmax(1), (3,), ("ant", "bee", "cat"))


@pytest.fixture(scope="module")
def run():
    recipe = credro.Recipe(epochs=40, lr=0.1)
    found = credro.fit("mlp", rows(240, 0), members=2, recipe=recipe, executor="sequential", progress="none")
    return found.without_run()  # no cache: what is predicted is forwarded


@pytest.fixture
def forwarded(run):
    """How many samples have gone through each network."""
    counts = [0] * len(run.nets)

    def count(i):
        def hook(net, inputs, output):
            counts[i] += len(inputs[0])

        return hook

    hooks = [net.register_forward_hook(count(i)) for i, net in enumerate(run.nets)]
    yield counts
    for hook in hooks:
        hook.remove()


def test_every_sample_is_forwarded_once(run, forwarded, tmp_path):
    write_report(tmp_path / "r.html", run, rows(200, 1), ood={"far": FAR})
    assert forwarded == [240, 240]


def test_an_evaluation_is_reported_without_predicting(run, forwarded, tmp_path):
    evaluation = credro.evaluate(run, rows(200, 1), {"far": FAR}, name="mine")
    before = list(forwarded)
    whole = written(tmp_path, run, rows(200, 1), ood={"far": FAR}, name="mine")
    assert [b - a for a, b in zip(before, forwarded, strict=True)] == [240, 240]
    before = list(forwarded)
    with_run, alone = written(tmp_path, run, evaluation), written(tmp_path, evaluation)
    assert forwarded == before
    assert with_run == whole  # byte for byte
    members = "Every member of the run"
    tables, others = Parsed(alone).tables, Parsed(whole).tables
    assert {k: v for k, v in tables.items() if k != members} == {k: v for k, v in others.items() if k != members}
    assert [row[:2] for row in tables[members]] == [row[:2] for row in others[members]]  # of the fit nothing is known
    assert "How the run was made" in whole
    assert "How the run was made" not in alone


def test_an_evaluation_says_what_is_against_it(run, tmp_path):
    with pytest.warns(credro.evaluation.SeenWarning):
        evaluation = credro.evaluate(run, rows(240, 0), {"far": FAR}, seen="keep")
    assert "All 240 samples were trained on" in written(tmp_path, evaluation)


def test_an_evaluation_is_read_by_any_of_its_methods(run, tmp_path):
    evaluation = credro.evaluate(run, rows(200, 1))
    for method in run.readers:
        marked = re.search(
            r'<tr class="marked"><th scope="row">(.*?)</th>', written(tmp_path, evaluation, method=method)
        )
        assert Parsed(marked[1]).text == [methods.label(method)]
    with pytest.raises(credro._names.UnknownName) as wrong:
        write_report(tmp_path / "x.html", evaluation, method="crewra")
    assert (wrong.value.argument, wrong.value.allowed) == ("method", tuple(run.readers))


def test_an_evaluation_of_probabilities_needs_its_labels(tmp_path):
    probs, labels = ensemble(60, 3)
    evaluation = credro.evaluate(probs, labels, {"far": probs[:, :20]}, name="mine")
    whole = written(tmp_path, probs, labels, ood={"far": probs[:, :20]}, name="mine")
    assert written(tmp_path, evaluation, labels) == whole
    for wrong in (None, labels[:5], labels.astype(float)):
        with pytest.raises(credro._names.ArgumentError, match="data must be the 60 labels") as error:
            write_report(tmp_path / "x.html", evaluation, wrong)
        assert error.value.argument == "data"


def test_what_does_not_go_together_is_refused(run, tmp_path):
    evaluation = credro.evaluate(run, rows(200, 1))
    with pytest.raises(credro._names.ArgumentError, match="ood must not be given") as error:
        write_report(tmp_path / "x.html", evaluation, ood={"far": FAR})
    assert error.value.argument == "ood"
    other = credro.Ensemble.of([nn.Linear(3, 3)], rows(20, 3))
    with pytest.raises(credro._names.ArgumentError, match="an evaluation of 2 members, source has 1"):
        write_report(tmp_path / "x.html", other, evaluation)


def test_a_method_that_is_new_to_the_table(tmp_path, monkeypatch):
    """A line in the table is enough: the page names it, and shows it beside the others."""
    entry = replace(methods.METHODS["crewra"], label="Own<b>", title="A method of <i>one's</i> own", colour="#123456")
    monkeypatch.setitem(methods.METHODS, "own", entry)
    torch.manual_seed(0)
    text = written(tmp_path, [nn.Linear(3, 3) for _ in range(3)], rows(100, 1), method="own")
    rows_ = Parsed(text).records("Results of every method")
    assert [row["Method"] for row in rows_] == ["DE", "CreWra", "CreEns", "Own<b>"]
    assert "read as Own<b> (a method of <i>one's</i> own)" in " ".join(Parsed(text).text)
    values = [{k: v for k, v in row.items() if k != "Method"} for row in rows_]
    assert values[3] == values[1]
    assert np.array_equal(methods.colour("own"), "#123456")
