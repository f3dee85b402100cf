"""Have the members fitted, and does their confidence run with delta? CreDRO's uncertainty means little where not.

A member that only ever sees its worst half learns, while it underfits, to be unsure of everything; the box then
measures that difference on every input (docs/results.md, the regimes).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from credro.data.base import Data
from credro.training.feed import batches

if TYPE_CHECKING:
    from credro.training.job import Job

FITTED = 0.98  # training accuracy, eval mode, below which a member counts as not fitted
SPREAD = 0.03  # difference of mean confidence between the smallest and the largest delta that is worth a warning
EVAL_BATCH = 500


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


def warnings_for(records: Sequence[dict[str, Any]]) -> list[str]:
    """Plain words about members that have not fitted, or whose confidence runs with delta; empty when all is well."""
    fits = [r for r in records if "accuracy" in r.get("train", {})]
    said = []
    low = [r for r in fits if r["train"]["accuracy"] < FITTED]
    if low:
        worst = min(low, key=lambda r: float(r["train"]["accuracy"]))
        said.append(
            f"{len(low)} of {len(fits)} members have not fitted the training data (member {worst['member']}: "
            f"{worst['train']['accuracy']:.1%} right in eval mode). Epistemic uncertainty is only as good as "
            f"the fit: train longer, with less augmentation, or with a larger network."
        )
    with_delta = sorted((r for r in fits if "delta" in r), key=lambda r: float(r["delta"]))
    if len(with_delta) > 2:
        confidence = [float(r["train"]["confidence"]) for r in with_delta]
        rises = sum(b > a for a, b in pairwise(confidence))
        if confidence[-1] - confidence[0] > SPREAD and rises >= 0.75 * (len(confidence) - 1):
            said.append(
                f"Mean confidence runs with delta, from {confidence[0]:.2f} at delta {with_delta[0]['delta']:.3g} to "
                f"{confidence[-1]:.2f} at delta {with_delta[-1]['delta']:.3g}: the intervals measure that difference "
                f"on every input. Train until all members fit, or calibrate each on held-out data: "
                f"ens.calibrate(held_out), or --calibrate on the command line."
            )
    return said
