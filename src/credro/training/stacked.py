"""All members of a small network at once: their weights stacked, one forward pass for all by ``torch.func``.

Small networks keep a processor busy with overhead, not with arithmetic; twenty of them in one pass cost little more
than one. Every member keeps its own order, augmentation and loss, so it learns what it would learn alone, up to
floating-point rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from credro.data.fields import Batch, Fields, stacked
from credro.members.head import Head, in_one_go
from credro.nets import train_mode
from credro.training.checkpoint import pack_optimizer, unpack_optimizer
from credro.training.feed import Feed
from credro.training.files import read_tensors, remove_parts, write_tensors
from credro.training.job import Job
from credro.training.loop import Progress, Report, finish_member, precision, right_answers, watched
from credro.training.losses import Losses, NonFiniteLoss, at_fault
from credro.training.recipe import learning_rate, make_optimizer
from credro.training.records import Epoch
from credro.training.run import History
from credro.training.stopping import improved, kept_epoch, stopped_early


def why_not_stacked(job: Job) -> str | None:
    """Why the members of ``job`` cannot be trained at once, or None."""
    heads = [job.member(i).head for i in range(job.members)]
    if reason := next((head.one_by_one for head in heads if head.one_by_one), ""):
        return reason
    for what in ("penalty", "without_decay"):  # which a stack knows nothing of
        if any(getattr(type(head), what) is not getattr(Head, what) for head in heads):
            return f"head {job.method.head.kind!r} has a {what} of its own, and trains its members one by one"
    if any(job.member(i).stop.waits_for for i in range(job.members)):
        return f"with stop={job.method.stop.kind!r} members wait for another"
    if job.recipe.schedule == "plateau":
        return "schedule='plateau' gives each member a learning rate of its own"
    if job.recipe.precision == "fp16":
        return "precision='fp16' scales each member's loss by itself; use bf16 or fp32"
    if job.recipe.compile:
        return "compile=True is for networks trained one by one"
    if job.data.ragged:
        return "samples of different lengths are padded for each member's own batches"
    net = job.network(0)
    train_mode(net)
    if len(list(net.parameters())) < len(list(net.named_parameters(remove_duplicate=False))):
        return "layers of the network share weights"
    for module in net.modules():
        if (
            isinstance(module, nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d | nn.AlphaDropout)
            and module.p > 0
            and module.training
        ):
            return "dropout would not draw from each member's own stream"
    try:
        x = job.inputs(job.data.batch(torch.arange(min(2, len(job.data)))).to(job.device))
        Stack(job, [0, job.members - 1]).forward(stacked([x, x]), training=True)
    except Exception as error:  # whatever the network's own code and torch.func do not agree on
        return f"torch.func cannot run the network for all members at once ({str(error).splitlines()[0]})"
    return None


class Stack:
    """The members' networks with stacked weights (M, ...), and one optimizer over all.

    best: (M, ...) each, the weights and buffers of every member's best epoch so far; empty without early stopping.
    """

    def __init__(self, job: Job, members: list[int]) -> None:
        """Every member starts from its own initialisation."""
        nets = [job.network(i) for i in members]
        self.job, self.members, self.nets = job, members, nets
        params, buffers = stack_module_state(nets)
        self.params = {k: v.detach().requires_grad_(v.requires_grad) for k, v in params.items()}
        self.buffers = dict(buffers)
        self.best: dict[str, Tensor] = {}
        self.optimizer = make_optimizer(job.recipe, [p for p in self.params.values() if p.requires_grad])
        base = nets[0]

        def call(params: dict[str, Tensor], buffers: dict[str, Tensor], x: Any) -> Tensor:
            args, named = ((), x) if isinstance(x, dict) else (x if isinstance(x, tuple) else (x,), {})
            output: Tensor = functional_call(base, (params, buffers), args, named)
            return output

        self._forward: Callable[..., Tensor] = vmap(call)

    def forward(self, x: Batch, training: bool) -> Tensor:
        """Outputs (M, B, ...) of all members on their own batches (M, B, ...)."""
        if training:
            train_mode(self.nets[0])
        else:
            self.nets[0].eval()
        return self._forward(self.params, self.buffers, x.value if isinstance(x, Fields) else x)

    def network(self, place: int, best: bool = False) -> nn.Module:
        """The network at ``place`` with its present weights, or those of its best epoch."""
        net = self.nets[place]
        own = dict(net.named_parameters()) | dict(net.named_buffers())
        with torch.no_grad():
            for name, stacked in (self.best if best else {**self.params, **self.buffers}).items():
                own[name].copy_(stacked[place])
        return net

    def keep(self, place: int) -> None:
        """Remember the present weights of the member at ``place`` as its best."""
        now = {**self.params, **self.buffers}
        if not self.best:
            self.best = {name: torch.zeros_like(t, requires_grad=False) for name, t in now.items()}
        with torch.no_grad():
            for name, t in now.items():
                self.best[name][place] = t[place]

    def state(self) -> dict[str, Tensor]:
        """Everything a checkpoint needs."""
        tensors = {f"net.{k}": v for k, v in {**self.params, **self.buffers}.items()} | pack_optimizer(self.optimizer)
        return tensors | {f"best.{k}": v for k, v in self.best.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Back to what ``state`` gave."""
        with torch.no_grad():
            for name, t in {**self.params, **self.buffers}.items():
                t.copy_(tensors[f"net.{name}"])
        self.best = {k[5:]: t.to(self.job.device) for k, t in tensors.items() if k.startswith("best.")}
        unpack_optimizer(self.optimizer, tensors)


