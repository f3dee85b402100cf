"""One ensemble under every method that can read it: accuracy, calibration, selective prediction, OOD detection.

The members run over each set once; all methods, plain and calibrated, read the same scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from credro.data.base import Data, as_data
from credro.data.conform import conform
from credro.ensemble import Ensemble
from credro.evaluation import OODScores, accuracy, accuracy_rejection, brier, ece, evaluate_ood, member_accuracy, nll
from credro.methods import make, reading
from credro.readouts import Prediction, ReadOut

BINS = 10
"""Bins of the expected calibration error."""

OF_PROBABILITIES = ("de", "crewra", "creens")
"""What can be read from the probabilities of anybody's ensemble."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Line:
    """One method on one ensemble. Accuracies and scores lie in [0, 1]; EU, NLL are in nats (EU of two classes: width).

    members: accuracy of the worst, the mean and the best member. area: under the accuracy-rejection curve.
    ood: the detection scores of each OOD set, by name.
    """

    method: str
    calibrated: bool
    accuracy: float
    ece: float
    nll: float
    brier: float
    members: tuple[float, float, float]
    mean_eu: float
    area: float
    normalised_area: float
    ood: dict[str, OODScores] = field(default_factory=dict)

    @property
    def mean_auroc(self) -> float:
        """Mean AUROC over the OOD sets; NaN without any."""
        return sum(s.auroc for s in self.ood.values()) / len(self.ood) if self.ood else math.nan

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it; what is not a number is None."""
        low, mean, high = self.members
        plain = {**asdict(self), "members": {"min": low, "mean": mean, "max": high}, "mean_auroc": self.mean_auroc}
        result: dict[str, Any] = _finite(plain)
        return result


@dataclass(frozen=True)
class Assessment:
    """Every reading of one ensemble on one ID set and several OOD sets.

    ood: size of each OOD set. warnings: what the fit of the members says against trusting the lines.
    """

    name: str
    data: str
    samples: int
    members: int
    ood: dict[str, int]
    lines: tuple[Line, ...]
    warnings: tuple[str, ...] = ()

    def __getitem__(self, method: str) -> Line:
        """The plain line of ``method``."""
        return self.line(method)

    def line(self, method: str, calibrated: bool = False) -> Line:
        """The line of ``method``, plain or calibrated."""
        for line in self.lines:
            if (line.method, line.calibrated) == (method, calibrated):
                return line
        known = ", ".join(f"{s.method}{' calibrated' if s.calibrated else ''}" for s in self.lines)
        raise KeyError(f"no line for {method!r}{' calibrated' if calibrated else ''}; there are {known}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {**asdict(self), "warnings": list(self.warnings), "lines": [line.to_dict() for line in self.lines]}


def assess(
    ensemble: Ensemble | Sequence[nn.Module],
    data: Data | Any,
    ood: Mapping[str, Any] | None = None,
    methods: Sequence[str] | None = None,
    *,
    name: str | None = None,
    say: Say | None = None,
) -> Assessment:
    """Read ``ensemble`` by every method of its training rule, plain and, if it is calibrated, calibrated.

    ensemble: may be a list of modules that give logits (``Ensemble.of``). data: labelled ID samples, a ``Data``, a
    ``Dataset`` or a pair (x, y). ood: strangers by name; labels do not matter, and a tensor or array needs none.
    Images are brought to the run's shape.
    methods: only these. name: what the result calls the ensemble. say: told what is being worked on.
    """
    data, ood = as_data(data), {k: unlabelled(v) for k, v in (ood or {}).items()}
    if not isinstance(ensemble, Ensemble):
        ensemble = Ensemble.of(ensemble, data)
    known = reading(ensemble.rule)
    chosen = list(known if methods is None else methods)
    if unreadable := [m for m in chosen if m not in known]:
        raise ValueError(f"methods must be among {', '.join(known)} for this ensemble, got {', '.join(unreadable)}")
    if data.labels.ndim != 1 or data.labels.is_floating_point():
        raise ValueError(f"{data.name!r} must have class labels, one per sample, to be evaluated on")
    tell = say or (lambda text: None)
    scores: dict[str, Tensor] = {}
    for title, part in (("", data), *ood.items()):
        tell(f"predicting {title or part.name}, {len(part):,} samples")
        scores[title] = ensemble.scores(conform_to(part, ensemble.inputs.shape))
    lines = []
    for calibrated in (False, True) if ensemble.calibrated else (False,):
        for method in chosen:
            tell(f"measuring {method}")
            reader = ensemble.read_as(ensemble.method if method == ensemble.method.name else method)
            reader.temperatures = ensemble.temperatures if calibrated else [1.0] * len(ensemble)
            predictions = {k: reader.method.readout(reader.probs(s)) for k, s in scores.items()}
            lines.append(line_of(method, calibrated, predictions.pop(""), data.labels, predictions))
    title = name or (ensemble.run.folder.name if ensemble.run is not None else ensemble.method.name)
    sizes = {k: len(v) for k, v in ood.items()}
    return Assessment(title, data.name, len(data), len(ensemble), sizes, tuple(lines), tuple(ensemble.warnings))


def assess_probs(
    probs: Any,
    labels: Any,
    ood: Mapping[str, Any] | None = None,
    methods: Sequence[str] | None = None,
    *,
    name: str = "probs",
    say: Say | None = None,
) -> Assessment:
    """The same for the probabilities of anybody's ensemble: (M, N, C), and (M, K, C) of each OOD set; labels (N,)."""
    chosen = list(OF_PROBABILITIES if methods is None else methods)
    if unreadable := [m for m in chosen if m not in OF_PROBABILITIES]:
        raise ValueError(f"methods must be among {', '.join(OF_PROBABILITIES)}, got {', '.join(unreadable)}")
    sets = {k: torch.as_tensor(v) for k, v in {"probs": probs, **(ood or {})}.items()}
    for key, given in sets.items():
        if given.ndim != 3 or (given.shape[0], given.shape[2]) != (sets["probs"].shape[0], sets["probs"].shape[-1]):
            wanted = "(M, N, C)" if key == "probs" else f"(M, K, C) with the M and C of {tuple(sets['probs'].shape)}"
            raise ValueError(f"{key} must have shape {wanted}, got {tuple(given.shape)}")
    known, truth = sets.pop("probs"), _class_numbers(labels)
    lines = []
    for method in chosen:
        if say is not None:
            say(f"measuring {method}")
        readout: ReadOut = make(method).readout
        lines.append(line_of(method, False, readout(known), truth, {k: readout(p) for k, p in sets.items()}))
    sizes = {k: v.shape[1] for k, v in sets.items()}
    return Assessment(name, name, known.shape[1], len(known), sizes, tuple(lines))


