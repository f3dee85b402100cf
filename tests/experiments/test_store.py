"""Results on disk: only what was made of the very same things is used, and only if it is whole."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from credro._records import RecordError
from credro.experiments import BENCHMARKS, EXPERIMENTS, Benchmark, Experiment, Variant, reproduce
from credro.experiments._store import kept, result_key, result_path, run_folder
from credro.experiments.spec import cells
from credro.training.files import read_tensors, write_tensors
from credro.training.recipe import Recipe
from tests.experiments.conftest import TINY

FEW = Experiment("few", "Two methods", ("auroc",), ("de", "crewra"))


class Said(list[str]):
    """What a run says, to be looked through."""

    def __call__(self, text: str) -> None:
        self.append(text)

    def anew(self) -> int:
        """Results that could not be used."""
        return sum("made anew" in text for text in self)

    def trained(self) -> int:
        """Ensembles that were trained or measured again."""
        return sum(text.startswith("[") for text in self)


def run(out: Path, **options: object) -> tuple[list[float], Said]:
    """Mean AUROC of every row, and what was said."""
    said = Said()
    tables = reproduce("few", "tiny", runs=1, out=out, say=said, progress="none", executor="sequential", **options)
    return [row[-1].mean for row in tables[0].rows], said  # type: ignore[union-attr]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch, tiny: Benchmark) -> None:
    monkeypatch.setitem(EXPERIMENTS, "few", FEW)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """The experiment, run once; tests take copies of its folder."""
    out = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BENCHMARKS, "tiny", TINY)
        patch.setitem(EXPERIMENTS, "few", FEW)
        return out, run(out)[0]


@pytest.fixture
def out(once: tuple[Path, list[float]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(once[0], tmp_path / "out"))


def test_the_same_again_is_used(out, once):
    values, said = run(out)
    assert values == once[1]
    assert said.anew() == said.trained() == 0


def test_a_benchmark_that_is_defined_anew_does_not_get_old_results(tmp_path, monkeypatch):
    """``sets`` with 160 samples and 1 epoch, then 2,000 and 5 under the same name: as if there had been nothing."""
    quiet = {"say": lambda text: None, "progress": "none", "executor": "sequential", "runs": 1}

    def sets(out: str) -> list[float]:
        return [row[2].mean for row in reproduce("sets", "tiny", out=tmp_path / out, **quiet)[0].rows]

    monkeypatch.setitem(BENCHMARKS, "tiny", TINY.with_(samples=160, epochs=1))
    old = sets("used")
    monkeypatch.setitem(BENCHMARKS, "tiny", TINY.with_(samples=2000, epochs=5))
    new = sets("used")
    assert new != old
    assert new == sets("fresh")


CHANGES = {
    "data": "digits", "net": "cnn", "recipe": TINY.recipe.with_(lr=0.04), "ood": TINY.ood[:1], "samples": 170,
    "held_out": 90, "test": 110, "reader": {"size": (8, 8)}, "corruptions": ("fog",), "severities": (1,),
    "corrupted": None, "size": (1, 14, 14), "weights": "w.pth", "groups": 0.5, "train_groups": (1,),
    "trunk": "efficientnet-lite0", "trunk_size": (96, 96),
}  # fmt: skip


def test_every_field_of_a_benchmark_is_in_the_key():
    """But its name, and how many members and runs it takes if nobody says how many."""
    assert {f.name for f in fields(Benchmark)} == {*CHANGES, "name", "members", "runs"}
    monkey = replace(FEW, benchmarks={"tiny": (TINY,)})
    cell = next(cells(monkey, "tiny", 1))
    data = TINY.load()

    def both(benchmark: Benchmark) -> tuple[str, Path]:
        changed = replace(cell, benchmark=benchmark)
        run = run_folder(Path(), changed, data)
        path = result_path(Path(), run, changed, cell.methods[0], False, 0)
        return result_key(changed, data, cell.methods[0], False, 0), path

    keys, paths = zip(both(TINY), *(both(replace(TINY, **{k: v})) for k, v in CHANGES.items()), strict=True)
    assert len(set(keys)) == len(set(paths)) == len(CHANGES) + 1
    assert both(replace(TINY, runs=9, members=9)) == both(TINY)


def test_what_else_makes_a_result_is_in_the_key():
    data = TINY.load()
    experiment = replace(FEW, benchmarks={"tiny": (TINY,)}, methods=("credro", "creens"))
    variants = (
        Variant(),
        Variant("n", noise=0.1),
        Variant("o", {"delta_g": 0.7, "alpha": 0.5}),
        Variant("m", members=4),
    )
    found = [
        result_key(cell, data, method, calibrated, slsqp)
        for cell in cells(replace(experiment, variants=variants), "tiny", 2)
        for method in cell.methods
        for calibrated in (False, True)
        for slsqp in (0, 5)
    ]
    assert len(set(found)) == len(found) == 2 * 2 * 4 * 2 * 2
    other = replace(data, stored={**data.stored, "test": "other"})
    cell = next(cells(experiment, "tiny", 1))
    assert result_key(cell, data, cell.methods[0], False, 0) != result_key(cell, other, cell.methods[0], False, 0)
    assert run_folder(Path(), cell, data) == run_folder(Path(), cell, other)  # it is not trained on


def test_a_variants_label_is_not_in_the_key_and_is_the_experiments_own(out):
    """Another experiment may have made the result under another label."""
    data = TINY.load()
    named = replace(FEW, benchmarks={"tiny": (TINY,)}, variants=(Variant("plain"),))
    cell = next(cells(named, "tiny", 1))
    run = run_folder(out, cell, data)
    path = result_path(out, run, cell, cell.methods[0], False, 0)
    assert kept(path, result_key(cell, data, cell.methods[0], False, 0), run, "plain").variant == "plain"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's own files of training and test images, and of an OOD set."""
    rng = np.random.default_rng(0)
    for name, shift in (("own", 0), ("far", 90)):
        arrays = {}
        for part in ("train", "test"):
            labels = arrays[f"y_{part}"] = rng.integers(0, 2, 80)
            images = rng.integers(0, 90, (80, 8, 8, 1)) + 60 * labels[:, None, None, None] + shift
            arrays[f"x_{part}"] = images.astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", **arrays)
    return tmp_path


