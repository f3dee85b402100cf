"""Early stopping and CreDRO, ``python -m benchmarks early_stop``: what it costs where members fit, and gains on noise.

Two sets, CreDRO and CreWra, five members each, with the weights of the last epoch and with those of the best by
held-out loss; the same part is held out of training in both. Fashion-MNIST (3,000 images of the embedded part) is a
set that members fit and generalise on. scikit-learn's diabetes, above or below the median, is a noisy table; its OOD
rows have each column shuffled by itself and doubled. AUROC in per cent.
"""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from credro.data import Data, limit, load, split
from credro.ensemble import Ensemble, fit
from credro.metrics import auroc, nll
from credro.training.defaults import recipe_for, set_aside
from credro.training.recipe import PRESETS, Recipe

RUNS, MEMBERS, PATIENCE = 3, 5, 3


@dataclass(frozen=True)
class Benchmark:
    """A set to train on, one to test on, samples that are of neither, and how to train."""

    net: str
    train: Data
    test: Data
    ood: Data
    recipe: Recipe


def fashion(seed: int) -> Benchmark:
    train, test = load("fashion-mini", split="train"), load("fashion-mini", split="test")
    train, test = train.subset(limit(len(train), 3000, seed)), test.subset(limit(len(test), 2000, seed))
    return Benchmark("cnn", train, test, load("fashion-mini-letters"), PRESETS["fashion"].with_(seed=seed))


def diabetes(seed: int) -> Benchmark:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    table = Data("diabetes", torch.tensor(x).float(), torch.tensor(y > np.median(y)).long(), (10,), ("below", "above"))
    tested, trained = split(table, 1 / 3, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    order = torch.stack([torch.randperm(len(x), generator=generator) for _ in range(10)], 1)
    ood = Data("ood", 2 * torch.tensor(x).float().gather(0, order), table.labels, (10,), table.classes)
    train = table.subset(trained)
    return Benchmark("mlp", train, table.subset(tested), ood, recipe_for(train, "mlp", seed=seed))


BENCHMARKS: dict[str, Callable[[int], Benchmark]] = {"Fashion-MNIST, cnn": fashion, "diabetes, mlp": diabetes}


def measured(ens: Ensemble, benchmark: Benchmark) -> list[float]:
    """Epochs kept, training accuracy, log loss, AUROC of EU for OOD, AUROC of errors by EU and by total uncertainty."""
    known, far = ens.predict(benchmark.test), ens.predict(benchmark.ood)
    wrong = known.label != benchmark.test.labels
    records = ens.records
    return [
        statistics.mean(r.best_epoch or r.epochs for r in records),
        100 * statistics.mean(r.train.accuracy for r in records if r.train and r.train.accuracy),
        nll(known.mean, benchmark.test.labels),
        100 * auroc(known.epistemic, far.epistemic),
        100 * auroc(known.epistemic[~wrong], known.epistemic[wrong]),
        100 * auroc(known.total[~wrong], known.total[wrong]),
    ]


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| data | method | weights of | epochs | training accuracy | log loss | AUROC, OOD by EU | errors by EU | "
          "errors by total |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, make in BENCHMARKS.items():
        rows: dict[tuple[str, str], list[list[float]]] = {}
        for seed in range(RUNS):
            benchmark = make(seed)
            parts = set_aside(benchmark.train, seed=seed)
            assert parts.held_out is not None
            for weights, patience in (("last epoch", 0), ("best epoch", benchmark.recipe.early_stop or PATIENCE)):
                recipe = benchmark.recipe.with_(early_stop=patience)
                with tempfile.TemporaryDirectory() as folder:
                    de = Path(folder) / "de"
                    for method, out in (("crewra", de), ("credro", Path(folder) / "credro")):
                        ens = fit(benchmark.net, parts.train, method=method, members=MEMBERS, recipe=recipe, out=out,
                                  held_out=parts.held_out, progress="none", reuse=[de])  # fmt: skip
                        rows.setdefault((method, weights), []).append(measured(ens, benchmark))
        for (method, weights), found in sorted(rows.items()):
            cells = [_text(column, 3 if i == 2 else 1) for i, column in enumerate(zip(*found, strict=True))]
            print(f"| {name} | {method} | {weights} | {' | '.join(cells)} |", flush=True)


def _text(values: object, digits: int) -> str:
    array = np.asarray(values)
    return f"{array.mean():.{digits}f} ± {array.std(ddof=1):.{digits}f}"
