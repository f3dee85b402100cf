"""Members with equal identity are the same network, bit for bit: what lets one run take another's."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch

import credro
from credro.data import limit, load
from credro.methods import make
from credro.training.files import digest_of, read_tensors, write_json
from credro.training.records import Network
from credro.training.reuse import reuse_members
from credro.training.run import Run

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
        out.append((method, members, Run(folder)))
    return data, out


def named(runs, name, members=3):
    return next(run for method, count, run in runs if (method.name, count) == (name, members))


def test_equal_identity_means_equal_weights_and_different_means_different(runs):
    equal = 0
    for (method_a, a, run_a), (method_b, b, run_b) in combinations(runs[1], 2):
        for i in range(min(a, b)):
            first, second = (read_tensors(run.weights(i))[0] for run in (run_a, run_b))
            same = first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
            claimed = method_a.member(i, a).identity() == method_b.member(i, b).identity()
            assert same or not claimed, (method_a, a, method_b, b, i)
            equal += claimed
    # de 2/3: 2. credro: M=3,5 begin alike, delta 1 of M=3 is de's 3rd, 0.75 ends at de's 2nd (twice: de 2 and de 3).
    assert equal >= 12


def test_a_run_takes_what_another_has(runs, tmp_path):
    data, trained = runs
    de = named(trained, "de")
    reused = credro.fit("mlp", data, method="credro", members=3, recipe=RECIPE, out=tmp_path / "new",
                        executor="sequential", progress="none", reuse=[de.folder])  # fmt: skip
    alone = named(trained, "credro")
    for i in range(3):
        a, b = (read_tensors(run.weights(i))[0] for run in (reused.run, alone))
        assert all(torch.equal(a[k], b[k]) for k in a)
    assert [r.trained_in for r in reused.records] == [None, None, de.folder.name]
    assert [r.delta for r in reused.records] == [0.5, 0.75, 1.0]
    assert [r.weights for r in reused.records] == [digest_of(reused.run.weights(i)) for i in range(3)]


CHANGES = {
    "recipe": lambda c: replace(c, recipe=c.recipe.with_(lr=0.1)),
    "data": lambda c: replace(c, data=replace(c.data, fingerprint="other")),
    "network": lambda c: replace(c, network=Network("cnn")),
    "inputs": lambda c: replace(c, inputs=replace(c.inputs, std=(0.5,))),
    "loss": lambda c: replace(c, loss="focal"),
    "held-out data": lambda c: replace(c, held_out="other"),
    "threads": lambda c: replace(c, execution=replace(c.execution, threads=c.execution.threads + 1)),
    "stacked": lambda c: replace(c, execution=replace(c.execution, executor="stacked")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_taken_from_a_run_that_differs(runs, tmp_path, change):
    de = named(runs[1], "de")
    config = de.config()
    assert reuse_members(Run(tmp_path), [de.folder], make("de"), CHANGES[change](config)) == []
    by_processes = replace(config, execution=replace(config.execution, executor="processes"))  # to the same weights
    assert reuse_members(Run(tmp_path), [de.folder], make("de"), by_processes) == [0, 1, 2]


def test_folders_that_hold_no_run_and_methods_of_ones_own_are_passed_over(runs, tmp_path):
    de, own = named(runs[1], "de"), tmp_path / "own"
    other = de.config().to_json()
    other["method"]["risk"] = {"kind": "somebody's"}
    write_json(own / "config.json", other)
    assert reuse_members(Run(tmp_path / "new"), [tmp_path / "nowhere", own], make("de"), de.config()) == []