def test_other_content_under_the_same_name_is_noticed(own, monkeypatch):
    """An OOD file and the training file are exchanged for others of the same size and name."""
    recipe = Recipe(epochs=1, batch_size=16, lr=0.05)
    mine = Benchmark("mine", "own.npz", "mlp", recipe, ("far.npz",), members=2, runs=1)
    monkeypatch.setitem(BENCHMARKS, "tiny", mine)
    first, said = run(own / "out", root=own)
    assert said.trained() == 1
    assert run(own / "out", root=own)[1].trained() == 0
    far = dict(np.load(own / "far.npz"))
    np.savez(own / "far.npz", **{**far, "x_test": 255 - far["x_test"]})
    second, said = run(own / "out", root=own)
    assert said.anew() == 2
    assert second != first
    assert second == run(own / "fresh", root=own)[0]
    arrays = dict(np.load(own / "own.npz"))
    np.savez(own / "own.npz", **{**arrays, "y_train": 1 - arrays["y_train"]})
    third, said = run(own / "out", root=own)
    assert said.trained() == 1
    assert third == run(own / "fresh2", root=own)[0]
    assert len(list((own / "out" / "runs").iterdir())) == 2


@pytest.mark.parametrize("where", [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9999])
def test_a_damaged_result_is_said_and_made_anew(where, out, once):
    """A byte is flipped, from the header of the file to the last of its numbers."""
    (path,) = out.rglob("de-????????.safetensors")
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 0x01
    path.write_bytes(content)
    values, said = run(out)
    assert said.anew() == said.trained() == 1
    assert values == once[1]
    assert run(out)[1].trained() == 0


def test_no_damage_is_ever_read_as_a_result(out):
    """Any one byte: either the file is refused, or nothing that is read from it has changed."""
    data = TINY.load()
    cell = next(cells(replace(FEW, benchmarks={"tiny": (TINY,)}), "tiny", 1))
    run, method = run_folder(out, cell, data), cell.methods[0]
    path, key = result_path(out, run, cell, method, False, 0), result_key(cell, data, method, False, 0)
    whole, before = path.read_bytes(), kept(path, key, run, "")
    rng, refused = np.random.default_rng(0), 0
    places = rng.integers(0, len(whole), 300)
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            after = kept(path, key, run, "")
        except RecordError:
            refused += 1
        else:
            assert after.to_json() == before.to_json()
            assert all(torch.equal(after.eu[k], before.eu[k]) for k in before.eu)
    assert refused > 250


def test_results_of_other_weights_are_not_used(out, once):
    """The run has come to other weights: its results are made of those that are there."""
    (record,) = out.glob("runs/*/members/01/done.json")
    weights = record.with_name("weights.safetensors")
    digest = write_tensors(weights, {name: 1.5 * t for name, t in read_tensors(weights)[0].items()})
    record.write_text(json.dumps({**json.loads(record.read_text()), "weights": digest}))
    values, said = run(out)
    assert said.anew() == 2
    assert values != once[1]


def test_runs_that_are_gone_leave_results_that_stand(out, once):
    shutil.rmtree(out / "runs")
    values, said = run(out)
    assert values == once[1]
    assert said.trained() == 0
