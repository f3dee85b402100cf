"""The entropy gap of credal sets: ours on a batch, against SciPy's SLSQP called once a sample, as the paper does.

Both sides get the same members, softmax outputs in float32, and are timed from there to the gap ``max H - min H``.
How SLSQP is called: ``credro.experiments.slsqp``. Rounds of ours and of SLSQP alternate; times are medians, and the
ratio is the median of the rounds'.
A sample on which SLSQP takes more than LIMIT seconds is given up: its time is then a lower bound, marked ">".
Wall-clock time. SLSQP has one thread, as its steps are too small for more; ours is timed with all cores and with one.

The inputs: logits = scale * shared + noise * own, both standard normal. "unsure" has scale 2 and noise 1, "confident"
scale 6 and noise 1.5. "off" is the fraction of samples whose entropy gap is wrong by more than 1e-3 nats: that of
SLSQP, and of two greedy fills of the classes, in the order of the classes and by falling upper bound.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from credro.credal.arrays import chunks
from credro.credal.box_entropy import box_lower
from credro.credal.entropy import MAX_NODES
from credro.credal.measures import epistemic
from credro.credal.sets import Box, Hull
from credro.experiments.slsqp import box_gap, hull_gap

INPUTS = {"unsure": (2.0, 1.0), "confident": (6.0, 1.5)}
SAMPLES = {10: 10_000, 100: 10_000, 1000: 1000}
"""Of ours, by number of classes."""
SAMPLES_SLSQP = {"box": {10: 60, 100: 6, 1000: 1}, "hull": {10: 30, 100: 10, 1000: 4}}
"""A round, by number of classes: seconds are enough to time it."""
TARGETS = {("box", 10): 1000.0, ("box", 100): 1000.0, ("hull", 5): 50.0, ("hull", 20): 20.0}
"""What the ratio should be at least: boxes by number of classes, hulls by number of members."""
OFF = 1e-3
Array = npt.NDArray[np.float64]


def draw(M: int, N: int, C: int, inputs: str, seed: int = 0) -> Tensor:
    """Members (M, N, C) in float32."""
    scale, noise = INPUTS[inputs]
    generator = torch.Generator().manual_seed(seed)
    shared = scale * torch.randn(N, C, generator=generator)
    return torch.stack([(shared + noise * torch.randn(N, C, generator=generator)).softmax(-1) for _ in range(M)])


def box_by_slsqp(members: Array) -> float:
    return box_gap(members.min(0), members.max(0), members.mean(0))


def greedy_lower(lower: Array, upper: Array, order: npt.NDArray[np.int64]) -> Array:
    """Entropies (N,) after filling the classes of each sample up to their upper bounds in a given ``order`` (N, C)."""
    low, width = (np.take_along_axis(x, order, 1) for x in (lower, upper - lower))
    room = 1 - lower.sum(1, keepdims=True)
    p = low + np.clip(room - (width.cumsum(1) - width), 0, width)
    values: Array = -(p * np.log(np.maximum(p, 1e-300))).sum(1)
    return values


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _each(solve: Callable[[Array], float], samples: Array) -> list[float]:
    return [solve(members) for members in samples]


def compare(kind: str, C: int, M: int, inputs: str, rounds: int, shrink: int = 1) -> dict[str, Any]:
    """One row of the table."""
    make = Box.of if kind == "box" else Hull
    theirs: Callable[[Array], float] = box_by_slsqp if kind == "box" else hull_gap
    N, n = SAMPLES[C] // shrink, max(1, SAMPLES_SLSQP[kind][C] // shrink)
    probs = draw(M, N, C, inputs)
    exact = epistemic(make(probs))
    cores = os.cpu_count() or 1
    ours: dict[int, list[float]] = {threads: [] for threads in dict.fromkeys((cores, 1))}
    slow: list[float] = []
    errors: list[float] = []
    for r in range(rounds):
        for threads, times in ours.items():
            torch.set_num_threads(threads)
            times.append(timed(lambda: epistemic(make(probs)))[0] / N)
        some = range(r * n, (r + 1) * n)
        members = probs[:, some].double().transpose(0, 1).numpy()
        seconds, gaps = timed(partial(_each, theirs, members / members.sum(-1, keepdims=True)))
        slow.append(seconds / n)
        errors += [abs(gap - float(exact[i])) for i, gap in zip(some, gaps, strict=True)]
    ended = [error for error in errors if not np.isnan(error)]
    row: dict[str, Any] = {
        "set": kind,
        "C": C,
        "M": M,
        "inputs": inputs,
        "N": N,
        "ours_us": 1e6 * statistics.median(ours[cores]),
        "one_thread_us": 1e6 * statistics.median(ours[1]),
        "slsqp_n": len(ended),
        "given_up": len(errors) - len(ended),
        "slsqp_ms": 1e3 * statistics.median(slow),
        "ratio": statistics.median(b / a for a, b in zip(ours[cores], slow, strict=True)),
        "one_thread_ratio": statistics.median(b / a for a, b in zip(ours[1], slow, strict=True)),
        "target": TARGETS.get((kind, C if kind == "box" else M)),
        "slsqp_off": float(np.mean(np.array(ended) > OFF)) if ended else float("nan"),
        "slsqp_worst": max(ended, default=float("nan")),
    }
    return row | (_box_columns(probs) if kind == "box" else {})


def _box_columns(probs: Tensor) -> dict[str, Any]:
    """What greedy fills get wrong, and how long the exact search is."""
    lower, upper = Box.of(probs).bounds
    found = [box_lower(lower[part].T, upper[part].T, MAX_NODES) for part in chunks(*lower.shape)]
    value, nodes = (torch.cat([getattr(part, name) for part in found]).double().numpy() for name in ("value", "nodes"))
    low, high = lower.numpy(), upper.numpy()
    in_order = np.broadcast_to(np.arange(low.shape[1]), low.shape)
    fills = {"in_order_off": in_order, "by_upper_off": np.argsort(-high, 1)}
    off = {name: float(np.mean(greedy_lower(low, high, order) - value > OFF)) for name, order in fills.items()}
    return {**off, "nodes_mean": float(nodes.mean()), "nodes_max": int(nodes.max())}


def run(quick: bool = False) -> list[dict[str, Any]]:
    """The rows of the table. quick: a tenth of the samples and no case of 1000 classes."""
    import scipy.optimize  # noqa: F401  before the limit: it holds for the libraries that are loaded
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rounds, shrink, classes = (2, 10, (10, 100)) if quick else (5, 1, (10, 100, 1000))
    rows = []
    before = torch.get_num_threads()
    with threadpool_limits(1):
        for kind, C, M, inputs in product(("box", "hull"), classes, (5, 20), INPUTS):
            rows.append(compare(kind, C, M, inputs, rounds if C < 1000 or kind == "hull" else 1, shrink))
            print(_line(rows[-1]), flush=True)
    torch.set_num_threads(before)
    return rows


HEADER = (
    "| set | C | M | inputs | ours, µs | SLSQP, ms | ratio | one thread, µs | ratio | SLSQP off | worst, nats "
    "| class order off | by upper off | nodes, mean | max |\n|" + "---|" * 15
)


def _line(row: dict[str, Any]) -> str:
    """A row of the table, as Markdown."""
    more = "> " if row["given_up"] else ""
    short = "" if row["target"] is None or row["ratio"] >= row["target"] else f" (goal {row['target']:.0f})"
    cells = [
        *(str(row[name]) for name in ("set", "C", "M", "inputs")),
        f"{row['ours_us']:.1f}",
        f"{more}{row['slsqp_ms']:.1f}",
        f"{more}{row['ratio']:,.0f}{short}",
        f"{row['one_thread_us']:.1f}",
        f"{more}{row['one_thread_ratio']:,.0f}",
        *((f"{row['slsqp_off']:.0%} of {row['slsqp_n']}", f"{row['slsqp_worst']:.1e}") if row["slsqp_n"] else ("", "")),
    ]
    if row["set"] == "box":
        cells += [f"{row['in_order_off']:.0%}", f"{row['by_upper_off']:.0%}"]
        cells += [f"{row['nodes_mean']:.1f}", str(row["nodes_max"])]
    else:
        cells += [""] * 4
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table while it grows."""
    print(f"entropy gap, time per sample; torch {torch.__version__}, {os.cpu_count()} cores")
    print(", ".join(f"N = {N} at C = {C}" for C, N in SAMPLES.items()))
    print(HEADER, flush=True)
    run()


if __name__ == "__main__":
    main()
