"""Execute an experiment: train what is not there yet, read it by every method, keep every sample's EU, write tables."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from credro._names import ArgumentError, one_of
from credro._records import RecordError
from credro.data import Data
from credro.ensemble import Ensemble, fit
from credro.experiments._benchmark import Benchmark, BenchmarkData
from credro.experiments._measure import measure
from credro.experiments._store import keep, kept, result_key, result_path, run_folder
from credro.experiments._table import Table
from credro.experiments.benchmarks import BENCHMARKS
from credro.experiments.figures import FIGURES
from credro.experiments.results import Result, Results
from credro.experiments.spec import EXPERIMENTS, Cell, Experiment, cells
from credro.experiments.tables import TABLES
from credro.methods import Method
from credro.training.cluster import Ray
from credro.training.diagnostics import FITTED
from credro.training.files import write_json
from credro.training.job import count_classes
from credro.training.train import FitWarning

Say = Callable[[str], Any]


@dataclass(frozen=True)
class Setting:
    """How to execute, whatever the experiment."""

    out: Path
    root: str | Path | None = None
    executor: str | Ray = "auto"
    device: str = "auto"
    progress: str = "auto"
    say: Say = print


def reproduce(
    name: str, preset: str = "fashion", *, runs: int | None = None, out: str | Path = "runs/reproduce", **options: Any
) -> list[Table]:
    """Make a table or figure of the paper: train, measure, write ``out/NAME-PRESET/`` and give the tables.

    Everything trained or measured before, for this or another experiment, is used again if it was made of the same
    things; what was interrupted goes on. name, preset: in ``EXPERIMENTS`` and ``BENCHMARKS``. runs: repetitions with
    other seeds; the benchmark's if not given. options: root, executor, device, progress, say, as in ``Setting``.
    """
    experiment = EXPERIMENTS[one_of("experiment", name, EXPERIMENTS)]
    one_of("preset", preset, BENCHMARKS)
    if runs is not None and runs < 1:
        raise ArgumentError("runs", f"runs must be at least 1, got {runs}")
    setting, started = Setting(Path(out), **options), time.monotonic()
    results = Results(experiment, preset, gather(experiment, list(cells(experiment, preset, runs)), setting))
    folder = setting.out / f"{name}-{preset}"
    tables = [table for kind in experiment.tables for table in TABLES[kind](results)]
    for table in tables:
        table.write(folder)
    for kind in experiment.figures:
        for path in FIGURES[kind](results, folder):
            setting.say(f"figure: {path}")
    write_json(folder / "experiment.json", {"name": name, "preset": preset, "runs": results.runs})
    setting.say(f"tables: {folder} (Markdown, CSV, LaTeX, JSON); this took {_duration(time.monotonic() - started)}")
    return tables


def gather(experiment: Experiment, todo: Sequence[Cell], setting: Setting) -> list[Result]:
    """Every result the experiment needs. One that is on disk is used if it is whole and made of the same things."""
    found: list[Result] = []
    clock, data_of = _Clock(setting, todo), _DataOf(setting.root)
    for number, cell in enumerate(todo):
        data = data_of(cell)
        run = run_folder(setting.out, cell, data)
        wanted = [(m, c) for m in cell.methods for c in ((False, True) if experiment.calibrated else (False,))]
        paths = [result_path(setting.out, run, cell, m, c, experiment.slsqp) for m, c in wanted]
        keys = [result_key(cell, data, m, c, experiment.slsqp) for m, c in wanted]
        known = [_known(path, key, run, cell, setting) for path, key in zip(paths, keys, strict=True)]
        if missing := [i for i, result in enumerate(known) if result is None]:
            clock.tell(number, cell)
            some = [wanted[i] for i in missing]
            ensemble = _ensemble(cell, data, run, setting, calibrated=any(c for _, c in some))
            for i, result in zip(missing, measure(cell, ensemble, data, some, experiment.slsqp), strict=True):
                keep(paths[i], keys[i], result)
                known[i] = result
        found += [result for result in known if result is not None]
    return found


def _known(path: Path, key: str, run: Path, cell: Cell, setting: Setting) -> Result | None:
    """The result that is on disk; None where there is none that can be used, and then it is said why."""
    if not path.exists():
        return None
    try:
        return kept(path, key, run, cell.variant.label)
    except RecordError as error:
        setting.say(f"  {error}; it is made anew")
        return None


def _ensemble(cell: Cell, data: BenchmarkData, run: Path, setting: Setting, *, calibrated: bool) -> Ensemble:
    others = sorted(p for p in run.parent.glob("*") if p != run)
    ensemble = trained(
        cell.benchmark, data, cell.trainer, members=cell.members, seed=cell.seed, out=run, reuse=others, setting=setting
    )
    if calibrated and not ensemble.calibrated:
        if data.held_out is None:
            raise ArgumentError("preset", f"benchmark {cell.benchmark.name!r} holds nothing out to calibrate on")
        ensemble.calibrate(data.held_out)
    return ensemble


def trained(
    benchmark: Benchmark,
    data: BenchmarkData,
    method: Method,
    *,
    members: int,
    seed: int,
    out: Path,
    reuse: Iterable[Path],
    setting: Setting,
) -> Ensemble:
    """An ensemble of the benchmark, trained now or before. reuse: other runs, whose equal members are taken."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", FitWarning)
        ensemble = fit(
            benchmark.network(count_classes(data.train), data.train.shape, setting.root),
            data.train,
            method=method,
            members=members,
            recipe=benchmark.recipe.with_(seed=seed),
            out=out,
            executor=setting.executor,
            device=setting.device,
            progress=setting.progress,
            held_out=data.held_out if benchmark.recipe.schedule == "plateau" else None,
            reuse=reuse,
        )
    for note in notes:
        if not issubclass(note.category, FitWarning):
            warnings.warn_explicit(note.message, note.category, note.filename, note.lineno)
    fits = [r.train.accuracy for r in ensemble.records if r.train is not None and r.train.accuracy is not None]
    if fits and min(fits) < FITTED:
        setting.say(f"  members are right on {min(fits):.1%} to {max(fits):.1%} of their training samples")
    return ensemble


