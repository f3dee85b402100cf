"""From data and a network to a trained ensemble."""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from credro._names import ArgumentError
from credro.data.adapt import as_data, as_data_of
from credro.data.base import Data
from credro.data.classes import Classes, list_classes
from credro.data.load import load as read_set
from credro.ensemble._ensemble import Ensemble
from credro.ensemble._load import load
from credro.ensemble._samples import Samples
from credro.ensemble._trunk import save_trunk
from credro.members import PerSampleLoss
from credro.methods import Method, make
from credro.nets.texts import DEFAULT, TextTrunk, ngram_files
from credro.nets.trunk import OnTrunk
from credro.nets.trunks import on
from credro.training.calibration import check_held_out
from credro.training.features import check_kind, with_features
from credro.training.job import MakeNet, count_classes, method_for
from credro.training.plan import planned
from credro.training.recipe import Recipe
from credro.training.train import check_recipe, train


def fit(
    make_net: str | MakeNet | OnTrunk,
    train_set: Samples,
    *,
    method: str | Method = "credro",
    members: int = 5,
    recipe: Recipe | None = None,
    classes: Classes | None = None,
    out: str | Path | None = None,
    executor: str = "auto",
    workers: int | None = None,
    threads: int = 0,
    device: str | torch.device = "auto",
    held_out: Samples | None = None,
    early_stop: bool | None = None,
    calibrate: Samples | None = None,
    loss: PerSampleLoss | None = None,
    progress: str = "auto",
    checkpoint_seconds: float = 10.0,
    facts: dict[str, Any] | None = None,
    reuse: Iterable[str | Path] = (),
    callbacks: Sequence[Any] = (),
) -> Ensemble:
    """Train a credal ensemble, or finish training one that was interrupted.

    Args:
        make_net: a network's name (``credro list nets``), a function that builds a new one at every call, or heads on
            a frozen backbone, ``credro.on("efficientnet-lite0", head="mlp")``.
        train_set: a ``Data``, any torch ``Dataset`` or ``DataLoader``, a pair ``(x, y)``, or a file or folder. The
            distinct values of y are the classes, in order; ``ens.classes`` has their names, and ``pred.label`` counts
            them from 0. Real numbers make it a regression.
        method: a name (``credro list methods``), one that is changed, ``credro.methods.make("credro", delta_g=0.7)``,
            or any combination, ``credro.Method(start="biased", risk="cvar")``.
        members: M.
        recipe: how to train; one that suits the data if not given.
        classes: their names in order, or how many there are (10: 0 to 9), where not all of them occur in train_set.
        out: the run's folder; a temporary one if not given. A run that is already there goes on where it stopped; one
            with another configuration is refused.
        executor: "sequential", "processes", "stacked" or "auto".
        workers: processes.
        threads: per member.
        device: "auto" is the first accelerator, or the CPU.
        held_out: watched while training and recorded.
        early_stop: whether a member ends when its held-out loss no longer falls, and keeps the weights of its best
            epoch; None: where no recipe is given, and as the recipe says. Without ``held_out`` a part of train_set is
            set aside for it.
        calibrate: held-out data for one temperature per member; not given, members that stopped by their calibrated
            loss (``Recipe.early_stop_by``) are calibrated on held_out.
        loss: any function (output, target) -> (B,) in place of the recipe's.
        progress: "auto", "bar", "plain" or "none".
        checkpoint_seconds: at least this long between two checkpoints of a member.
        facts: anything else the run should remember.
        reuse: folders of other runs; a member that one of them has trained in the same way is taken from there
            (CreDRO's last member is one of a deep ensemble's).
        callbacks: functions called with a ``MemberEpoch`` after each epoch of each member, or objects with
            ``on_start``, ``on_epoch``, ``on_end`` (``credro.training.callbacks``).
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(
            "credro.fit was reached while a worker process read your script: put the call under "
            "`if __name__ == '__main__':`"
        )
    chosen = make(method) if isinstance(method, str) else method
    data = as_data(read_set(train_set) if isinstance(train_set, str | Path) else train_set, classes=classes)
    aside = None if calibrate is None else as_data_of(calibrate, data.classes, strict=True)
    if aside is not None:
        check_held_out(aside, count_classes(data), data.shape)
    keep = _Scratch() if out is None else None
    watched = None if held_out is None else as_data_of(held_out, data.classes, strict=True)
    if recipe is not None:
        check_recipe(recipe)
    trunk, record = None, None
    make_net = on(DEFAULT) if make_net == "text" else make_net
    if data.texts is not None and not isinstance(make_net, OnTrunk):
        raise ArgumentError("make_net", "make_net must be 'text' or credro.on(...) for texts: networks take numbers")
    if isinstance(make_net, OnTrunk):
        trunk, stored, tell = make_net.trunk, (data.origin or data).shape, progress != "none"
        check_kind(trunk, data)
        if isinstance(trunk, TextTrunk) and trunk.learns:  # from training texts alone
            first = planned(data, make_net, recipe, held_out=watched, early_stop=early_stop)
            data, watched, recipe = (
                replace(first.train, notes=(*data.notes, *first.notes)),
                first.held_out,
                first.recipe,
            )
            trunk = trunk.fit(data.texts or ())
        data = with_features(trunk, data, progress=tell)
        watched = None if watched is None else with_features(trunk, watched, progress=tell)
        record, make_net = trunk.record(stored, data.shape[0]), make_net.network(data.shape[0], count_classes(data))
    plan = planned(data, make_net, recipe, held_out=watched, early_stop=early_stop)
    chosen = method_for(plan.train, chosen, "" if loss else plan.recipe.loss)
    run = train(
        make_net,
        plan.train,
        chosen,
        members=members,
        recipe=plan.recipe,
        out=keep.folder if keep is not None else Path(str(out)),
        executor=executor,
        workers=workers,
        threads=threads,
        device=device,
        held_out=plan.held_out,
        loss=loss,
        progress=progress,
        checkpoint_seconds=checkpoint_seconds,
        facts=facts,
        reuse=reuse,
        callbacks=callbacks,
        notes=tuple(dict.fromkeys((*data.notes, _in_short(plan.train), *plan.notes))),
        trunk=record,
    )
    if trunk is not None and ngram_files(trunk) is not None:
        save_trunk(trunk, run.folder)
    own = None if isinstance(make_net, str) else make_net
    ensemble = load(run.folder, method=chosen, make_net=own, device=device, trunk=trunk)
    ensemble._keep = keep
    if aside is not None:
        ensemble.calibrate(aside)
    elif plan.calibrates and plan.held_out is not None:
        ensemble.calibrate(plan.held_out, least=1.0)  # what members were chosen by makes none of them surer
    return ensemble


def _in_short(data: Data) -> str:
    """``1,359 samples of shape (11,); 6 classes: 3, 4, 5, 6, 7, 8``."""
    named = f"; {list_classes(data.classes)}" if data.classes else ""
    what = "texts" if data.texts is not None else "samples"
    return f"training on {len(data):,} {what} of shape {data.shape}{named}"


class _Scratch:
    """A temporary folder that goes quietly with the last ensemble that reads from it, or with the process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="credro-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