def stack_is_over(job: Job) -> bool:
    """Whether the stack has been trained to its end: a member that is not done then goes on alone."""
    run = job.run
    begun = any(run.is_done(i) or run.state(i).exists() for i in range(job.members))
    return begun and not run.stack_state.exists()


def train_stacked(job: Job, report: Report) -> list[str]:
    """Train all members of ``job``; what went wrong with which, in words."""
    todo = [i for i in range(job.members) if not job.run.is_done(i)]
    path = job.run.stack_state
    remove_parts(path.parent)
    members = list(range(job.members))  # also those that are done: a stack's arithmetic is that of the whole stack
    stack, epoch, failed = Stack(job, members), 0, {}
    if path.exists():
        tensors, facts = read_tensors(path)
        stack.restore(tensors)
        epoch, failed = facts["epoch"], {int(k): v for k, v in facts["failed"].items()}
    data = job.data if callable(job.data.samples) else replace(job.data, samples=job.data.samples.to(job.device))
    if data.views is not None:
        data = replace(data, views=data.views.to(job.device))
    feeds = [Feed(data, job.inputs, job.recipe, job.device, i) for i in members]
    histories = [History(job.run.member(i) / "history.jsonl") for i in members]
    entries = [h.keep(epoch) for h in histories]
    saved = time.monotonic()

    def over(i: int) -> bool:
        """Whether member i takes no further part: what the stack goes on to compute for it is nobody's."""
        return i in failed or stopped_early(job.recipe, entries[i])

    going = [i for i in todo if not over(i)]
    while epoch < job.recipe.epochs and going:
        started, aside = time.monotonic(), set(members) - set(going)
        losses, rate, fresh = train_epoch(stack, feeds, epoch, aside)
        failed |= fresh
        for i in fresh:
            _leave_checkpoint(job, i)
        seconds = round((time.monotonic() - started) / len(members), 3)
        epoch += 1
        for i in going:
            if i in failed:
                continue
            seen = watched(stack.network(i), job)
            entry = Epoch(epoch, losses[i].mean, losses[i].accuracy, rate, seconds, **seen)
            entries[i].append(entry)
            histories[i].append(entry)
            if improved(job.recipe, entries[i]):
                stack.keep(i)
            last = epoch == job.recipe.epochs or over(i)
            report(Progress(i, epoch, job.recipe.epochs, losses[i].mean, losses[i].accuracy, seconds, last))
        going = [i for i in going if not over(i)]
        if epoch == job.recipe.epochs or not going or time.monotonic() - saved >= job.checkpoint_seconds:
            write_tensors(path, stack.state(), {"epoch": epoch, "failed": failed})
            saved = time.monotonic()
    for i in todo:
        if i not in failed:
            try:
                best = kept_epoch(job.recipe, entries[i]) < epoch
                finish_member(job, i, stack.network(i, best), entries[i])
            except NonFiniteLoss as error:
                failed[i] = str(error)
    path.unlink(missing_ok=True)
    return list(failed.values())


