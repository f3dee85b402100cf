"""Have the members fitted, would it help, and does their confidence run with delta?

A member that only ever sees its worst half learns, while it underfits, to be unsure of everything; the box then
measures that difference on every input (docs/results.md, the regimes). On noisy data the remedy is not to train
longer: the held-out loss says so, and is looked at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from credro.data.base import Data
from credro.training.feed import batches
from credro.training.records import Fit, MemberRecord

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


@dataclass(frozen=True)
class Diagnosis:
    """What is to be said of an ensemble's members: a code to decide by, and plain words."""

    code: str
    text: str

    def __str__(self) -> str:
        """The words."""
        return self.text


@torch.no_grad()
def fitness(net: nn.Module, job: Job, i: int, data: Data) -> Fit:
    """Mean loss, likelihood, accuracy and confidence of member i's network on ``data``, eval mode, no augmentation."""
    head, was_training = job.member(i).head, net.training
    net.eval()
    loss = nll = hits = confidence = 0.0
    likely = True
    for part in batches(len(data), EVAL_BATCH):
        index = torch.arange(part.start, part.stop)
        x = job.inputs(data.batch(index).to(job.device))
        target = data.labels[index].to(job.device)
        scores = head.scores(net, x)
        loss += float(head.held_losses(scores, target, job.loss).sum())
        likely = likely and (job.classifies or scores.shape[1:] == (2,))  # a user's own loss may know no likelihood
        nll -= float(head.log_likelihood(scores, target).sum()) if likely else 0.0
        if job.classifies:
            probs = head.point(head.probs(scores))
            truth = target.argmax(-1) if target.ndim == 2 else target
            hits += float((probs.argmax(-1) == truth).sum())
            confidence += float(probs.amax(-1).sum())
    net.train(was_training)
    n = len(data)
    classes = (hits / n, confidence / n) if job.classifies else (None, None)
    return Fit(loss / n, nll / n if likely else None, *classes)


@torch.no_grad()
def scores_of(net: nn.Module, job: Job, data: Data) -> tuple[Tensor, Tensor]:
    """A member's scores (N, ...) of ``data`` and its targets (N, ...), network in eval mode."""
    head, was_training = job.method.head, net.training
    net.eval()
    parts = [torch.arange(part.start, part.stop) for part in batches(len(data), EVAL_BATCH)]
    scores = [head.scores(net, job.inputs(data.batch(index).to(job.device))) for index in parts]
    net.train(was_training)
    return torch.cat(scores), data.labels.to(job.device)


def warnings_for(records: Sequence[MemberRecord]) -> list[Diagnosis]:
    """What may make the members' uncertainty mean less than it seems; empty when all is well."""
    fits = [_Fitted(r, r.train, r.train.accuracy) for r in records if r.train and r.train.accuracy is not None]
    found = (_too_long(fits), _fit(fits), _confidence(fits))
    return [diagnosis for diagnosis in found if diagnosis is not None]


@dataclass(frozen=True)
class _Fitted:
    """A member whose training accuracy is known."""

    record: MemberRecord
    train: Fit
    accuracy: float

    @property
    def stopped(self) -> bool:
        """Whether the weights are those of an epoch after which the held-out loss did not get better."""
        return self.record.best_epoch is not None and self.record.best_epoch < self.record.epochs

    @property
    def rise(self) -> float:
        """Held-out loss at the end over the lowest, of a member that was not to stop early; else 0."""
        lowest, held_out = self.record.lowest_held_out, self.record.held_out
        if self.record.best_epoch is not None or lowest is None or held_out is None or not lowest.loss > 0:
            return 0.0
        return held_out.loss / lowest.loss

    @property
    def rose(self) -> bool:
        """Whether the held-out loss rose from its lowest to the end."""
        return self.rise > RISE


def _too_long(fits: Sequence[_Fitted]) -> Diagnosis | None:
    rose = [f for f in fits if f.rose]
    if not rose:
        return None
    worst = max(rose, key=lambda f: f.rise).record
    assert worst.lowest_held_out is not None
    assert worst.held_out is not None
    lowest = worst.lowest_held_out
    return Diagnosis(
        OVERFIT,
        f"{len(rose)} of {len(fits)} members trained past their best (member {worst.member}: held-out loss "
        f"{lowest.loss:.3f} after epoch {lowest.epoch}, {worst.held_out.loss:.3f} after "
        f"{worst.epochs}). Recipe(early_stop=5) keeps the best epoch's weights.",
    )


def _fit(fits: Sequence[_Fitted]) -> Diagnosis | None:
    """Members that do not fit: would longer training help? Where the held-out loss says no, that is not advised."""
    low = [f for f in fits if f.accuracy < FITTED]
    if not low:
        return None
    worst = min(low, key=lambda f: f.accuracy)
    right = f"member {worst.record.member}: {worst.accuracy:.1%} right in eval mode"
    if any(f.stopped or f.rose for f in low):
        stops, epochs = [f for f in low if f.stopped], f"{worst.record.best_epoch} of {worst.record.epochs}"
        at = f"; stopped at its best epoch, {epochs}" if worst.stopped else ""
        what = "stopped at their best epoch before they" if len(stops) == len(low) else "do not"
        return Diagnosis(
            STOPPED_EARLY,
            f"{len(low)} of {len(fits)} members {what} fit the training data ({right}{at}): by the held-out loss, to "
            f"fit it further makes the probabilities worse. On such data find errors by total uncertainty, or "
            f"calibrate; that CreDRO's epistemic uncertainty tells OOD inputs best was shown for members that fit "
            f"(docs/results.md, Early stopping and CreDRO).",
        )
    watched = all(f.record.held_out is not None for f in low)
    unknown = "" if watched else " if a held-out loss still falls (held_out, early_stop)"
    return Diagnosis(
        UNDERFIT,
        f"{len(low)} of {len(fits)} members have not fitted the training data ({right}). Epistemic uncertainty is only "
        f"as good as the fit: train longer{unknown}, with less augmentation, or with a larger network.",
    )


def _confidence(fits: Sequence[_Fitted]) -> Diagnosis | None:
    known = [(f.record.delta, f.train.confidence) for f in fits]
    pairs = sorted(((d, c) for d, c in known if d is not None and c is not None), key=lambda pair: pair[0])
    if len({d for d, _ in pairs}) < 3:
        return None
    confidence = [c for _, c in pairs]
    rises = sum(b > a for a, b in pairwise(confidence))
    if confidence[-1] - confidence[0] <= SPREAD or rises < 0.75 * (len(confidence) - 1):
        return None
    longer = "" if any(f.stopped or f.rose for f in fits) else "Train until all members fit, or "
    calibrate = "calibrate each on held-out data: ens.calibrate(held_out), or --calibrate on the command line."
    return Diagnosis(
        RUNS_WITH_DELTA,
        f"Mean confidence runs with delta, from {confidence[0]:.2f} at delta {pairs[0][0]:.3g} to "
        f"{confidence[-1]:.2f} at delta {pairs[-1][0]:.3g}: the intervals measure that difference on every "
        f"input. {longer}{calibrate if longer else calibrate.capitalize()}",
    )
