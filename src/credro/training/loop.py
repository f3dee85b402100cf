"""Training one member, from its first step or from its checkpoint to its final weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from credro.data.fields import call
from credro.nets import train_mode
from credro.nets.tail import slower
from credro.training.calibration import calibrated_loss
from credro.training.checkpoint import pack_optimizer, unpack_optimizer
from credro.training.diagnostics import fitness, scores_of
from credro.training.feed import Feed
from credro.training.files import read_tensors, remove_parts, write_json, write_tensors
from credro.training.job import Job, TrainingError
from credro.training.losses import SMALLER_STEPS, Losses, NonFiniteLoss, at_fault
from credro.training.recipe import Recipe, learning_rate, make_optimizer, plateau_reductions, set_rate
from credro.training.records import Epoch, Lowest, MemberRecord
from credro.training.run import History
from credro.training.sound import unsound
from credro.training.stopping import best_epoch, held_out_losses, improved, is_over, kept_epoch, stopped_early
from credro.training.streams import derive
from credro.training.threads import threads


@dataclass(frozen=True)
class Progress:
    """What a member reports after each epoch."""

    member: int
    epoch: int  # finished, counted from 1
    epochs: int
    loss: float
    accuracy: float | None  # None of a regression
    seconds: float  # of this epoch
    done: bool = False  # the member needs no more epochs


Report = Callable[[Progress], None]


def train_member(job: Job, i: int, report: Report, alive: Callable[[], bool] = lambda: True) -> None:
    """Train member ``i`` of ``job`` to the end, going on from its checkpoint if it has one.

    alive: asked before every batch; training stops quietly when it says no (the parent process is gone).
    """
    with job.run.lock(f"members/{i:02d}/lock", wait=60), own_randomness(job), threads(job.threads):
        if job.run.is_done(i):
            return
        trainer = Trainer(job, i)
        while not trainer.over:
            progress = trainer.train_epoch(alive)
            if progress is None:
                return
            report(progress)
        trainer.finish()


class Trainer:
    """One member's network, optimizer and place in its training.

    best: weights and buffers of the epoch with the smallest held-out loss so far; empty without early stopping.
    """

    fused: bool | None = None
    """Whether the optimizer is torch's fused one; None: what torch takes by itself."""

    def __init__(self, job: Job, i: int) -> None:
        """Fresh, or from the checkpoint."""
        self.job, self.i, self.member = job, i, job.member(i)
        self.net = job.network(i)
        trained = [p for p in self.net.parameters() if p.requires_grad]
        spared = self.member.head.without_decay(self.net)
        self.optimizer = make_optimizer(job.recipe, trained, spared, slower(self.net), fused=self.fused)
        self.scaler = torch.amp.GradScaler(job.device.type, enabled=job.recipe.precision == "fp16")
        self.feed = Feed(job.data, job.inputs, job.recipe, job.device, i)
        self.history = History(job.run.member(i) / "history.jsonl")
        self.state_path = job.run.state(i)
        self.best: dict[str, Tensor] = {}
        self.epoch = 0
        self.saved = time.monotonic()
        remove_parts(self.state_path.parent)
        if self.state_path.exists():
            self._restore()
        self.entries = self.history.keep(self.epoch)
        self.forward: Callable[..., Tensor] = torch.compile(self.net) if job.recipe.compile else self.net

    def train_epoch(self, alive: Callable[[], bool]) -> Progress | None:
        """One epoch, its record and, when due, its checkpoint."""
        job, started = self.job, time.monotonic()
        torch.manual_seed(derive(job.recipe.seed, self.i, "noise", self.epoch))  # dropout and the like
        losses = self._batches(alive)
        if losses is None:
            return None
        rate = self.optimizer.param_groups[0]["lr"]
        seen, (notes, stopped) = watched(self.net, job), self._ask_stop()
        seconds = round(time.monotonic() - started, 3)
        entry = Epoch(self.epoch + 1, losses.mean, losses.accuracy, rate, seconds, **seen, notes=notes, stopped=stopped)
        self.entries.append(entry)
        self.history.append(entry)
        self.epoch += 1
        if improved(job.recipe, self.entries):
            self.best = {name: t.detach().clone() for name, t in self.net.state_dict().items()}
        last = self.over
        if last or time.monotonic() - self.saved >= job.checkpoint_seconds:
            self._save()
        return Progress(self.i, self.epoch, job.recipe.epochs, losses.mean, losses.accuracy, seconds, last)

    @property
    def over(self) -> bool:
        """Whether the member needs no more epochs."""
        return is_over(self.job.recipe, self.entries) or not self.member.stop.trains

    def _ask_stop(self) -> tuple[dict[str, Any], bool]:
        """What the member's stop notes, and whether it ends here, measured by likelihood against its reference."""
        job, stop = self.job, self.member.stop
        if not stop.waits_for:
            return {}, False
        reference = job.run.record(stop.waits_for[0]).train
        own = fitness(self.net, job, self.i, job.data)
        if reference is None or reference.nll is None or own.nll is None:
            raise TrainingError(f"member {self.i} stops by a likelihood, and these outputs have none")
        return stop.after_epoch(own.nll, reference.nll)

    def _batches(self, alive: Callable[[], bool]) -> Losses | None:
        job, recipe, net = self.job, self.job.recipe, self.net
        losses = Losses(self.i, self.epoch, job.classifies, at_fault(self.feed, self.epoch))
        draws, head = job.draws(self.i, self.epoch), self.member.head
        reductions = self._reductions()
        per_sample, samples = job.loss, len(job.data)
        parameters, rate = list(net.parameters()), recipe.lr
        train_mode(net)
        for b, (x, target) in enumerate(self.feed.epoch(self.epoch)):
            if not alive():
                return None
            place = b % recipe.accumulate  # among the batches of one step
            together = min(recipe.accumulate, len(self.feed) - b + place)
            if place == 0:
                rate = learning_rate(recipe, self.epoch + b / len(self.feed), reductions)
                set_rate(self.optimizer, recipe, rate)
            with precision(recipe, job.device):
                output = call(self.forward, x)
                loss = self.member.loss(output, target, per_sample, draws)
                penalty = head.penalty(net, samples)
                if penalty is not None:
                    loss = loss + penalty
            if place == 0:
                self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(loss / together if together > 1 else loss).backward()  # type: ignore[no-untyped-call]
            if place == together - 1:
                self._step(parameters)
            losses.add(loss, right_answers(job, output, target).sum(), len(x), rate)
        losses.look()
        return losses

    def _step(self, parameters: list[nn.Parameter]) -> None:
        """One step by the gradients at hand."""
        if self.job.recipe.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(parameters, self.job.recipe.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _reductions(self) -> int:
        if self.job.recipe.schedule != "plateau":
            return 0
        return plateau_reductions(held_out_losses(self.entries), self.job.recipe.patience)

    def _save(self) -> None:
        tensors = {f"net.{k}": v for k, v in self.net.state_dict().items()} | pack_optimizer(self.optimizer)
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        facts = {"epoch": self.epoch, "scaler": self.scaler.state_dict()}
        write_tensors(self.state_path, tensors, facts)
        self.saved = time.monotonic()

    def _restore(self) -> None:
        tensors, facts = read_tensors(self.state_path)
        self.net.load_state_dict({k[4:]: v for k, v in tensors.items() if k.startswith("net.")})
        self.best = {k[5:]: v.to(self.job.device) for k, v in tensors.items() if k.startswith("best.")}
        unpack_optimizer(self.optimizer, tensors)
        self.scaler.load_state_dict(facts["scaler"])
        self.epoch = facts["epoch"]

    def finish(self) -> None:
        """Final weights, how well they fit, and the mark that says the member is done; the state is not needed more."""
        if kept_epoch(self.job.recipe, self.entries) < self.epoch:
            self.net.load_state_dict(self.best)
        finish_member(self.job, self.i, self.net, self.entries)
        self.state_path.unlink(missing_ok=True)


def watched(net: nn.Module, job: Job) -> dict[str, Any]:
    """An epoch's record of the held-out data, if there is any."""
    if job.held_out is None:
        return {}
    fit = fitness(net, job, 0, job.held_out)
    if not math.isfinite(fit.loss) and (fault := unsound(job.held_out, job.inputs)):
        raise NonFiniteLoss(f"the loss on held_out is {fit.loss}. {fault}")
    found: dict[str, Any] = {"held_out_loss": fit.loss, "held_out_accuracy": fit.accuracy}
    if job.recipe.early_stop and job.recipe.early_stop_by == "calibrated":
        found["held_out_calibrated"] = calibrated_loss(job.method.head, *scores_of(net, job, job.held_out), job.loss)
    return found


def finish_member(job: Job, i: int, net: nn.Module, entries: list[Epoch]) -> None:
    """Write a trained member's weights and record. The record comes last: it is what makes the member done.

    net: with the weights of its ``kept_epoch``.
    """
    kept, member, stops = kept_epoch(job.recipe, entries), job.member(i), bool(job.recipe.early_stop)
    train = fitness(net, job, i, job.data)
    if not math.isfinite(train.loss):  # its last step went wrong
        why = unsound(job.data, job.inputs) or SMALLER_STEPS
        raise NonFiniteLoss(f"member {i}: the loss on the training set is {train.loss} after epoch {kept}. {why}")
    lowest = best_epoch(held_out_losses(entries)) if job.held_out is not None else 0
    digest = write_tensors(job.run.weights(i), net.state_dict())
    record = MemberRecord(
        member=i,
        epochs=len(entries),
        seconds=round(sum(e.seconds for e in entries), 3),
        train=train,
        held_out=None if job.held_out is None else fitness(net, job, i, job.held_out),
        best_epoch=kept if stops else None,
        stopped_early=stopped_early(job.recipe, entries) if stops else None,
        lowest_held_out=Lowest(lowest, held_out_losses(entries)[lowest - 1]) if lowest else None,
        traits={**member.traits(), **(entries[kept - 1].notes if entries else {}), **member.left(net)},
        weights=digest,
    )
    write_json(job.run.record_path(i), record.to_json())


def right_answers(job: Job, output: Tensor, target: Tensor) -> Tensor:
    """Which of a batch (B,) the network got right, on the device; of a regression, none."""
    if not job.classifies:
        return torch.zeros(len(output), dtype=torch.bool, device=output.device)
    truth = target.argmax(-1) if target.ndim == 2 else target
    return job.method.head.guess(output.detach()) == truth


def precision(recipe: Recipe, device: torch.device) -> Any:
    """The context in which the forward pass runs."""
    if recipe.precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16 if recipe.precision == "bf16" else torch.float16)


def own_randomness(job: Job) -> Any:
    """The user's global generators are left as they were."""
    return torch.random.fork_rng(devices=[job.device] if job.device.type == "cuda" else [])
