"""Do intervals hold what they say? ``python -m benchmarks regression``: R2, coverage and width of 90 % intervals.

Five divisions of scikit-learn's diabetes (442 rows) and of Friedman's function 1 (500 rows, noise of deviation 1),
two thirds to train on, everything at the estimator's defaults; without calibration on the rows to stop by beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import ShuffleSplit

from credro.sklearn import CredalRegressor

SETS: dict[str, Callable[[], Any]] = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "Friedman 1": lambda: make_friedman1(500, noise=1.0, random_state=0),
}
PLAIN: dict[str, Callable[[], Any]] = {
    "linear model": LinearRegression,
    "random forest": lambda: RandomForestRegressor(random_state=0),
}


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| data | model | R2 | coverage of 90 % intervals | mean width |\n|---|---|---|---|---|")
    for name, load in SETS.items():
        x, y = load()
        parts = list(ShuffleSplit(5, test_size=1 / 3, random_state=0).split(x))
        for model, make in PLAIN.items():
            scores = [make().fit(x[a], y[a]).score(x[b], y[b]) for a, b in parts]
            print(f"| {name} | {model} | {_text(scores)} | | |", flush=True)
        for method in ("de", "crewra", "en-dro", "credro"):
            for calibrate in (False, "auto"):
                rows = []
                for a, b in parts:
                    fitted = CredalRegressor(method, calibrate=calibrate, random_state=0).fit(x[a], y[a])
                    low, high = fitted.predict_interval(x[b]).T
                    held = np.mean((low <= y[b]) & (y[b] <= high))
                    rows.append((fitted.score(x[b], y[b]), held, np.mean(high - low)))
                score, covered, width = zip(*rows, strict=True)
                how = "" if calibrate else ", not calibrated"
                print(f"| {name} | {method}{how} | {_text(score)} | {_text(covered)} | {_text(width, 1)} |", flush=True)


def _text(values: object, digits: int = 2) -> str:
    array = np.asarray(values)
    return f"{array.mean():.{digits}f} ± {array.std(ddof=1):.{digits}f}"
