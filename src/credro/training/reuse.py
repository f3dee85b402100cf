"""Members that another run has trained already are taken from there: an equal member is trained once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from credro._names import ArgumentError
from credro.methods import Method
from credro.training.files import write_json
from credro.training.records import MemberRecord, RunConfig
from credro.training.run import Run


def reuse_members(run: Run, others: Iterable[Path], method: Method, config: RunConfig) -> list[int]:
    """Take what is missing in ``run`` from finished members of ``others``; give the numbers of those taken.

    config: what the run is (or will be) started with. A member is equal when its ``identity``, number, data, network,
    recipe and way of execution are.
    """
    taken: list[int] = []
    missing = [i for i in range(config.members) if not run.is_done(i)]
    for folder in others:
        other = Run(folder)
        if not missing or other.folder == run.folder or not other.config_path.exists() or other.version() == 1:
            continue  # version 0.1 kept fewer things apart
        there = other.config()
        try:
            theirs = there.trained_by
        except ArgumentError:  # a choice of the user's own
            continue
        if not _comparable(config, there):
            continue
        for i in [i for i in missing if i < there.members and other.is_done(i)]:
            mine = method.member(i, config.members)
            if mine.identity() == theirs.member(i, there.members).identity():
                record = other.record(i)
                apart = {k: v for k, v in record.traits.items() if k not in theirs.member(i, there.members).traits()}
                traits = {**mine.traits(), **apart}
                _take(other, run, replace(record, traits=traits, trained_in=other.folder.name))
                missing.remove(i)
                taken.append(i)
    return sorted(taken)


def _comparable(here: RunConfig, there: RunConfig) -> bool:
    """Sequential and processes train the same weights; stacked sums in another order."""

    def all_but_method(config: RunConfig) -> tuple[object, ...]:
        stacked, threads = config.execution.executor == "stacked", config.execution.threads
        same = (config.recipe, config.network, config.inputs, config.loss, config.held_out, config.data.fingerprint)
        trunk = config.trunk and (
            config.trunk.digest,
            config.trunk.unfreeze,
        )  # copies of its layers are where they begin
        return (*same, stacked, threads, trunk)

    return all_but_method(here) == all_but_method(there)


def _take(other: Run, run: Run, record: MemberRecord) -> None:
    """The weights by a hard link where the file system has them; the record last, so that a kill leaves no half."""
    i = record.member
    run.member(i).mkdir(parents=True, exist_ok=True)
    for source, target in ((other.weights(i), run.weights(i)), (_history(other, i), _history(run, i))):
        if not source.exists():
            continue
        aside = target.with_name(target.name + ".part")
        aside.unlink(missing_ok=True)
        try:
            os.link(source, aside)
        except OSError:
            shutil.copyfile(source, aside)
        os.replace(aside, target)
    write_json(run.record_path(i), record.to_json())


def _history(run: Run, i: int) -> Path:
    return run.member(i) / "history.jsonl"
