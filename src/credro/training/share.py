"""Members that another run has trained already are taken from there: an equal member is trained once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from credro.objectives import Rule, rule_of
from credro.training.checkpoint import write_json
from credro.training.run import Run

SAME = ("recipe", "network", "inputs", "loss", "held_out")
"""What two runs must have in common, with data and threads, before their members can be equal."""


def share_members(run: Run, others: Iterable[Path], rule: Rule, config: dict[str, Any]) -> list[int]:
    """Take what is missing in ``run`` from finished members of ``others``; give the numbers of those taken.

    config: what the run is (or will be) started with. A member is equal when its rule's ``identity``, number, data,
    network, recipe and way of execution are.
    """
    taken: list[int] = []
    missing = [i for i in range(config["members"]) if run.done(i) is None]
    for folder in others:
        other = Run(folder)
        if not missing or other.folder == run.folder or not other.config_path.exists():
            continue
        there = other.config()
        their_rule = rule_of(there["method"]["rule"])
        if their_rule is None or not _comparable(config, there):
            continue
        for i in list(missing):
            done = other.done(i) if i < there["members"] else None
            if done is not None and rule.identity(i, config["members"]) == their_rule.identity(i, there["members"]):
                _take(other, run, i, done, their_rule.describe(i, there["members"]), rule, config["members"])
                missing.remove(i)
                taken.append(i)
    return sorted(taken)


def _comparable(here: dict[str, Any], there: dict[str, Any]) -> bool:
    """Sequential and processes train the same weights; stacked sums in another order."""
    stacked, threads = (
        {(c["execution"]["executor"] == "stacked") for c in (here, there)},
        {c["execution"]["threads"] for c in (here, there)},
    )
    same_way = len(stacked) == 1 and len(threads) == 1
    return same_way and all(here[k] == there[k] for k in SAME) and _data(here) == _data(there)


def _data(config: dict[str, Any]) -> Any:
    return config["data"]["fingerprint"]


def _take(other: Run, run: Run, i: int, done: dict[str, Any], theirs: dict[str, Any], rule: Rule, members: int) -> None:
    """The weights by a hard link where the file system has them; the record last, so that a kill leaves no half."""
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
    own = {k: v for k, v in done.items() if k not in theirs}
    write_json(run.member(i) / "done.json", {**own, **rule.describe(i, members), "trained_in": other.folder.name})


def _history(run: Run, i: int) -> Path:
    return run.member(i) / "history.jsonl"
