"""The runner: what it trains, what it does not train again, and that its numbers are what the networks say."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import credro
from credro.experiments import EXPERIMENTS, reproduce
from credro.experiments.claims import paper_difference
from credro.experiments.layouts import _paper_of
from credro.experiments.readings import load_reading
from credro.experiments.results import Results
from credro.experiments.spec import cells
from credro.experiments.tables import Number
from credro.methods import METHODS

QUIET = {"say": lambda text: None, "progress": "none", "executor": "sequential"}


def weights(out: Path) -> dict[str, float]:
    return {str(p.relative_to(out)): p.stat().st_mtime_ns for p in out.rglob("weights.safetensors")}


def refuse(*args, **kwargs):
    raise AssertionError("nothing may be trained or loaded")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The main experiment, once, in a tiny world."""
    from credro.experiments import WORLDS
    from tests.experiments.conftest import TINY

    out = tmp_path_factory.mktemp("main")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WORLDS, "tiny", TINY)
        tables = reproduce("main", "tiny", out=out, **QUIET)
    return out, tables


def test_auroc_is_what_scikit_learn_says_of_the_networks_themselves(finished, tiny):
    """From the weights alone: mutual information by hand, scikit-learn's AUROC, mean and deviation by NumPy."""
    out, tables = finished
    sets = tiny.load()
    scores = []
    for run in range(2):
        ensemble = credro.load(out / "runs" / f"tiny_erm_m3_run{run}")
        eu = {}
        for name, data in {"test": sets.test, **{k: read() for k, read in sets.ood.items()}}.items():
            with torch.no_grad():
                x = ensemble.inputs(data.batch(torch.arange(len(data))))
                p = torch.stack([net(x).softmax(-1) for net in ensemble.nets]).double().numpy()
            mean = p.mean(0)
            eu[name] = -(mean * np.log(mean)).sum(-1) + (p * np.log(p)).sum(-1).mean(0)
        truth = np.r_[np.zeros(len(eu["test"])), np.ones(len(eu["fashion-mini-letters"]))]
        scores.append(100 * roc_auc_score(truth, np.r_[eu["test"], eu["fashion-mini-letters"]]))
    row = next(r for r in tables[0].rows if r[:2] == ("DE", "plain"))
    number = row[tables[0].columns.index("fashion-mini-letters")]
    assert number.mean == pytest.approx(np.mean(scores), abs=1e-4)
    assert number.std == pytest.approx(np.std(scores, ddof=1), abs=1e-3)


def test_every_method_has_a_plain_and_a_calibrated_row(finished, tiny):
    _, tables = finished
    assert tables[0].columns == ("method", "as", *tiny.ood, "mean")
    assert len(tables[0].rows) == 2 * len(METHODS)
    plain, calibrated = (
        next(r for r in tables[0].rows if r[:2] == ("CreDRO", kind))[-1].mean for kind in ("plain", "calibrated")
    )
    assert plain != calibrated


def test_claims_compare_methods_within_a_run(finished):
    """CreDRO minus CreWra, from the kept EU by scikit-learn, run by run."""
    out, tables = finished
    found = []
    for run in range(2):
        scores = []
        for rule, method in (("cvar", "credro"), ("erm", "crewra")):
            eu = load_reading(out / "readings" / f"tiny_{rule}_m3_run{run}" / "strangers" / f"{method}.safetensors").eu
            strange = [np.r_[eu["test"], eu[name]] for name in eu if name != "test"]
            scores.append(np.mean([roc_auc_score(np.arange(len(s)) >= 120, s) for s in strange]))
        found.append(100 * (scores[0] - scores[1]))
    rows = next(t for t in tables if t.name == "claims").rows
    row = next(r for r in rows if r[1:3] == ("CreDRO − CreWra", "plain"))
    assert row[3].mean == pytest.approx(np.mean(found), abs=1e-4)
    assert row[3].std == pytest.approx(np.std(found, ddof=1), abs=1e-4)
    assert row[4] == f"{sum(d > 0 for d in found)} of 2"