def are_modules(source: Any) -> TypeGuard[Sequence[nn.Module]]:
    """Whether ``source`` is a list (or tuple, or ``ModuleList``) of networks."""
    return isinstance(source, list | tuple | nn.ModuleList) and all(isinstance(net, nn.Module) for net in source)


def unlabelled(source: Any) -> Data:
    """Samples whose labels do not matter: what ``as_data`` takes, or a tensor or array by itself."""
    if isinstance(source, Tensor | np.ndarray):
        return as_data((source, torch.zeros(len(source), dtype=torch.long)))
    return as_data(source)


def _class_numbers(labels: Any) -> Tensor:
    """Labels (N,) as a tensor; names have no place among probabilities, whose classes are numbered."""
    if not isinstance(labels, Tensor) and (kind := np.asarray(labels).dtype).kind in "OSU":
        raise TypeError(f"labels must hold class numbers from 0, got {kind}: number the names as the columns of probs")
    return torch.as_tensor(labels)


def conform_to(data: Data, shape: tuple[int, ...]) -> Data:
    """``data`` in the shape an ensemble takes: images are resized and coloured, anything else must fit already."""
    if data.shape == shape:
        return data
    if len(data.shape) != 3 or len(shape) != 3:
        raise ValueError(f"{data.name!r} has samples of shape {data.shape}, the ensemble takes {shape}")
    return conform(data, shape)


