"""Members with equal identity are the same network, bit for bit: what lets one run take another's."""

from itertools import combinations

import pytest
import torch

import credro
from credro.data import limit, load
from credro.methods import make
from credro.training.checkpoint import read_tensors
from credro.training.run import Run
from credro.training.share import share_members

RECIPE = credro.Recipe(epochs=2, batch_size=32, lr=0.05)
RUNS = [
    ("de", 2, {}),
    ("de", 3, {}),
    ("credro", 3, {}),
    ("credro", 2, {"delta_g": 0.75}),
    ("credro", 5, {}),
    ("creram", 3, {}),
    ("creram", 5, {}),
    ("crerl", 2, {}),
    ("crerl", 3, {}),
    ("crede", 2, {}),
    ("crede", 3, {}),
    ("crebnn", 3, {}),
    ("crebnn", 5, {}),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    whole = load("digits", split="train")
    data = whole.subset(limit(len(whole), 96, 0))
    out = []
    for name, members, options in RUNS:
        method = make(name, **options)
        folder = base / f"{name}-{members}-{len(options)}"
        credro.fit("mlp", data, method=method, members=members, recipe=RECIPE, out=folder, executor="sequential",
                   progress="none")  # fmt: skip
        out.append((method.rule, members, Run(folder)))
    return data, out


def test_equal_identity_means_equal_weights_and_different_means_different(runs):
    equal = 0
    for (rule_a, a, run_a), (rule_b, b, run_b) in combinations(runs[1], 2):
        for i in range(min(a, b)):
            first, second = (read_tensors(run.weights(i))[0] for run in (run_a, run_b))
            same = first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
            claimed = rule_a.identity(i, a) == rule_b.identity(i, b)
            assert same or not claimed, (rule_a, a, rule_b, b, i)
            equal += claimed
    # de 2/3: 2. credro: M=3,5 begin alike, delta 1 of M=3 is de's 3rd, 0.75 ends at de's 2nd (twice: de 2 and de 3).
    assert equal >= 12


def test_a_run_takes_what_another_has(runs, tmp_path):
    data, trained = runs
    de = next(run for rule, members, run in trained if rule.name == "erm" and members == 3)
    shared = credro.fit("mlp", data, method="credro", members=3, recipe=RECIPE, out=tmp_path / "new",
                        executor="sequential", progress="none", share=[de.folder])  # fmt: skip
    alone = next(run for rule, members, run in trained if rule.name == "cvar" and members == 3)
    for i in range(3):
        a, b = (read_tensors(run.weights(i))[0] for run in (shared.run, alone))
        assert all(torch.equal(a[k], b[k]) for k in a)
    assert [r.get("trained_in") for r in shared.records] == [None, None, de.folder.name]
    assert [r["delta"] for r in shared.records] == [0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    "change", [{"recipe": {"lr": 0.1}}, {"data": {"fingerprint": "other"}}, {"network": {"name": "cnn"}}]
)
def test_nothing_is_taken_from_a_run_that_differs(runs, tmp_path, change):
    _, trained = runs
    de = next(run for rule, members, run in trained if rule.name == "erm" and members == 3)
    config = {**de.config(), **change}
    assert share_members(Run(tmp_path), [de.folder], make("de").rule, config) == []
    assert share_members(Run(tmp_path), [de.folder], make("de").rule, de.config()) == [0, 1, 2]