@dataclass
class _DataOf:
    """The data of a cell. That of the last one is kept, since neighbours mostly share it, and so are named OOD sets."""

    root: str | Path | None
    last: tuple[Any, BenchmarkData] | None = None
    ood: dict[tuple[Any, ...], Data] = field(default_factory=dict)

    def __call__(self, cell: Cell) -> BenchmarkData:
        by_seed = bool(cell.variant.noise) or cell.benchmark.groups is not None
        asked = (cell.benchmark, cell.variant.noise, cell.seed if by_seed else 0)
        if self.last is None or self.last[0] != asked:
            self.last = asked, cell.benchmark.load(self.root, *asked[1:], kept=self.ood)
        return self.last[1]


class _Clock:
    """Says what is next and how long everything will take, from what this call has trained so far."""

    def __init__(self, setting: Setting, todo: Sequence[Cell]) -> None:
        self.setting, self.todo = setting, todo
        self.started = time.monotonic()
        self.first: int | None = None

    def tell(self, number: int, cell: Cell) -> None:
        if self.first is None:
            self.first, self.started = number, time.monotonic()
        done, left = number - self.first, len(self.todo) - number
        rest = f", about {_duration((time.monotonic() - self.started) / done * left)} left" if done else ""
        methods = ", ".join(m.name for m in cell.methods)
        variant = f", {cell.variant.label}" if cell.variant.label else ""
        self.setting.say(
            f"[{number + 1}/{len(self.todo)}] {cell.benchmark.name}{variant}, run {cell.seed + 1}, M = {cell.members}: "
            f"{methods}{rest}"
        )


def _duration(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
