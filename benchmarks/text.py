"""Text with real OOD text: CLINC150, and its out-of-scope requests.

``python -m benchmarks text --root DIR [--runs 3] [--members 5] [--trunks tfidf,wordllama]``. DIR has
``text/clinc150_train.csv``, ``_test.csv`` and ``_oos_test.csv``. WordLlama needs ``credro[text]``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from statistics import mean, stdev

from credro.data import load
from credro.data.splits import limit
from credro.ensemble import fit
from credro.evaluation import evaluate
from credro.nets.trunks import on


def requests(root: Path, runs: int, members: int, trunks: list[str], count: int | None) -> None:
    train = load(root / "text" / "clinc150_train.csv", text="text")
    test = load(root / "text" / "clinc150_test.csv", text="text")
    with open(root / "text" / "clinc150_oos_test.csv", newline="", encoding="utf-8") as file:
        far = [row["text"] for row in csv.DictReader(file)]
    print("| members | method | accuracy | AUROC | AUPR | seconds |")
    for name in trunks:
        found: dict[str, list[list[float]]] = {}
        for run in range(runs):
            begin = time.perf_counter()
            part = train.subset(limit(len(train), count or len(train), run))  # another order, so other members
            ens = fit(on(name), part, members=members, progress="none")
            seconds = time.perf_counter() - begin
            for result in evaluate(ens, test, {"out of scope": far}).results:
                ood = result.ood["out of scope"]
                row = [100 * result.accuracy, 100 * ood.auroc, 100 * ood.aupr, seconds]
                found.setdefault(result.label, []).append(row)
        for label, rows in found.items():
            columns = [f"{mean(c):.1f} ± {stdev(c) if runs > 1 else 0:.1f}" for c in zip(*rows, strict=True)]
            print(f"| heads on {name} | {label} | {' | '.join(columns)} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks text")
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--trunks", default="tfidf,wordllama")
    given = parser.parse_args(arguments or [])
    warnings.simplefilter("ignore")
    if not (given.root / "text" / "clinc150_train.csv").exists():
        print(f"left out: {given.root} has no text/clinc150_train.csv")
        return
    requests(given.root, given.runs, given.members, given.trunks.split(","), given.limit)


if __name__ == "__main__":
    main()
