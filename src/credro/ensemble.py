"""A trained ensemble: fit, load, predict, calibrate, save."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from credro.data.adapt import as_data, as_data_of, as_tensor
from credro.data.again import Wanted, read_samples, spec_of_facts
from credro.data.base import Data
from credro.data.classes import Classes, list_classes
from credro.data.load import load as read_set
from credro.data.spec import DataSpec
from credro.evaluation import SCORES, Threshold, score_of, threshold
from credro.methods import METHODS, Method, make, method_of, shared_options
from credro.objectives import PerSampleLoss, Rule
from credro.readouts import GaussianPrediction, Prediction
from credro.training.calibration import SMALLEST, check_held_out, fit_temperature, fit_variance
from credro.training.checkpoint import read_json, read_tensors, write_json, write_tensors
from credro.training.diagnostics import RUNS_WITH_DELTA, warnings_for
from credro.training.feed import Inputs, batches, holds_whole_numbers
from credro.training.job import MakeNet, count_classes
from credro.training.keep import Kept, Parts, build_members, check_members, in_words, write_run
from credro.training.plan import planned
from credro.training.recipe import Recipe
from credro.training.run import Run, RunError
from credro.training.seen import Overlap, SeenSamples, SeenWarning, note_seen, noted, overlap_with, read_seen
from credro.training.sizes import check_shape, own_name, saying_size
from credro.training.summary import Summary
from credro.training.threads import side_by_side
from credro.training.train import check_recipe, net_factory, pick_device, train

Samples = Any
"""A tensor or array of samples, a ``Data``, a torch ``Dataset`` or a ``DataLoader``."""


def fit(
    make_net: str | MakeNet,
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
    share: Iterable[str | Path] = (),
) -> Ensemble:
    """Train a credal ensemble, or finish training one that was interrupted.

    make_net: a network's name (``credro list nets``) or a function that builds a new one at every call.
    train_set: a ``Data``, any torch ``Dataset`` or ``DataLoader``, or a pair ``(x, y)``. The distinct values of y are
        the classes, in order; ``ens.classes`` has their names, and ``pred.label`` counts them from 0.
    classes: their names in order, or how many there are (10: 0 to 9), where not all of them occur in train_set.
    method: a name (``credro list methods``) or ``credro.methods.make(name, option=...)``. members: M.
    recipe: how to train; one that suits the data if not given. out: the run's folder; a temporary one if not given.
        A run that is already there goes on where it stopped; one with another configuration is refused.
    executor: "sequential", "processes", "stacked" or "auto". workers: processes. threads: per member.
    held_out: watched while training and recorded. early_stop: whether a member ends when its held-out loss no longer
        falls, and keeps the weights of its best epoch; None: where no recipe is given, and as the recipe says. Without
        ``held_out`` a part of train_set is set aside for it. calibrate: held-out data for one temperature per member;
        not given, members that stopped by their calibrated loss (``Recipe.early_stop_by``) are calibrated on held_out.
    loss: any function (output, target) -> (B,) in place of the recipe's. progress: "auto", "bar", "plain" or "none".
    facts: anything else the run should remember. share: folders of other runs; a member that one of them has already
    trained in the same way is taken from there (CreDRO's last member is one of a deep ensemble's).
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(
            "credro.fit was reached while a worker process read your script: put the call under "
            "`if __name__ == '__main__':`"
        )
    chosen = make(method) if isinstance(method, str) else method
    data = read_set(train_set) if isinstance(train_set, str | Path) else train_set
    data = as_data(data, classes=classes)
    aside = None if calibrate is None else as_data_of(calibrate, data.classes, strict=True)
    if aside is not None:
        check_held_out(aside, count_classes(data), data.shape)
    keep = _Scratch() if out is None else None
    folder = keep.folder if keep is not None else Path(str(out))
    watched = None if held_out is None else as_data_of(held_out, data.classes, strict=True)
    if recipe is not None:
        check_recipe(recipe)
    plan = planned(data, make_net, recipe, held_out=watched, early_stop=early_stop)
    run = train(
        make_net,
        plan.train,
        chosen,
        members=members,
        recipe=plan.recipe,
        out=folder,
        executor=executor,
        workers=workers,
        threads=threads,
        device=device,
        held_out=plan.held_out,
        loss=loss,
        progress=progress,
        checkpoint_seconds=checkpoint_seconds,
        facts=facts,
        share=share,
        notes=(*data.notes, _in_short(plan.train), *plan.notes),
    )
    ensemble = load(run.folder, method=chosen, make_net=None if isinstance(make_net, str) else make_net, device=device)
    ensemble._keep = keep
    if aside is not None:
        ensemble.calibrate(aside)
    elif plan.calibrates and plan.held_out is not None:
        ensemble.calibrate(plan.held_out, least=1.0)  # what members were chosen by makes none of them surer
    return ensemble


