"""Execute an experiment: train what is not there yet, read it by every method, keep every sample's EU, lay it out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from credro.ensemble import Ensemble, fit
from credro.experiments.layouts import LAYOUTS
from credro.experiments.readings import Reading, keep, load_reading, path_of, prediction_seconds, read, timed_scores
from credro.experiments.results import Results
from credro.experiments.spec import EXPERIMENTS, Cell, Experiment, cells
from credro.experiments.tables import Table, write_table
from credro.experiments.worlds import WORLDS, Sets, World
from credro.methods import Method
from credro.training.checkpoint import write_json
from credro.training.diagnostics import FITTED
from credro.training.job import count_classes
from credro.training.run import Run
from credro.training.train import FitWarning

Say = Callable[[str], Any]


@dataclass(frozen=True)
class Setting:
    """How to execute, whatever the experiment."""

    out: Path
    root: str | Path | None = None
    executor: str = "auto"
    device: str = "auto"
    progress: str = "auto"
    say: Say = print


def reproduce(
    name: str, preset: str = "fashion", *, runs: int | None = None, out: str | Path = "runs/reproduce", **options: Any
) -> list[Table]:
    """Make a table or figure of the paper: train, read, write ``out/NAME-PRESET/`` and give the tables.

    Everything trained or read before, for this or another experiment, is used again; what was interrupted goes on.
    runs: repetitions with other seeds. options: root, executor, device, progress, say, as in ``Setting``.
    """
    experiment = find(name)
    if preset not in WORLDS:
        raise ValueError(f"preset must be one of {', '.join(WORLDS)}, got {preset!r}")
    if runs is not None and runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}")
    setting, started = Setting(Path(out), **options), time.monotonic()
    readings = gather(experiment, list(cells(experiment, preset, runs)), setting)
    folder = setting.out / f"{name}-{preset}"
    results = Results(experiment, preset, readings)
    tables: list[Table] = []
    for layout in experiment.layouts:
        made = LAYOUTS[layout](results, folder)
        for table in made.tables:
            tables.append(table)
            write_table(table, folder)
        for figure in made.figures:
            setting.say(f"figure: {figure}")
    write_json(folder / "experiment.json", {"name": name, "preset": preset, "runs": results.runs})
    setting.say(f"tables: {folder} (Markdown, CSV, LaTeX, JSON); this took {_duration(time.monotonic() - started)}")
    return tables


def find(name: str) -> Experiment:
    """The experiment called ``name``."""
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {name!r}")
    return EXPERIMENTS[name]


def gather(experiment: Experiment, todo: Sequence[Cell], setting: Setting) -> list[Reading]:
    """Every reading the experiment needs; what is on disk is not made again."""
    found: list[Reading] = []
    clock = _Clock(setting, todo)
    sets = _SetsOf(setting.root)
    for number, cell in enumerate(todo):
        wanted = [(m, c) for m in cell.methods for c in ((False, True) if experiment.calibrated else (False,))]
        label = _label(cell.world, experiment)
        paths = [path_of(setting.out, cell, m, c, label) for m, c in wanted]
        if not all(p.exists() for p in paths):
            clock.tell(number, cell)
            _make(cell, experiment, wanted, paths, sets, setting)
        for path in paths:
            reading = load_reading(path)
            reading.facts["variant"] = cell.variant.label  # another experiment may have made it, under another name
            found.append(reading)
    return found


def _label(world: World, experiment: Experiment) -> str:
    """What a reading was read on: the strangers' names decide."""
    kind = "corruptions" if world.corruptions else "strangers" if world.ood else "test"
    return f"{kind}-slsqp{experiment.slsqp}" if experiment.slsqp else kind


def _make(
    cell: Cell,
    experiment: Experiment,
    wanted: Sequence[tuple[Method, bool]],
    paths: Sequence[Path],
    sets_of: _SetsOf,
    setting: Setting,
) -> None:
    sets = sets_of(cell)
    ensemble = trained(cell, sets, setting)
    if any(c for _, c in wanted) and not ensemble.calibrated:
        if sets.held_out is None:
            raise ValueError(f"world {cell.world.name!r} holds nothing out to calibrate on")
        ensemble.calibrate(sets.held_out)
    assert ensemble.run is not None
    folder = ensemble.run.folder
    scores = timed_scores(ensemble, sets, folder)
    for (method, calibrated), path in zip(wanted, paths, strict=True):
        reading = read(cell, ensemble, method, calibrated, scores, sets, experiment.slsqp)
        reading.facts["predict_seconds"] = prediction_seconds(folder)
        reading.facts["weight_bytes"] = sum(Run(folder).weights(i).stat().st_size for i in range(cell.members))
        keep(path, reading)


def trained(cell: Cell, sets: Sets, setting: Setting) -> Ensemble:
    """The cell's ensemble, trained now or before, by this experiment or another."""
    folder = setting.out / "runs" / cell.key
    others = sorted(p for p in (setting.out / "runs").glob("*") if p != folder)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", FitWarning)
        ensemble = fit(
            cell.world.network(count_classes(sets.train), sets.train.shape, setting.root),
            sets.train,
            method=cell.trainer,
            members=cell.members,
            recipe=cell.world.recipe.with_(seed=cell.seed),
            out=folder,
            executor=setting.executor,
            device=setting.device,
            progress=setting.progress,
            held_out=sets.held_out if cell.world.recipe.schedule == "plateau" else None,
            share=others,
        )
    for note in notes:
        if not issubclass(note.category, FitWarning):
            warnings.warn_explicit(note.message, note.category, note.filename, note.lineno)
    fit_of = [r["train"]["accuracy"] for r in ensemble.records if "accuracy" in r.get("train", {})]
    if fit_of and min(fit_of) < FITTED:
        setting.say(f"  members are right on {min(fit_of):.1%} to {max(fit_of):.1%} of their training samples")
    return ensemble


class _SetsOf:
    """The sets of a cell; those of the last one are kept, since neighbours mostly share them."""

    def __init__(self, root: str | Path | None) -> None:
        self.root = root
        self.key: Any = None
        self.sets: Any = None

    def __call__(self, cell: Cell) -> Sets:
        by_seed = bool(cell.variant.noise) or cell.world.groups is not None
        key = (cell.world.name, str(cell.variant.changes), cell.variant.noise, cell.seed if by_seed else 0)
        if key != self.key:
            self.key, self.sets = key, cell.world.load(self.root, cell.variant.noise, cell.seed)
        sets: Sets = self.sets
        return sets


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
            f"[{number + 1}/{len(self.todo)}] {cell.world.name}{variant}, run {cell.seed + 1}, M = {cell.members}: "
            f"{methods}{rest}"
        )


def _duration(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
