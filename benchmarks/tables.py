"""Are the defaults for tables any good? ``python -m benchmarks tables --data DIR``: accuracy, log loss and time.

Every ``*.csv`` in DIR is a table with a column ``label``; without DIR, those that scikit-learn carries are taken.
Several seeded divisions, 30 % to test on, the same for all models; everything at its defaults. Numbers go in as they
are, words one-hot, missing numbers as the median. Time is that of ``fit``, as a multiple of the forest's.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from credro.sklearn import CredalClassifier

OWN = {"breast cancer": load_breast_cancer, "wine cultivars": load_wine, "digits": load_digits}
FOREST = "random forest"
MODELS: dict[str, Callable[[int], Any]] = {
    FOREST: lambda seed: RandomForestClassifier(random_state=seed),
    "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "MLPClassifier": lambda seed: make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)),
    "credro": lambda seed: CredalClassifier(random_state=seed),
    "crewra": lambda seed: CredalClassifier("crewra", random_state=seed),
    "credro, 0.1": lambda seed: CredalClassifier(
        net="mlp", epochs=40, lr=3e-3, early_stopping=False, calibrate=False, random_state=seed
    ),
}
"""Name: the model for a seed, at its defaults. The last one is the default of version 0.1."""


@dataclass(frozen=True)
class Score:
    """One model on one division of one table."""

    accuracy: float
    log_loss: float
    seconds: float


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser("python -m benchmarks tables", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of CSV files with a column 'label'")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of a table that are used at most")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-split", type=int, default=0, help="seed of the first division")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print("| table | rows, features | model | accuracy, % | less the forest's | log loss | time |")
    print("|---|---|---|---|---|---|---|")
    for name, x, y in tables(given.data, given.rows):
        found: dict[str, list[Score]] = {model: [] for model in dict.fromkeys([FOREST, *given.models])}
        for seed in range(given.first_split, given.first_split + given.splits):
            for model, scores in found.items():
                scores.append(score(MODELS[model](seed), x, y, seed))
        for model, scores in found.items():
            print(f"| {name} | {len(x):,}, {x.shape[1]} | {model} | {_line(scores, found[FOREST])} |", flush=True)


def tables(folder: Path | None, rows: int) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, features and labels of every table, at most ``rows`` of its rows."""
    if folder is None:
        print("(scikit-learn's own tables; others: --data DIR with CSV files)")
    sources = sorted(folder.glob("*.csv")) if folder else OWN.items()
    if folder and not sources:
        raise SystemExit(f"benchmarks tables: no *.csv in {folder}")
    for source in sources:
        if isinstance(source, Path):
            frame = pd.read_csv(source)
            if "label" not in frame:
                print(f"({source} is left out: it has no column 'label')")
                continue
            name, x, y = source.stem, frame.drop(columns="label"), frame["label"].to_numpy()
        else:
            name, (x, y) = source[0], source[1](return_X_y=True, as_frame=True)
        chosen = np.random.default_rng(0).permutation(len(x))[:rows]
        yield name, x.iloc[chosen].reset_index(drop=True), np.asarray(y)[chosen]


def score(model: Any, x: pd.DataFrame, y: np.ndarray, seed: int) -> Score:
    """Of ``model`` behind the encoding that all share."""
    encode = make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    )
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    train, test = encode.fit_transform(train), encode.transform(test)
    start = time.perf_counter()
    model.fit(train, y_train)
    seconds = time.perf_counter() - start
    probs = model.predict_proba(test)
    right = model.classes_[probs.argmax(1)] == y_test
    return Score(100 * float(right.mean()), float(log_loss(y_test, probs, labels=model.classes_)), seconds)


def _line(scores: list[Score], forest: list[Score]) -> str:
    accuracy, loss = np.array([s.accuracy for s in scores]), [s.log_loss for s in scores]
    gap = accuracy - [s.accuracy for s in forest]
    ratio = sum(s.seconds for s in scores) / sum(s.seconds for s in forest)
    return f"{_text(accuracy, 1)} | {_text(gap, 1, '+')} | {_text(loss, 3)} | {ratio:.1f}x"


def _text(values: Any, digits: int, sign: str = "") -> str:
    array = np.asarray(values)
    spread = array.std(ddof=1) if len(array) > 1 else 0.0
    return f"{array.mean():{sign}.{digits}f} ± {spread:.{digits}f}"
