"""One more line in the table of methods is a method everywhere: nothing else knows the names of the ten."""

from __future__ import annotations

import pytest

import credro
from credro.evaluation import evaluate, results_table
from credro.experiments import EXPERIMENTS, reproduce
from credro.members import Biased, CVaR, Softmax
from credro.methods import METHODS, Entry, Method
from credro.readouts import BoxReadOut
from credro.report.page import write_report

MIXED = Method(start=Biased(), risk=CVaR(), head=Softmax(norm="batch"), readout=BoxReadOut())
QUIET = {"say": lambda text: None, "progress": "none", "executor": "sequential"}


@pytest.fixture(autouse=True)
def eleventh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "cremix", Entry(MIXED, "CreMix", "A mixture", "this test", "#123456"))


def test_it_is_trained_evaluated_and_reported(tiny, tmp_path):
    data = tiny.load()
    ens = credro.fit("mlp", data.train, method="cremix", members=3, recipe=tiny.recipe, out=tmp_path / "run",
                     executor="sequential", progress="none")  # fmt: skip
    assert ens.method.name == "cremix"
    evaluation = evaluate(credro.load(tmp_path / "run"), data.test, {k: v.read() for k, v in data.ood.items()})
    assert "CreMix" in results_table([evaluation])
    assert "CreMix" in write_report(tmp_path / "report.html", ens, evaluation).read_text()


def test_experiments_that_compare_all_methods_have_it(tiny, tmp_path):
    """In every table and figure of ``main`` and of others that take all: those names were read when it was imported."""
    tables = reproduce("main", "tiny", runs=1, out=tmp_path, **QUIET)
    for table in tables[:2]:
        assert sum(row[0] == "CreMix" for row in table.rows) == 2  # plain and calibrated
    for name in ("members", "complexity", "densities", "medical", "tightness"):
        for table in reproduce(name, "tiny", runs=1, out=tmp_path, **QUIET):
            assert any(row[0] == "CreMix" for row in table.rows), name
    assert EXPERIMENTS["main"].compared[-1] == "cremix"