def _leave_checkpoint(job: Job, member: int) -> None:
    """Give a member that fell out of the stack its part of the last checkpoint: from there it can go on alone."""
    if job.run.stack_state.exists():
        tensors, facts = read_tensors(job.run.stack_state)
        kept = job.network(member).state_dict().keys()  # a buffer that is not saved with the weights is no part of it
        own = {
            name: t[member] if t.ndim else t  # an optimizer's step count is shared
            for name, t in tensors.items()
            if name.startswith("optimiser.") or name.split(".", 1)[1] in kept
        }
        write_tensors(job.run.state(member), own, {"epoch": facts["epoch"], "scaler": {}})


def train_epoch(
    stack: Stack, feeds: list[Feed], epoch: int, aside: set[int]
) -> tuple[list[Losses], float, dict[int, str]]:
    """One epoch of every member: losses, the last learning rate, and in words what went wrong with which.

    aside: members that no longer count.
    """
    job, recipe = stack.job, stack.job.recipe
    draws = [job.draws(i, epoch) for i in stack.members]
    losses = [Losses(i, epoch, job.classifies, at_fault(feeds[i], epoch)) for i in stack.members]
    failed: dict[int, str] = {}
    rate = recipe.lr
    for b, (x, target) in enumerate(_batches(feeds, epoch)):
        rate = learning_rate(recipe, epoch + b / len(feeds[0]))
        for group in stack.optimizer.param_groups:
            group["lr"] = rate
        with precision(recipe, job.device):
            output = stack.forward(x, training=True)
            each = _losses(job, output, target, draws)
        stack.optimizer.zero_grad(set_to_none=True)
        # Members share no weights, so the gradient of the sum is each member's own gradient.
        torch.stack(list(each)).sum().backward()  # type: ignore[no-untyped-call]
        if recipe.clip:
            _clip(list(stack.params.values()), recipe.clip)
        stack.optimizer.step()
        hits = right_answers(job, output.flatten(0, 1), target.flatten(0, 1)).view(target.shape[:2]).sum(1).unbind()
        for i in stack.members:
            if i in aside or i in failed:
                continue
            try:
                losses[i].add(each[i], hits[i], target.shape[1], rate)
            except NonFiniteLoss as error:
                failed[i] = str(error)
    for i in stack.members:
        if i not in aside and i not in failed:
            try:
                losses[i].look()
            except NonFiniteLoss as error:
                failed[i] = str(error)
    return losses, rate, failed


def _batches(feeds: list[Feed], epoch: int) -> Iterator[tuple[Batch, Tensor]]:
    """All members' batches (M, B, *shape) and targets (M, B, ...); gathered in one go where nothing else is drawn."""
    feed = feeds[0]
    if not isinstance(feed.samples, Tensor) or feed.recipe.augment != "none":
        for parts in zip(*(feed.epoch(epoch) for feed in feeds), strict=True):
            yield stacked([x for x, _ in parts]), torch.stack([y for _, y in parts])
        return
    orders = torch.stack([feed.order(epoch) for feed in feeds]).to(feed.device)
    rows = torch.stack([feed.rows(epoch) for feed in feeds]).to(feed.device) if feed.views > 1 else None
    for part in feed.slices:
        index = orders[:, part]
        x = feed.inputs(feed.samples[(index if rows is None else rows.gather(1, index)).flatten()])
        yield x.view(*index.shape, *x.shape[1:]), feed.labels[index]


def _losses(job: Job, output: Tensor, target: Tensor, draws: list[torch.Generator]) -> Sequence[Tensor]:
    """Every member's loss. The samples' losses are taken in one go where they are known not to know their batch."""
    members = [job.member(i) for i in range(job.members)]
    if job.own_loss is not None or not all(in_one_go(m.head) for m in members):
        outputs, targets = output.unbind(), target.unbind()
        return [m.loss(outputs[m.number], targets[m.number], job.loss, draws[m.number]) for m in members]
    losses = job.loss(output.flatten(0, 1), target.flatten(0, 1)).view(target.shape[:2]).unbind()
    return [m.risk.reduce(losses[m.number], draws[m.number]) for m in members]


def _clip(params: list[Tensor], largest: float) -> None:
    """Scale each member's gradient to a norm of at most ``largest``, as it would be alone."""
    grads = [p.grad for p in params if p.grad is not None]
    norms = torch.stack([g.flatten(1).square().sum(1) for g in grads]).sum(0).sqrt()
    scale = (largest / (norms + 1e-6)).clamp(max=1)
    for g in grads:
        g.mul_(scale.view(-1, *[1] * (g.ndim - 1)))