def load(
    folder: str | Path,
    *,
    method: str | Method | None = None,
    make_net: MakeNet | None = None,
    device: str | torch.device = "auto",
) -> Ensemble:
    """A trained run from its folder. Nothing in it is a pickle, so a run from a stranger is safe to load.

    method: read the same networks by another method of the same training rule, such as "crewra" for a run of "de".
    make_net: needed for a network that is not one of credro's own.
    """
    run = Run(folder)
    config = run.config()
    missing = [i for i in range(config["members"]) if run.done(i) is None]
    if missing:
        raise RunError(f"{run.folder} is not finished: members {missing} are not trained; start the same fit again")
    where = pick_device(device)
    if isinstance(method, Method):
        chosen = method
    else:
        recorded = method_of(config)
        chosen = recorded if method is None else make(method, **shared_options(method, recorded))
    trained = config["method"]["rule"]
    if json.loads(json.dumps(chosen.rule.config())) != trained:
        readers = [name for name, entry in METHODS.items() if getattr(entry.rule, "name", None) == trained["rule"]]
        raise ValueError(
            f"{run.folder} was trained by {trained}; method {chosen.name!r} needs {chosen.rule.config()}. "
            f"These read it: {', '.join(readers)}"
        )
    network, inputs = config["network"], Inputs.from_config(config["inputs"])
    if "name" in network:
        build, _ = net_factory(network["name"], len(config["classes"]), inputs.shape, network.get("target"))
    elif make_net is None:
        raise ValueError(
            f"{run.folder} was trained with {in_words(network)}: give make_net, the function that builds it"
        )
    else:
        build = make_net
    nets = [net.to(where) for net in build_members(run, config, build, chosen.rule)]
    check_members(run, network, Parts(nets, chosen, inputs, tuple(config["classes"]), where))
    return Ensemble(nets, chosen, inputs, tuple(config["classes"]), where, run)


def _outputs(nets: Iterable[nn.Module], x: Tensor) -> list[Tensor]:
    with torch.inference_mode():
        return [net(x) for net in nets]


def _in_short(data: Data) -> str:
    """``1,359 samples of shape (11,); 6 classes: 3, 4, 5, 6, 7, 8``."""
    named = f"; {list_classes(data.classes)}" if data.classes else ""
    return f"training on {len(data):,} samples of shape {data.shape}{named}"


class _Scratch:
    """A temporary folder that goes quietly with the last ensemble that reads from it, or with the process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="credro-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def _is_image(x: Samples) -> bool:
    """Whether ``x`` is one of Pillow's images, without importing Pillow."""
    return type(x).__module__.partition(".")[0] == "PIL"


def _are_files(x: Samples) -> bool:
    """Whether ``x`` names files, or is one of Pillow's images or a list of them."""
    first = x[0] if isinstance(x, list | tuple) and x else x
    return isinstance(first, str | Path) or _is_image(first)


def _holds_numbers(x: Samples) -> bool:
    """Whether ``x`` is an array, a data frame or a list of samples, and not a dataset of (sample, label) pairs."""
    if isinstance(x, Tensor | Data) or not isinstance(x, list):
        return hasattr(x, "__array__")
    try:
        return bool(x) and np.asarray(x[0]).dtype.kind in "fiub"
    except ValueError:  # a sample and its label have no common shape
        return False


def _sample_names(x: Samples) -> tuple[Any, ...]:
    """Files of samples that come from files, row labels of a data frame; nothing where samples have numbers only."""
    if isinstance(x, Data):
        return tuple(map(str, x.paths))
    return tuple(x.index.tolist()) if hasattr(x, "columns") and hasattr(x, "index") else ()


