"""Have the members fitted, would it help, and does their confidence run with delta?

A member that only ever sees its worst half learns, while it underfits, to be unsure of everything; the box then
measures that difference on every input (docs/results.md, the regimes). On noisy data the remedy is not to train
longer: the held-out loss says so, and is looked at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from credro.data.base import Data
from credro.training.feed import batches

if TYPE_CHECKING:
    from credro.training.job import Job

FITTED = 0.98  # training accuracy, eval mode, below which a member counts as not fitted
SPREAD = 0.03  # difference of mean confidence between the smallest and the largest delta that is worth a warning
RISE = 1.25  # held-out loss at the end over the lowest, from which training went on for too long
EVAL_BATCH = 500

UNDERFIT = "underfit"
STOPPED_EARLY = "stopped-early"
OVERFIT = "overfit"
RUNS_WITH_DELTA = "confidence-runs-with-delta"

Record = dict[str, Any]
"""What a member recorded when it finished."""


@dataclass(frozen=True)
class Diagnosis:
    """What is to be said of an ensemble's members: a code to decide by, and plain words."""

    code: str
    text: str

    def __str__(self) -> str:
        """The words."""
        return self.text


@torch.no_grad()
def fitness(net: nn.Module, job: Job, data: Data) -> dict[str, float]:
    """Mean loss, accuracy and mean confidence of a member on ``data``, network in eval mode, no augmentation."""
    was_training = net.training
    net.eval()
    loss = hits = confidence = 0.0
    for part in batches(len(data), EVAL_BATCH):
        index = torch.arange(part.start, part.stop)
        x = job.inputs(data.batch(index).to(job.device))
        target = data.labels[index].to(job.device)
        scores = job.rule.scores(net, x)
        loss += float(job.rule.losses(scores, target, job.loss).sum())
        if job.classifies:
            probs = job.rule.point(job.rule.probs(scores))
            truth = target.argmax(-1) if target.ndim == 2 else target
            hits += float((probs.argmax(-1) == truth).sum())
            confidence += float(probs.amax(-1).sum())
    net.train(was_training)
    n = len(data)
    return (
        {"loss": loss / n, "accuracy": hits / n, "confidence": confidence / n} if job.classifies else {"loss": loss / n}
    )


@torch.no_grad()
def scores_of(net: nn.Module, job: Job, data: Data) -> tuple[Tensor, Tensor]:
    """A member's scores (N, ...) of ``data`` and its targets (N, ...), network in eval mode."""
    was_training = net.training
    net.eval()
    parts = [torch.arange(part.start, part.stop) for part in batches(len(data), EVAL_BATCH)]
    scores = [job.rule.scores(net, job.inputs(data.batch(index).to(job.device))) for index in parts]
    net.train(was_training)
    return torch.cat(scores), data.labels.to(job.device)


def warnings_for(records: Sequence[Record]) -> list[Diagnosis]:
    """What may make the members' uncertainty mean less than it seems; empty when all is well."""
    fits = [r for r in records if "accuracy" in r.get("train", {})]
    found = (_too_long(fits), _fit(fits), _confidence(fits))
    return [diagnosis for diagnosis in found if diagnosis is not None]


def _stopped(record: Record) -> bool:
    """Whether the weights are those of an epoch after which the held-out loss did not get better."""
    return "best_epoch" in record and record["best_epoch"] < record["epochs"]


def _rose(record: Record) -> bool:
    """Whether the held-out loss rose from its lowest to the end: a run that was not to stop early."""
    if "best_epoch" in record or "lowest_held_out" not in record:
        return False
    return bool(record["held_out"]["loss"] > RISE * record["lowest_held_out"]["loss"] > 0)


def _too_long(fits: Sequence[Record]) -> Diagnosis | None:
    rose = [r for r in fits if _rose(r)]
    if not rose:
        return None
    worst = max(rose, key=lambda r: float(r["held_out"]["loss"] / r["lowest_held_out"]["loss"]))
    lowest = worst["lowest_held_out"]
    return Diagnosis(
        OVERFIT,
        f"{len(rose)} of {len(fits)} members trained past their best (member {worst['member']}: held-out loss "
        f"{lowest['loss']:.3f} after epoch {lowest['epoch']}, {worst['held_out']['loss']:.3f} after "
        f"{worst['epochs']}). Recipe(early_stop=5) keeps the best epoch's weights.",
    )


def _fit(fits: Sequence[Record]) -> Diagnosis | None:
    """Members that do not fit: would longer training help? Where the held-out loss says no, that is not advised."""
    low = [r for r in fits if r["train"]["accuracy"] < FITTED]
    if not low:
        return None
    worst = min(low, key=lambda r: float(r["train"]["accuracy"]))
    right = f"member {worst['member']}: {worst['train']['accuracy']:.1%} right in eval mode"
    if any(_stopped(r) or _rose(r) for r in low):
        stops = [r for r in low if _stopped(r)]
        at = f"; stopped at its best epoch, {worst['best_epoch']} of {worst['epochs']}" if _stopped(worst) else ""
        what = "stopped at their best epoch before they" if len(stops) == len(low) else "do not"
        return Diagnosis(
            STOPPED_EARLY,
            f"{len(low)} of {len(fits)} members {what} fit the training data ({right}{at}): by the held-out loss, to "
            f"fit it further makes the probabilities worse. On such data find errors by total uncertainty, or "
            f"calibrate; that CreDRO's epistemic uncertainty tells OOD inputs best was shown for members that fit "
            f"(docs/results.md, Early stopping and CreDRO).",
        )
    watched = all("held_out" in r for r in low)
    unknown = "" if watched else " if a held-out loss still falls (held_out, early_stop)"
    return Diagnosis(
        UNDERFIT,
        f"{len(low)} of {len(fits)} members have not fitted the training data ({right}). Epistemic uncertainty is only "
        f"as good as the fit: train longer{unknown}, with less augmentation, or with a larger network.",
    )


def _confidence(fits: Sequence[Record]) -> Diagnosis | None:
    with_delta = sorted((r for r in fits if "delta" in r), key=lambda r: float(r["delta"]))
    if len(with_delta) < 3:
        return None
    confidence = [float(r["train"]["confidence"]) for r in with_delta]
    rises = sum(b > a for a, b in pairwise(confidence))
    if confidence[-1] - confidence[0] <= SPREAD or rises < 0.75 * (len(confidence) - 1):
        return None
    longer = "" if any(_stopped(r) or _rose(r) for r in fits) else "Train until all members fit, or "
    calibrate = "calibrate each on held-out data: ens.calibrate(held_out), or --calibrate on the command line."
    return Diagnosis(
        RUNS_WITH_DELTA,
        f"Mean confidence runs with delta, from {confidence[0]:.2f} at delta {with_delta[0]['delta']:.3g} to "
        f"{confidence[-1]:.2f} at delta {with_delta[-1]['delta']:.3g}: the intervals measure that difference on every "
        f"input. {longer}{calibrate if longer else calibrate.capitalize()}",
    )