def line_of(
    method: str, calibrated: bool, prediction: Prediction, labels: Tensor, ood: Mapping[str, Prediction]
) -> Line:
    """Every measure of one method's predictions of a labelled set, and of strangers by name."""
    eu, per_member = prediction.epistemic, member_accuracy(prediction.probs, labels)
    curve = accuracy_rejection(prediction.label == labels, eu)
    return Line(
        method=method,
        calibrated=calibrated,
        accuracy=accuracy(prediction.label, labels),
        ece=ece(prediction.mean, labels, BINS),
        nll=nll(prediction.mean, labels),
        brier=brier(prediction.mean, labels),
        members=(float(per_member.min()), float(per_member.mean()), float(per_member.max())),
        mean_eu=float(eu.mean()),
        area=curve.area,
        normalised_area=curve.normalised_area,
        ood={name: evaluate_ood(eu, other.epistemic) for name, other in ood.items()},
    )


def layout(assessments: Sequence[Assessment]) -> str:
    """One readable table of several assessments: accuracy, ECE and AUROC in per cent, a line per method."""
    several, ood = len(assessments) > 1, list(dict.fromkeys(k for a in assessments for k in a.ood))
    calibrated = any(line.calibrated for a in assessments for line in a.lines)
    columns = [*(["run"] if several else []), "method", *(["as"] if calibrated else [])]
    columns += ["accuracy", "ECE", *([f"AUROC\n{name}" for name in ood]), *(["AUROC\nmean"] if len(ood) > 1 else [])]
    rows = []
    for a in assessments:
        for line in a.lines:
            kind = ["calibrated" if line.calibrated else "plain"] if calibrated else []
            row = [*([a.name] if several else []), line.method, *kind, _percent(line.accuracy), _percent(line.ece)]
            row += [_percent(line.ood[name].auroc) if name in line.ood else "-" for name in ood]
            rows.append([*row, *([_percent(line.mean_auroc)] if len(ood) > 1 else [])])
    return table(rows, columns, widest=10)


def flat(assessments: Sequence[Assessment]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows for a CSV: everything in the lines, one row per run, method and calibration."""
    ood = list(dict.fromkeys(k for a in assessments for k in a.ood))
    plain = ["accuracy", "ece", "nll", "brier", "mean_eu", "area", "normalised_area"]
    header = ["run", "data", "samples", "method", "calibrated", *plain, "member_min", "member_mean", "member_max"]
    header += [f"{score}:{name}" for name in ood for score in ("auroc", "aupr", "fpr95", "gap")] + ["mean_auroc"]
    rows = []
    for a in assessments:
        for line in a.lines:
            row: list[Any] = [a.name, a.data, a.samples, line.method, line.calibrated]
            row += [getattr(line, key) for key in plain] + list(line.members)
            for name in ood:
                s = line.ood.get(name)
                row += [s.auroc, s.aupr, s.fpr95, s.gap] if s else [None] * 4
            rows.append([*row, line.mean_auroc])
    return header, [["" if v is None or v != v else v for v in row] for row in rows]


def table(rows: Sequence[Sequence[object]], columns: Sequence[str], *, widest: int = 12) -> str:
    """Plain aligned text: headings above a rule, numbers to the right, everything else to the left.

    A heading wider than ``widest`` is broken after a space, hyphen, underscore, colon or slash; a line break is kept.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    heads = [_broken(column, widest) for column in columns]
    height = max((len(h) for h in heads), default=1)
    heads = [[""] * (height - len(h)) + h for h in heads]
    right = [bool(cells) and all(_numeric(row[i]) for row in cells) for i in range(len(columns))]
    widths = [max(map(len, [*heads[i], *(row[i] for row in cells)])) for i in range(len(columns))]
    lines = [[h[level] for h in heads] for level in range(height)] + [["-" * w for w in widths]] + cells
    return "\n".join(
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in lines
    )


def _broken(text: str, widest: int) -> list[str]:
    lines: list[str] = []
    for part in re.findall(r"\n?[^ _:/\n-]*[ _:/-]?", text):
        if not lines or part.startswith("\n") or (lines[-1] and len((lines[-1] + part).rstrip()) > widest):
            lines.append("")
        lines[-1] += part
    return [line.strip() for line in lines]


def _numeric(text: str) -> bool:
    return re.fullmatch(r"-|[-+]?[\d.,]+(e[-+]?\d+)?%?|nan", text) is not None


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.2f}"


def _finite(value: Any) -> Any:
    """NaN and infinity, which JSON does not have, as None."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