def test_members_are_shared_between_rules_and_read_outs(finished):
    """CreDRO's last member and CreRL's first are a deep ensemble's: one file, not trained again."""
    out, _ = finished
    runs = out / "runs"
    assert len(list(runs.iterdir())) == 2 * 6  # six training rules, two runs
    for here, there, member in (("cvar", "erm", 2), ("relative_likelihood", "erm", 0)):
        a, b = (runs / f"tiny_{r}_m3_run0" / "members" / f"{member:02d}" for r in (here, there))
        assert (a / "weights.safetensors").samefile(b / "weights.safetensors")
        assert json.loads((a / "done.json").read_text())["trained_in"] == "tiny_erm_m3_run0"
    assert json.loads((runs / "tiny_cvar_m3_run0/members/02/done.json").read_text())["delta"] == 1.0


def test_again_trains_nothing_and_needs_no_network(finished, tiny, monkeypatch):
    out, tables = finished
    before = weights(out)

    monkeypatch.setattr("credro.experiments.runner.fit", refuse)
    again = reproduce("main", "tiny", out=out, **QUIET)
    assert again == tables
    assert weights(out) == before


def test_another_experiment_uses_what_is_there(finished, tiny):
    out, _ = finished
    before = weights(out)
    for name in ("members", "sets", "complexity", "densities"):
        reproduce(name, "tiny", out=out, **QUIET)
    assert weights(out) == before
    assert (out / "densities-tiny" / "densities.pdf").stat().st_size > 1000