class Ensemble:
    """M trained networks of one training rule, and the read-out that makes predictions of them."""

    kept: Kept | None = None  # what is known of an ensemble without a run; here, since older pickles lack it

    def __init__(
        self,
        nets: list[nn.Module],
        method: Method,
        inputs: Inputs,
        classes: tuple[str, ...],
        device: torch.device,
        run: Run | None = None,
    ) -> None:
        """Usually made by ``fit`` or ``load``."""
        self.nets, self.method, self.inputs, self.classes, self.device, self.run = (
            nets,
            method,
            inputs,
            classes,
            device,
            run,
        )
        self.temperatures: list[float] = [1.0] * len(nets)
        self._keep: _Scratch | None = None
        if run is not None and self._calibration.exists():
            self.temperatures = read_json(self._calibration)["temperatures"]

    @classmethod
    def of(cls, nets: Iterable[nn.Module], data: Samples, *, method: str | Method = "crewra") -> Ensemble:
        """An ensemble of networks that were trained elsewhere; they are put into eval mode.

        nets: M modules that give logits (B, C). data: labelled samples they take, to learn shape and classes from;
        samples go in as floats (tokens as whole numbers), and otherwise as they are. method: how to read them;
        ``credro`` if trained so.
        """
        members, known = [net.eval() for net in nets], as_data(data)
        if not members:
            raise ValueError("nets must hold at least one module, got none")
        weight = next(members[0].parameters(), torch.empty(0))
        inputs, where = Inputs(known.shape, whole=holds_whole_numbers(known)), weight.device
        first = known.batch(torch.tensor([0])).to(where)
        try:
            outputs = _outputs(members, inputs(first))
        except RuntimeError:
            if not inputs.whole:
                raise
            inputs = Inputs(known.shape)  # no tokens, then, but numbers that happen to be whole
            outputs = _outputs(members, inputs(first))
        shapes = {tuple(out.shape) for out in outputs}
        if len(shapes) > 1 or any(len(shape) != 2 for shape in shapes):
            raise ValueError(
                f"nets must all give logits (B, C) of the same classes, got {sorted(shapes)} for one sample"
            )
        count = outputs[0].shape[1]
        classes = known.classes if len(known.classes) == count else tuple(map(str, range(count)))
        return cls(members, make(method) if isinstance(method, str) else method, inputs, classes, where)

    def __len__(self) -> int:
        """Number of members."""
        return len(self.nets)

    def __repr__(self) -> str:
        """Method, members, classes."""
        calibrated = ", calibrated" if self.calibrated else ""
        what = f"{len(self.classes)} classes" if self.classes else "numbers"
        return f"Ensemble({self.method.name}, {len(self)} members, {what}{calibrated})"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        kinds = ", ".join(sorted({type(net).__name__ for net in self.nets}))
        return Summary(
            repr(self),
            f"{len(self)} networks ({kinds})",
            self.classes,
            self.inputs.shape,
            self.temperatures,
            self.records,
            self.warnings,
        ).html()

    @property
    def rule(self) -> Rule:
        """The members' training rule."""
        return self.method.rule

    @property
    def calibrated(self) -> bool:
        """Whether temperatures have been fitted."""
        return any(t != 1.0 for t in self.temperatures)

    @property
    def records(self) -> list[dict[str, Any]]:
        """What each member recorded when it finished: fit on the training set, epochs, seconds, delta."""
        if self.run is None:
            return list(self.kept.records) if self.kept is not None else []
        return [self.run.done(i) or {} for i in range(len(self))]

    @property
    def warnings(self) -> list[str]:
        """Plain words about members that have not fitted; empty when all is well. Calibration settles confidence."""
        return [d.text for d in warnings_for(self.records) if not (self.calibrated and d.code == RUNS_WITH_DELTA)]

    def read_as(self, method: str | Method) -> Ensemble:
        """The same networks under another read-out of the same training rule."""
        chosen = make(method, **shared_options(method, self.method)) if isinstance(method, str) else method
        if chosen.rule != self.rule:
            raise ValueError(
                f"method {chosen.name!r} needs members trained by {chosen.rule}, these were by {self.rule}"
            )
        other = Ensemble(self.nets, chosen, self.inputs, self.classes, self.device, self.run)
        other.temperatures, other.kept, other._keep = self.temperatures, self.kept, self._keep
        return other

    def without_run(self) -> Ensemble:
        """The same ensemble, independent of its folder; what the run knows goes along."""
        if self.run is None:
            return self
        alone = Ensemble(self.nets, self.method, self.inputs, self.classes, self.device)
        alone.temperatures, alone.kept = self.temperatures, Kept.of(self.run)
        return alone

    def predict(self, x: Samples, *, batch_size: int = 512, cache: bool = True, any_size: bool = False) -> Prediction:
        """Members' probabilities, credal set and uncertainties of samples ``x``.

        x: tensor or array of samples as the training set stores them, a ``Data``, ``Dataset`` or ``DataLoader``; or
        files and images, read as the command line reads them (``read``): "a.jpg", ["a.jpg", "b.jpg"], "new.csv".
        Memory beyond the outputs (M, N, C) is that of one batch. cache: keep the outputs for a ``Data`` in the run.
        any_size: images of another height and width than the training set's go in as they are, where the network takes
        them (docs/networks.md); how sure its answers are there is for you to find out.
        """
        self._need_classes()
        x = self.read(x) if _are_files(x) else x
        scores = self.scores(x, batch_size=batch_size, cache=cache, any_size=any_size)
        prediction = self.method.readout(self.probs(scores))
        return replace(prediction, classes=self.classes, samples=_sample_names(x), method=self.method.name)

    def predict_numbers(
        self, x: Samples, *, batch_size: int = 512, cache: bool = True, any_size: bool = False
    ) -> GaussianPrediction:
        """The same for members that were trained on numbers: each gives a Gaussian, and the set is of mixtures."""
        if self.classes:
            raise ValueError(f"the members tell {len(self.classes)} classes apart: use predict")
        x = self.read(x) if _are_files(x) else x
        scores = self.scores(x, batch_size=batch_size, cache=cache, any_size=any_size)
        prediction = self.method.readout.numbers(self.gaussians(scores))
        return replace(prediction, samples=_sample_names(x), method=self.method.name)

    def probs(self, scores: Tensor) -> Tensor:
        """Members' scores (M, N, ...) to probabilities, each member at its own temperature."""
        self._need_classes()
        scale = torch.tensor(self.temperatures, dtype=scores.dtype).view(-1, *[1] * (scores.ndim - 1))
        return self.rule.probs(scores / scale)

    def gaussians(self, scores: Tensor) -> Tensor:
        """Members' scores (M, N, 2) to mean and log variance, each member's variances by its own factor."""
        if scores.ndim != 3 or scores.shape[-1] != 2:
            raise ValueError(
                f"members that predict numbers must give mean and log variance, (M, N, 2) in all, got "
                f"{tuple(scores.shape)}; scores(x) has their outputs as they are"
            )
        factors = torch.tensor(self.temperatures, dtype=scores.dtype).log()[:, None]
        return torch.stack([scores[..., 0], scores[..., 1] + factors], -1)

    def _need_classes(self) -> None:
        if not self.classes:
            raise ValueError("the members predict numbers, not classes: use predict_numbers")

    def scores(self, x: Samples, *, batch_size: int = 512, cache: bool = True, any_size: bool = False) -> Tensor:
        """What the members' networks give (M, N, ...), on the CPU: for most rules the logits."""
        if isinstance(x, Data) and x.shape != self.inputs.shape:  # before a kept answer could hide it
            self._check_shape(x.shape, any_size)
        known = isinstance(x, Data) and (x.in_memory or bool(x.paths))  # others have no fingerprint of all samples
        path = self._cache_path(x) if cache and self.run is not None and known else None
        if path is not None and path.exists():
            return read_tensors(path)[0]["scores"]
        with side_by_side(len(self.nets), self.device) as each:
            found = (self._scores_of(batch, any_size) for batch in self._batches(x, batch_size))
            parts = [torch.stack(each(scores_of, self.nets)) for scores_of in found]
        if not parts:
            raise ValueError("x is empty: there is nothing to predict")
        scores = torch.cat(parts, 1)
        if path is not None:
            write_tensors(path, {"scores": scores})
        return scores

    def _check_shape(self, shape: tuple[int, ...], any_size: bool) -> None:
        known = self.kept.config if self.kept is not None else None
        config = known if self.run is None else self.run.config()
        check_shape(shape, self.inputs.shape, any_size, own_name(config))

    def _scores_of(self, batch: Tensor, any_size: bool = False) -> Callable[[nn.Module], Tensor]:
        """What gives one member's scores of a batch (B, ...), on the CPU."""
        shape = tuple(batch.shape[1:])
        if shape != self.inputs.shape:
            self._check_shape(shape, any_size)
        strange = batch.isinf() if self.inputs.fills else ~batch.isfinite()
        if batch.is_floating_point() and bool(strange.any()):
            bad = int(strange.flatten(1).any(1).nonzero()[0])
            what = "infinite" if self.inputs.fills else "NaN or infinite"
            raise ValueError(f"x is {what} in sample {bad} of a batch of {len(batch)}")
        x = self.inputs(batch.to(self.device))

        @torch.inference_mode()
        def scores(net: nn.Module) -> Tensor:
            return self.rule.scores(net, x).float().cpu()

        return scores if shape == self.inputs.shape else saying_size(scores, shape)

    def _batches(self, x: Samples, size: int) -> Iterator[Tensor]:
        """Samples as stored, a batch at a time."""
        if isinstance(x, tuple):
            x = as_data(x)
        elif _holds_numbers(x):
            x = as_tensor(x, "x")
        if isinstance(x, Tensor):
            if tuple(x.shape) == self.inputs.shape:
                raise ValueError(f"x is one sample, of shape {self.inputs.shape}: give a batch of them, x[None]")
            yield from torch.split(x, size) if len(x) else ()
        elif isinstance(x, Data):
            for part in batches(len(x), size):
                yield x.batch(torch.arange(part.start, part.stop))
        else:  # anybody's dataset: with or without labels, and read once only
            for item in x if isinstance(x, DataLoader) else DataLoader(x, batch_size=size):
                yield item[0] if isinstance(item, list | tuple) else item

    def calibrate(self, held_out: Samples, *, least: float = SMALLEST) -> list[float]:
        """Fit one temperature per member by likelihood on ``held_out``, keep them with the run.

        least: the smallest that is tried; 1 makes no member surer than it is, which few samples, all of them right,
        would make it without bound.

        They are applied before any read-out; of members that predict numbers they multiply the variances. Calibration
        repairs part of what underfitting does to credal sets, and harms those of members that fit (docs/results.md):
        it is a choice to measure, not a default.
        """
        data = as_data_of(held_out, self.classes, strict=True)
        check_held_out(data, len(self.classes), self.inputs.shape)
        scores = self.scores(data)
        if self.classes:
            self.temperatures = [fit_temperature(self.rule, s, data.labels, least) for s in scores]
        else:
            self.temperatures = [fit_variance(s, data.labels, least) for s in scores]
        facts = {"name": data.name, "samples": len(data), "fingerprint": data.fingerprint()}
        found = {"temperatures": self.temperatures, "held_out": facts}
        if self.run is not None:
            write_json(self._calibration, found)
            note_seen(self.run, calibrated=data)
        else:
            known = self.kept or Kept()
            self.kept = replace(known, calibration=found, seen=noted(known.seen, calibrated=data))
        return self.temperatures

    def uncalibrate(self) -> None:
        """Back to temperature 1."""
        self.temperatures = [1.0] * len(self)
        if self.run is not None:
            self._calibration.unlink(missing_ok=True)
            note_seen(self.run, calibrated=None)
        elif self.kept is not None:
            self.kept = replace(self.kept, calibration=None, seen=noted(self.kept.seen, calibrated=None))

    @property
    def seen(self) -> dict[str, Tensor]:
        """The content of the samples that were trained, watched and calibrated on, by use; empty: nobody knows."""
        if self.run is not None:
            return read_seen(self.run)
        return self.kept.seen if self.kept is not None else {}

    @property
    def spec(self) -> DataSpec:
        """How the data of the run was read; without one, nothing is known of it."""
        if self.run is None:
            return DataSpec("")
        config = self.run.config()
        plain = config["data"].get("spec")
        return spec_of_facts(config.get("facts") or {}) if plain is None else DataSpec.from_json(plain)

    @property
    def wanted(self) -> Wanted:
        """What samples must be like, for ``credro.data.again`` to read them."""
        return Wanted(self.inputs.shape, self.classes, self.spec)

    def read(self, x: Any, **options: Any) -> Data:
        """Samples from files, as the command line reads them: a path or a list of them, or Pillow's images.

        options: split, root, label, on_error of ``credro.data.again.read_samples``.
        """
        sets = read_samples(self.wanted, [x] if isinstance(x, str | Path) or _is_image(x) else list(x), **options)
        if len(sets) != 1:
            raise ValueError(f"x must be images, or one table, array or set; got {len(sets)} kinds: predict them apart")
        return sets[0]

    def overlap(self, data: Data, content: Tensor | None = None) -> tuple[Overlap, Tensor]:
        """How much of ``data`` was used to make the ensemble, and which samples (N,) were not.

        content: ``data.content()``, where it is at hand.
        """
        return overlap_with(self.seen, data, content)

    def unseen(self, data: Samples) -> tuple[Data, Overlap]:
        """The samples of ``data`` that the run has used for nothing, and how many it has used.

        Told by content, so the way they came by does not matter. ``SeenSamples`` is raised where none is left.
        """
        known = as_data_of(data, self.classes)
        found, fresh = self.overlap(known)
        if not found.used:
            return known, found
        if not bool(fresh.any()):
            raise SeenSamples(
                f"{known.name}: {found}; what is measured on them says nothing of new samples. Take others"
            )
        return known.subset(fresh.nonzero()[:, 0]), found

    def threshold(
        self, held_out: Samples, *, max_error: float = 0.05, confidence: float = 0.95, score: str = "total"
    ) -> Threshold:
        """A threshold on uncertainty below which at most ``max_error`` of the answers are wrong (``credro.threshold``).

        held_out: labelled samples of the distribution that is to come. Those that the run was trained, watched or
        calibrated on would promise too much: they are left out with a ``SeenWarning``, and where none is left
        ``SeenSamples`` is raised. Samples of a class that the members do not know count as wrong answers.
        score: what is compared with the threshold, "total", "epistemic" or "confidence" (1 - max p). Errors are found
        better by total than by epistemic uncertainty, which is for unfamiliar inputs (docs/evaluation.md).
        ``choice.accepts(ens.predict(new))`` tells which new samples to answer.
        """
        if score not in SCORES:
            raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
        data, found = self.unseen(held_out)
        if found.used:
            warnings.warn(f"{data.name}: {found}: left out", SeenWarning, stacklevel=2)
        if data.labels.ndim != 1 or data.labels.is_floating_point():
            raise ValueError(f"held_out must have class labels, one per sample; {data.name!r} has not")
        prediction = self.predict(data)
        right = prediction.label == data.labels
        return threshold(score_of(prediction, score), right, max_error, confidence, score=score)

    def save(self, folder: str | Path) -> Path:
        """Copy the run (configuration, weights, records, calibration; not the cached predictions) to ``folder``.

        Networks that were trained elsewhere (``Ensemble.of``) become a run too, which ``credro.load(folder,
        make_net=...)`` reads; ``make_net`` builds one of them.
        """
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{target} is not empty: choose a new folder")
        if self.run is None:
            parts = Parts(self.nets, self.method, self.inputs, self.classes, self.device)
            write_run(target, parts, self.kept or Kept())
            return target
        shutil.copytree(
            self.run.folder, target, ignore=shutil.ignore_patterns("predictions", "lock"), dirs_exist_ok=True
        )
        return target

    @property
    def _calibration(self) -> Path:
        assert self.run is not None
        return self.run.folder / "calibration.json"

    def _cache_path(self, data: Data) -> Path:
        """A file named after the samples and the weights: another set or retrained members never meet a stale file."""
        assert self.run is not None
        digest = hashlib.sha256()
        for net in self.nets:
            for t in net.state_dict().values():
                digest.update(t.cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return self.run.folder / "predictions" / f"{data.fingerprint()}-{digest.hexdigest()[:12]}.safetensors"
