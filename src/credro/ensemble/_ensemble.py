"""M trained networks of one method, and what can be asked of them."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from credro._names import ArgumentError, one_of
from credro.data.adapt import as_data, as_data_of, text_data
from credro.data.again import Wanted, read_samples, spec_of_facts
from credro.data.base import Data
from credro.data.fields import Field, listed
from credro.data.spec import DataSpec
from credro.data.texts import as_strings, check_no_files
from credro.ensemble._samples import Samples, are_files, is_image, sample_names
from credro.ensemble._scores import first_outputs, member_scores, versions
from credro.ensemble._trunk import save_trunk
from credro.methods import Method, as_read, known_methods, make
from credro.metrics import SCORES, Threshold, score_of, threshold
from credro.nets.texts import ngram_files
from credro.nets.trunk import Trunk
from credro.prediction import GaussianPrediction, Prediction
from credro.training.calibration import SMALLEST, check_held_out, fit_temperature, fit_variance
from credro.training.diagnostics import RUNS_WITH_DELTA, Diagnosis, warnings_for
from credro.training.feed import Inputs
from credro.training.files import digest_of, write_json
from credro.training.keep import Kept, Parts, write_run
from credro.training.records import Calibration, HeldOut, MemberRecord, RunConfig
from credro.training.run import Run
from credro.training.seen import Overlap, SeenSamples, SeenWarning, note_seen, noted, overlap_with, read_seen
from credro.training.summary import Summary


class Ensemble:
    """M trained networks, and the method that makes predictions of them."""

    kept: Kept | None = None  # what is known of an ensemble without a run; here, since older pickles lack it
    trunk: Trunk | None = None  # what stands before the members, which are then heads on its features

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
        self.nets, self.method, self.inputs, self.classes = nets, method, inputs, classes
        self.device, self.run = device, run
        self.temperatures: list[float] = [1.0] * len(nets)
        self._keep: object = None  # a temporary folder that lives as long as this
        self._as_loaded = versions(nets)
        if run is not None and (found := run.calibration()) is not None:
            self.temperatures = list(found.temperatures)

    @classmethod
    def of(cls, nets: Iterable[nn.Module], data: Samples, *, method: str | Method = "crewra") -> Ensemble:
        """An ensemble of networks that were trained elsewhere; they are put into eval mode.

        Args:
            nets: M modules that give logits (B, C).
            data: labelled samples they take, to learn shape and classes from; samples go in as floats (tokens as whole
                numbers), and otherwise as they are.
            method: how to read them; "credro" if trained so.
        """
        members, known = [net.eval() for net in nets], as_data(data)
        if not members:
            raise ArgumentError("nets", "nets must hold at least one module, got none")
        where = next(members[0].parameters(), torch.empty(0)).device
        inputs, outputs = first_outputs(members, known, where)
        shapes = {tuple(out.shape) for out in outputs}
        if len(shapes) > 1 or any(len(shape) != 2 for shape in shapes):
            raise ArgumentError(
                "nets", f"nets must all give logits (B, C) of the same classes, got {sorted(shapes)} for one sample"
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
        what = "regression" if self.regression else f"{len(self.classes)} classes"
        return f"Ensemble({self.method.name}, {len(self)} members, {what}{calibrated})"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        kinds = ", ".join(sorted({type(net).__name__ for net in self.nets}))
        networks = f"{len(self)} networks ({kinds})"
        like = listed(self.fields) if self.fields else f"shape {self.shape}"
        temperatures, records = self.temperatures, self.records
        return Summary(repr(self), networks, self.classes, like, temperatures, records, self.warnings).html()

    @property
    def regression(self) -> bool:
        """Whether the members predict real numbers, and not classes."""
        return not self.classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample, as it is stored: what goes into the networks, or into the trunk before them."""
        config = self.config
        return config.trunk.shape if config is not None and config.trunk is not None else self.inputs.shape

    @property
    def fields(self) -> tuple[Field, ...]:
        """Of samples of several tensors, what each is like; empty: a sample is one tensor, of ``shape``."""
        config = self.config
        return config.trunk.fields if config is not None and config.trunk is not None else self.inputs.fields

    @property
    def calibrated(self) -> bool:
        """Whether temperatures have been fitted."""
        return any(t != 1.0 for t in self.temperatures)

    @property
    def config(self) -> RunConfig | None:
        """What the members were trained with; None where nobody knows."""
        if self.run is not None:
            return self.run.config()
        return self.kept.config if self.kept is not None else None

    @property
    def records(self) -> list[MemberRecord]:
        """What each member recorded when it finished: fit on the training set, epochs, seconds, delta."""
        if self.run is not None:
            return self.run.records()
        return list(self.kept.records) if self.kept is not None else []

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """What may make the members' uncertainty mean less than it seems. Calibration settles confidence."""
        return [d for d in warnings_for(self.records) if not (self.calibrated and d.code == RUNS_WITH_DELTA)]

    @property
    def warnings(self) -> list[str]:
        """The same in plain words; empty when all is well."""
        return [diagnosis.text for diagnosis in self.diagnoses]

    @property
    def readers(self) -> list[str]:
        """Names of the methods that can read these networks, its own among them."""
        return known_methods(self.method)

    def read_as(self, method: str | Method) -> Ensemble:
        """The same networks under another read-out."""
        return self._copy(as_read(self.method, method))

    def plain(self) -> Ensemble:
        """The same networks at temperature 1."""
        other = self._copy(self.method)
        other.temperatures = [1.0] * len(self)
        return other

    def _copy(self, method: Method) -> Ensemble:
        other = Ensemble.__new__(type(self))
        other.__dict__.update(self.__dict__, method=method, temperatures=list(self.temperatures))
        return other

    def without_run(self) -> Ensemble:
        """The same ensemble, independent of its folder; what the run knows goes along."""
        if self.run is None:
            return self
        alone = self._copy(self.method)
        alone.run, alone._keep, alone.kept = None, None, Kept.of(self.run)
        return alone

    def predict(self, x: Samples, *, batch_size: int = 512, cache: bool = True, any_size: bool = False) -> Prediction:
        """Members' probabilities, credal set and uncertainties of samples ``x``.

        Args:
            x: tensor or array of samples as the training set stores them, a ``Data``, ``Dataset`` or ``DataLoader``; or
                files and images, read as the command line reads them (``read``): "a.jpg", ["a.jpg", "b.jpg"],
                "new.csv". For members that take texts: a text or a list of them, or a ``Path`` to a file.
            batch_size: samples at a time; memory beyond the outputs (M, N, C) is that of one batch.
            cache: keep the outputs for a ``Data`` in the run.
            any_size: images of another height and width than the training set's go in as they are, where the network
                takes them (docs/networks.md); how sure its answers are there is for you to find out.
        """
        self._need_classes()
        cache = cache and not self._are_strings(x)
        x = self.read(x) if are_files(x) or self._are_strings(x) else x
        scores = self.scores(x, batch_size=batch_size, cache=cache, any_size=any_size)
        return replace(self.predict_scores(scores), samples=sample_names(x))

    def predict_scores(self, scores: Tensor) -> Prediction:
        """The same from members' scores (M, N, ...) that are at hand (``scores``)."""
        prediction = self.method.readout(self.probs(scores))
        return replace(prediction, classes=self.classes, method=self.method.name)

    def predict_regression(
        self, x: Samples, *, batch_size: int = 512, cache: bool = True, any_size: bool = False
    ) -> GaussianPrediction:
        """The same for a regression: each member gives a Gaussian, and the credal set is of their mixtures."""
        if not self.regression:
            raise ValueError(f"the members tell {len(self.classes)} classes apart: use predict")
        cache = cache and not self._are_strings(x)
        x = self.read(x) if are_files(x) or self._are_strings(x) else x
        scores = self.scores(x, batch_size=batch_size, cache=cache, any_size=any_size)
        prediction = self.method.readout.regression(self.gaussians(scores))
        return replace(prediction, samples=sample_names(x), method=self.method.name)

    def probs(self, scores: Tensor) -> Tensor:
        """Members' scores (M, N, ...) to what the read-out takes, each member at its own temperature."""
        self._need_classes()
        return self.method.head.probs(self._tempered(scores))

    def gaussians(self, scores: Tensor) -> Tensor:
        """Members' scores (M, N, 2) to mean and log variance, each member's variances by its own factor."""
        if scores.ndim != 3 or scores.shape[-1] != 2:
            raise ValueError(
                f"members of a regression must give mean and log variance, (M, N, 2) in all, got "
                f"{tuple(scores.shape)}; scores(x) has their outputs as they are"
            )
        return self._tempered(scores)

    def _tempered(self, scores: Tensor) -> Tensor:
        scale = torch.tensor(self.temperatures, dtype=scores.dtype).view(-1, *[1] * (scores.ndim - 1))
        return self.method.head.tempered(scores, scale)

    def _need_classes(self) -> None:
        if self.regression:
            raise ValueError("the members predict real numbers, not classes: use predict_regression")

    def scores(self, x: Samples, *, batch_size: int = 512, cache: bool = True, any_size: bool = False) -> Tensor:
        """What the members' networks give (M, N, ...), on the CPU: for most heads the logits."""
        return member_scores(self, x, batch_size=batch_size, cache=cache, any_size=any_size)

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """Digests of the members' weights, as their records have them; of a run of version 0.1, from the files."""
        run = self.run
        assert run is not None, "only a run has files of weights"
        return tuple(record.weights or digest_of(run.weights(i)) for i, record in enumerate(self.records))

    def calibrate(self, held_out: Samples, *, least: float = SMALLEST) -> list[float]:
        """Fit one temperature per member by likelihood on ``held_out``, and keep them with the run.

        They are applied before any read-out; of a regression they multiply the variances. Calibration repairs part of
        what underfitting does to credal sets, and harms those of members that fit (docs/results.md): it is a choice to
        measure, not a default.

        Args:
            held_out: labelled samples that the members were not trained on.
            least: the smallest temperature that is tried; 1 makes no member surer than it is, which few samples, all
                of them right, would make it without bound.
        """
        data = as_data_of(held_out, self.classes, strict=True)
        check_held_out(data.origin or data, len(self.classes), self.shape, self.fields)
        scores = self.scores(data)
        if self.regression:
            self.temperatures = [fit_variance(s, data.labels, least) for s in scores]
        else:
            self.temperatures = [fit_temperature(self.method.head, s, data.labels, least) for s in scores]
        found = Calibration(tuple(self.temperatures), HeldOut(data.name, len(data), data.fingerprint()))
        if self.run is not None:
            write_json(self.run.calibration_path, found.to_json())
            note_seen(self.run, calibrated=data)
        else:
            known = self.kept or Kept()
            self.kept = replace(known, calibration=found, seen=noted(known.seen, calibrated=data))
        return self.temperatures

    def uncalibrate(self) -> None:
        """Back to temperature 1."""
        self.temperatures = [1.0] * len(self)
        if self.run is not None:
            self.run.calibration_path.unlink(missing_ok=True)
            note_seen(self.run, calibrated=None)
        elif self.kept is not None:
            self.kept = replace(self.kept, calibration=None, seen=noted(self.kept.seen, calibrated=None))

    @property
    def spec(self) -> DataSpec:
        """How the data of the run was read; without one, nothing is known of it."""
        config = self.config
        if config is None:
            return DataSpec("")
        return config.data.spec or spec_of_facts(config.facts)

    @property
    def wanted(self) -> Wanted:
        """What samples must be like, for ``credro.data.again`` to read them."""
        return Wanted(self.shape, self.classes, self.spec, self.takes_texts)

    @property
    def takes_texts(self) -> bool:
        """Whether samples are texts."""
        return self.trunk is not None and self.trunk.takes_texts

    def _are_strings(self, x: Samples) -> bool:
        return self.takes_texts and (isinstance(x, str) or as_strings(x) is not None)

    def read(self, x: Any, **options: Any) -> Data:
        """Samples from files, as the command line reads them: a path or a list of them, or Pillow's images.

        For members that take texts a ``str`` is a text, and a ``Path`` a file.
        options: split, root, label, on_error of ``credro.data.again.read_samples``.
        """
        if self._are_strings(x):
            strings = as_strings([x] if isinstance(x, str) else x) or ()
            check_no_files(strings)
            return text_data(strings)
        sets = read_samples(self.wanted, [x] if isinstance(x, str | Path) or is_image(x) else list(x), **options)
        if len(sets) != 1:
            raise ArgumentError(
                "x", f"x must be images, or one table, array or set; got {len(sets)} kinds: predict them apart"
            )
        return sets[0]

    @property
    def seen(self) -> dict[str, Tensor]:
        """The content of the samples that were trained, watched and calibrated on, by use; empty: nobody knows."""
        if self.run is not None:
            return read_seen(self.run)
        return self.kept.seen if self.kept is not None else {}

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

        ``choice.accepts(ens.predict(new))`` tells which new samples to answer.

        Args:
            held_out: labelled samples of the distribution that is to come. Those that the run was trained, watched or
                calibrated on would promise too much: they are left out with a ``SeenWarning``, and where none is left
                ``SeenSamples`` is raised. Samples of a class that the members do not know count as wrong answers.
            max_error: the greatest fraction of wrong answers among those given.
            confidence: of the promise, over the draw of ``held_out``.
            score: what is compared with the threshold, "total", "epistemic" or "confidence" (1 - max p). Errors are
                found better by total than by epistemic uncertainty, which is for unfamiliar inputs
                (docs/evaluation.md).
        """
        one_of("score", score, SCORES)
        data, found = self.unseen(held_out)
        if found.used:
            warnings.warn(f"{data.name}: {found}: left out", SeenWarning, stacklevel=2)
        if data.labels.ndim != 1 or data.labels.is_floating_point():
            raise ArgumentError("held_out", f"held_out must have class labels, one per sample; {data.name!r} has not")
        prediction = self.predict(data)
        right = prediction.label == data.labels
        return threshold(score_of(prediction, score), right, max_error, confidence, score=score)

    def save(self, folder: str | Path, *, with_trunk: bool = False) -> Path:
        """Copy the run (configuration, weights, records, calibration; not the cached predictions) to ``folder``.

        with_trunk: the trunk's weights too, where the members stand on one; else the run knows its address and digest.

        Networks that were trained elsewhere (``Ensemble.of``) become a run too, which ``credro.load(folder,
        make_net=...)`` reads; ``make_net`` builds one of them.
        """
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{target} is not empty: choose a new folder")
        if self.run is None:
            parts = Parts(self.nets, self.method, self.inputs, self.classes, self.device)
            write_run(target, parts, self.kept or Kept())
        else:
            leave = shutil.ignore_patterns("predictions", "lock", "lock.owner", "*.part")
            shutil.copytree(self.run.folder, target, ignore=leave, dirs_exist_ok=True)
        if self.trunk is not None and (with_trunk or ngram_files(self.trunk) is not None):
            save_trunk(self.trunk, target)
        return target