@pytest.mark.parametrize("name", ["sizes", "delta", "spacing", "noise", "exact", "tightness", "regimes"])
def test_every_experiment_runs(name, finished, tiny, monkeypatch):
    """In the tiny world, with fewer variants: a table in four formats, and figures where there are any."""
    out, _ = finished
    whole = EXPERIMENTS[name]
    few = whole.variants[:1] + whole.variants[-1:] if name != "regimes" else whole.variants
    small = replace(
        whole,
        variants=tuple(replace(v, members=v.members and v.members // 2) for v in few),
        slsqp=min(whole.slsqp, 5),
    )
    monkeypatch.setitem(EXPERIMENTS, name, small)
    tables = reproduce(name, "tiny", runs=1, out=out, **QUIET)
    folder = out / f"{name}-tiny"
    for table in tables:
        assert {p.suffix for p in folder.glob(f"{table.name}.*")} >= {".md", ".csv", ".tex", ".json"}
        assert all(len(row) == len(table.columns) for row in table.rows)
        numbers = [entry for row in table.rows for entry in row if isinstance(entry, Number)]
        assert numbers
        assert all(math.isfinite(number.mean) for number in numbers)  # those that main has read are found as well
    assert bool(list(folder.glob("*.png"))) == any("figure" in x or "densities" in x for x in whole.layouts)
    monkeypatch.setattr("credro.experiments.runner.fit", refuse)
    assert str(reproduce(name, "tiny", runs=1, out=out, **QUIET)) == str(tables)  # as text: NaN differs from itself


def test_members_under_noise_are_those_of_the_noisy_run(finished, tiny, monkeypatch):
    out, _ = finished
    monkeypatch.setitem(EXPERIMENTS, "noise", replace(EXPERIMENTS["noise"], methods=("de", "credro")))
    tables = reproduce("noise", "tiny", runs=1, out=out, **QUIET)
    table = next(t for t in tables if t.name == "members")
    assert [row[:2] for row in table.rows] == [
        (f"noise {r}", m) for r in ("0%", "10%", "20%") for m in ("DE", "CreDRO")
    ]
    test = tiny.load(ood=False).test
    probs = credro.load(out / "runs" / "tiny_cvar_noise-0.2_m3_run0").predict(test).probs
    right = (torch.as_tensor(probs).argmax(-1) == test.labels).double().mean(1) * 100
    assert [entry.mean for entry in table.rows[-1][2:5]] == pytest.approx(right.tolist())


def test_the_papers_members_under_noise_stand_beside_ours():
    """Tab: AccLabelNoise, CreDRO's third member at 20 % noise: 0.851."""
    experiment = EXPERIMENTS["noise"]
    results = Results(experiment, "fashion", [])
    keys = {"method": "credro", "measure": "member_accuracy", "member": 2, "members": 5}
    assert [_paper_of(results, variant, **keys) for variant in experiment.variants] == [None, 0.905, 0.851]


def test_the_papers_differences_are_those_of_its_tables():
    """By hand from Tab: NoiseComparison, 10 %: CreDRO 88.92 and CreRAM 86.44 on average over the five sets."""
    by_rate = [paper_difference("credro", "creram", variant) for variant in EXPERIMENTS["noise"].variants]
    assert by_rate[:2] == [None, 2.5]
    assert paper_difference("credro", "crewra", EXPERIMENTS["sizes"].variants[0]) == 1.4


def test_noise_replaces_the_labels_it_says(tiny):
    clean, noisy = tiny.load(ood=False).train, tiny.load(noise=0.25, seed=1, ood=False).train
    assert int((clean.labels != noisy.labels).sum()) == round(0.25 * 160)
    assert torch.equal(clean.samples, noisy.samples)


def test_held_out_data_is_neither_trained_nor_tested_on(tiny):
    sets = tiny.load(ood=False)
    rows = [{t.numpy().tobytes() for t in part.samples} for part in (sets.train, sets.held_out, sets.test)]
    assert [len(part) for part in (sets.train, sets.held_out, sets.test)] == [160, 80, 120]
    assert not rows[0] & rows[1]
    assert not rows[0] & rows[2]


def test_cells_with_equal_keys_are_equal(tiny):
    """A folder's name must say everything that decides what is trained in it."""
    seen: dict[str, object] = {}
    for experiment in EXPERIMENTS.values():
        for preset in ("fashion", "cpu", "paper"):
            for cell in cells(experiment, preset, 2):
                what = (
                    cell.world.data, cell.world.net, cell.world.recipe, cell.world.samples, cell.world.held_out,
                    cell.world.groups, cell.world.train_groups, cell.variant.noise, cell.seed, cell.members,
                    cell.methods[0].rule,
                )  # fmt: skip
                assert seen.setdefault(f"{cell.key}", what) == what


def test_wrong_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="experiment must be one of main"):
        reproduce("mian", out=tmp_path)
    with pytest.raises(ValueError, match="preset must be one of fashion, cpu, paper, got 'gpu'"):
        reproduce("main", "gpu", out=tmp_path)
    with pytest.raises(ValueError, match="runs must be at least 1, got 0"):
        reproduce("main", runs=0, out=tmp_path)


SCRIPT = """
import sys
from credro.experiments import WORLDS, reproduce
from tests.experiments.conftest import TINY
if __name__ == "__main__":
    WORLDS["tiny"] = TINY
    reproduce("main", "tiny", runs=1, out=sys.argv[1], progress="none", executor="sequential", say=lambda t: None)
"""


def test_killed_and_started_again_it_trains_nothing_twice(tmp_path, finished):
    """Kill -9 at several moments; members that were done stay untouched, and the end is the undisturbed run's."""
    done, _ = finished
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    rng = np.random.default_rng(0)
    seen: dict[str, float] = {}
    for attempt in range(40):
        process = subprocess.Popen([sys.executable, str(script), str(tmp_path / "out")], env=environment)
        until = time.monotonic() + rng.uniform(3, 6) if attempt < 4 else float("inf")
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        now = {str(p): p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("done.json")}
        assert all(now[k] == v for k, v in seen.items())
        seen = now
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert process.returncode == 0
    for path in (tmp_path / "out" / "runs").rglob("weights.safetensors"):
        other = done / path.relative_to(tmp_path / "out")
        assert path.read_bytes() == other.read_bytes()
    ours, theirs = (
        load_reading(base / "readings/tiny_cvar_m3_run0/strangers/credro.safetensors")
        for base in (tmp_path / "out", done)
    )
    assert torch.equal(ours.eu["test"], theirs.eu["test"])
