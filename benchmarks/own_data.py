"""People's own data by the command line, at its defaults: ``python -m benchmarks own_data --data DIR``.

Five tables and two sets of images are written as CSV files and folders of PNG, as their owners would have them; then
``credro train``, ``credro evaluate``, beside a random forest on the same rows. DIR has ``tabular/``, ``breakhis/`` and
``cifar-10-batches-py/`` in the layouts of docs/your-data.md; what is not there is skipped, and said.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from credro.data import load
from credro.training.records import RunConfig
from credro.training.run import Run

SEED = 0


def heart(source: Path) -> Any:
    """Heart disease in four hospitals; 13 features, many values missing. Random rows are kept for testing."""
    file = np.load(source / "tabular" / "heart_4sites.npz")
    return pd.DataFrame(file["x"], columns=file["columns"]).assign(label=np.where(file["y"], "sick", "well"))


def gas(source: Path) -> Any:
    """Six gases by 128 numbers of chemical sensors."""
    file = np.load(source / "tabular" / "gas_drift_8batches.npz")
    frame = pd.DataFrame(file["x"], columns=[f"s{i}" for i in range(128)])
    return frame.assign(label=file["classes"][file["y"]])


def wine(source: Path) -> Any:
    """Red wine: quality from 3 to 8."""
    file = np.load(source / "tabular" / "uci_regression.npz")
    return pd.DataFrame(file["wine_x"]).add_prefix("f").assign(label=file["wine_y"].round().astype(int))


def good_wine(source: Path) -> Any:
    """The same wine: is it good, 7 or better?"""
    frame = wine(source)
    return frame.assign(label=np.where(frame["label"] >= 7, "good", "other"))


def cancer(source: Path) -> Any:
    """Breast cancer by 30 measures of cell nuclei; scikit-learn's."""
    found = load_breast_cancer(as_frame=True)
    return found.data.assign(label=found.target_names[found.target])


def tissue(source: Path, target: Path) -> None:
    """BreaKHis at 64x64 as folders, divided by patient."""
    with np.load(source / "breakhis" / "breakhis400_64.npz") as packed:
        file = {name: packed[name] for name in packed.files}
    train, test = next(
        GroupShuffleSplit(1, test_size=0.3, random_state=SEED).split(file["x"], file["y"], file["group"])
    )
    for part, rows in (("train", train), ("test", test)):
        for i in rows:
            place = target / part / ("malignant" if file["y"][i] else "benign")
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(file["x"][i]).save(place / f"{file['group'][i]}-{i}.png")


def photos(source: Path, target: Path) -> None:
    """Photographs of ten kinds at 32x32, 200 of each to train on and 100 for testing: a part of CIFAR-10."""
    for part, each in (("train", 200), ("test", 100)):
        data = load("cifar10", split=part, root=source)
        for k, kind in enumerate(data.classes):
            (target / part / kind).mkdir(parents=True)
            index = (data.labels == k).nonzero()[:each, 0]
            for i, image in zip(index.tolist(), data.batch(index).permute(0, 2, 3, 1).numpy(), strict=True):
                Image.fromarray(image).save(target / part / kind / f"{i}.png")


TABLES: dict[str, Callable[[Path], Any]] = {
    "heart": heart, "gas sensors": gas, "wine quality": wine, "good wine": good_wine, "breast cancer": cancer,
}  # fmt: skip
IMAGES: dict[str, Callable[[Path, Path], None]] = {"breast tissue": tissue, "photographs": photos}


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks own_data")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the sets are")
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME", help="only these sets")
    given = parser.parse_args(arguments or [])
    if given.data is None:
        print("skipped: --data DIR says where the sets are (docs/your-data.md)")
        return
    warnings.simplefilter("ignore")
    print("| data | trained on | features | classes | credro, % | forest, % | log loss | forest | seconds | forest |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in [*TABLES, *IMAGES]:
        if given.only and name not in given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(_row(name, given.data, Path(folder)), flush=True)
            except FileNotFoundError as error:
                print(f"skipped {name}: {error.filename or error} is not there", file=sys.stderr)


def _row(name: str, source: Path, folder: Path) -> str:
    if name in TABLES:
        path = folder / "table.csv"
        frame = TABLES[name](source)
        train, test = train_test_split(
            np.arange(len(frame)), test_size=0.25, random_state=SEED, stratify=frame["label"]
        )
        frame["split"] = np.where(np.isin(np.arange(len(frame)), test), "test", "train")
        frame.to_csv(path, index=False)
        x = frame.drop(columns=["label", "split"]).to_numpy(np.float32)
        rows = (x[train], frame["label"].to_numpy()[train], x[test], frame["label"].to_numpy()[test])
    else:
        path = folder / "images"
        IMAGES[name](source, path)
        rows = _pixels(path)
    seconds, result, config = _credro(path, folder / "run")
    forest_seconds, forest, forest_loss = _forest(*rows)
    ours = next(r for r in result["results"] if r["method"] == "credro" and not r["calibrated"])
    return (
        f"| {name} | {config.data.samples:,} | {'x'.join(map(str, config.inputs.shape))} | {len(config.classes)} | "
        f"{100 * ours['accuracy']:.1f} | {100 * forest:.1f} | {ours['nll']:.3f} | {forest_loss:.3f} | "
        f"{seconds:.0f} | {forest_seconds:.1f} |"
    )


def _credro(path: Path, run: Path) -> tuple[float, Any, RunConfig]:
    """Seconds of training, what evaluation says, and the run's configuration."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "credro"]
    subprocess.run([*command, "train", "--data", str(path), "--out", str(run)], check=True, stderr=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    seconds = time.perf_counter() - started
    shown = subprocess.run([*command, "evaluate", str(run), "--json", "-"], check=True, capture_output=True, text=True)
    return seconds, json.loads(shown.stdout)[0], Run(run).config()


def _forest(x: Any, y: Any, x_test: Any, y_test: Any) -> tuple[float, float, float]:
    """Seconds, accuracy and log loss, on test rows of which none is a copy of a training row, as for credro."""
    known = {row.tobytes() for row in x}
    fresh = np.array([row.tobytes() not in known for row in x_test])
    x_test, y_test = x_test[fresh], y_test[fresh]
    started = time.perf_counter()
    forest = RandomForestClassifier(random_state=SEED).fit(x, y)
    seconds = time.perf_counter() - started
    loss = log_loss(y_test, forest.predict_proba(x_test), labels=forest.classes_)
    return seconds, forest.score(x_test, y_test), loss


def _pixels(path: Path) -> tuple[Any, Any, Any, Any]:
    """Pixels as features, for the forest."""
    out: list[Any] = []
    for part in ("train", "test"):
        files = sorted((path / part).rglob("*.png"))
        out += [np.stack([np.asarray(Image.open(f).convert("RGB")).ravel() for f in files])]
        out += [np.array([f.parent.name for f in files])]
    return out[0], out[1], out[2], out[3]
