"""Everything that training one run needs, checked before the first step, and the networks it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from credro._names import Argument, ArgumentError, Message
from credro.data.base import Data
from credro.data.fields import call, listed, why_not
from credro.members import Member, PerSampleLoss, per_sample_loss
from credro.methods import Method
from credro.nets import make_under_seed
from credro.training.balance import class_weights, weighted
from credro.training.feed import Inputs, layout
from credro.training.own import check_functions
from credro.training.recipe import Recipe
from credro.training.run import Run
from credro.training.sound import unsound
from credro.training.streams import derive, generator

MakeNet = Callable[[], nn.Module]

FOR_CLASSES = ("cross_entropy", "focal")
"""Losses that mean nothing where the targets are real numbers."""


class TrainingError(RuntimeError):
    """A member could not be trained; the message says which, when and what to try."""


@dataclass(frozen=True, eq=False)
class Job:
    """One run: data, network, method, recipe, where and on what."""

    run: Run
    make_net: MakeNet
    data: Data
    inputs: Inputs
    method: Method
    members: int
    recipe: Recipe
    classes: int
    device: torch.device
    threads: int = 0  # per member; 0 leaves torch's setting
    held_out: Data | None = None
    own_loss: PerSampleLoss | None = None
    checkpoint_seconds: float = 10.0  # at least this long between two checkpoints of a member

    @cached_property
    def loss(self) -> PerSampleLoss:
        """The per-sample loss, times the weight of the sample's class where the recipe has class weights."""
        loss = self.own_loss or per_sample_loss(self.recipe.loss)
        if self.recipe.class_weight is None:
            return loss
        return weighted(loss, class_weights(self.recipe.class_weight, self.data, self.classes).to(self.device))

    @property
    def classifies(self) -> bool:
        """Whether targets are classes (or distributions over them), not numbers."""
        return self.data.labels.ndim == 2 or not self.data.labels.is_floating_point()

    def member(self, i: int) -> Member:
        """What the method comes to for member ``i``."""
        return self.method.member(i, self.members)

    def network(self, i: int) -> nn.Module:
        """Member i's network under its own seed, with its head and its start, not yet trained."""
        recipe, member = self.recipe, self.member(i)

        def build() -> nn.Module:
            return member.prepare(self.make_net())

        net = make_under_seed(build, derive(recipe.seed, i, "init")).to(self.device)
        return net.to(memory_format=torch.channels_last) if recipe.channels_last else net  # type: ignore[call-overload]

    def draws(self, i: int, epoch: int) -> torch.Generator:
        """Randomness of member i's risk, such as which samples are dropped."""
        return generator(self.recipe.seed, i, "rule", epoch)  # the stream's name in version 0.1: weights depend on it


def count_classes(data: Data) -> int:
    """Number of classes of a labelled set; 0 when its labels are numbers."""
    if data.labels.ndim == 2:
        return data.labels.shape[1]
    if data.labels.is_floating_point():
        return 0
    return len(data.classes) or (int(data.labels.max()) + 1 if len(data) else 0)


def method_for(data: Data, method: Method, loss: str) -> Method:
    """The method as the targets need it: with a Gaussian head where they are real numbers.

    Raises where the loss (its name; "" for a user's own) or the method is for the other kind.
    """
    labels = data.labels
    if labels.ndim == 2 or not labels.is_floating_point():
        if method.head.gives == "gaussians":
            raise ArgumentError("method", f"head {method.head.kind!r} is for regression, and the targets are classes")
        return method
    if not len(data) or not bool(torch.isfinite(labels).all()):
        return method  # said by check_data
    if loss in FOR_CLASSES:
        raise ValueError(
            f"loss={loss!r} is for classes, and the targets are floats such as {float(labels[0]):g}. If they are "
            f"classes, give whole numbers: y.astype(int), y.long(). If they are numbers to predict, "
            f"credro.Recipe(loss='gaussian_nll')"
        )
    return method.for_regression()


def check_data(data: Data, classes: int, name: str) -> None:
    """Raise unless ``data`` can be trained or tested on as a set of ``classes`` classes."""
    if len(data) == 0:
        raise ValueError(f"{name} is empty: {data.name!r} has no samples")
    labels = data.labels
    if labels.ndim == 2:
        bad = ((labels.sum(1) - 1).abs() > 1e-3) | (labels < 0).any(1)
        if bool(bad.any()):
            raise ValueError(f"{name}: soft label {int(bad.nonzero()[0])} is not a distribution over the classes")
    elif labels.is_floating_point():
        if not bool(torch.isfinite(labels).all()):
            raise ValueError(f"{name}: target {int((~torch.isfinite(labels)).nonzero()[0])} is not finite")
    else:
        bad = (labels < 0) | (labels >= classes)
        if bool(bad.any()):
            i = int(bad.nonzero()[0])
            raise ValueError(
                f"{name}: label {int(labels[i])} of sample {i} is out of range: {classes} classes, 0 to {classes - 1}"
            )


def check_job(job: Job) -> Job:
    """Everything that can be known to fail, before any work is done. Gives the job in a layout its network takes."""
    if job.members < 1:
        raise ValueError(f"members must be at least 1, got {job.members}")
    check_data(job.data, job.classes, "train_set")
    for name, usual in (("class_weight", None), ("sampler", "shuffle")):
        if not job.classifies and (given := getattr(job.recipe, name)) != usual:
            raise ArgumentError(name, f"{name} must be {usual!r} of a regression, which has no classes, got {given!r}")
    check_functions(job)
    if job.held_out is not None:
        check_data(job.held_out, job.classes, "held_out")
        if unlike := why_not(job.held_out.fields, job.data.fields):
            raise ArgumentError("held_out", f"held_out: {unlike}")
        if job.held_out.shape != job.data.shape:
            raise ValueError(f"held_out has samples of shape {job.held_out.shape}, train_set of {job.data.shape}")
    if job.recipe.schedule == "plateau" and job.held_out is None:
        raise ArgumentError(
            "held_out", Message("schedule='plateau' watches the held-out loss: give ", Argument("held_out"))
        )
    if job.recipe.early_stop and job.held_out is None:
        watches = f"early stopping (early_stop={job.recipe.early_stop}) watches the held-out loss: give "
        other = ", data that is not trained on, or do without: "
        raise ArgumentError("held_out", Message(watches, Argument("held_out"), other, Argument("early_stop", False)))
    for name, data in (("train_set", job.data), ("held_out", job.held_out)):
        # Samples that are read when they are needed are looked at when a loss is not finite.
        if data is not None and data.in_memory and (found := unsound(data, job.inputs)):
            raise ValueError(f"{name}: {found}")
    # A user's ``x.view(len(x), -1)`` fails on channels last only; an embedding takes whole numbers, others floats.
    floats = replace(job.inputs, whole=False)
    ways = [job, replace(job, recipe=job.recipe.with_(channels_last=False)), replace(job, inputs=floats)]
    errors: list[Exception] = []
    wrong = (RuntimeError, TypeError) if job.data.fields else (RuntimeError,)  # by name, an argument may be unknown
    for way in ways:
        try:
            given = _forward(way)
            job = way
            break
        except wrong as error:
            errors.append(error)
    else:
        kind = f"the fields {listed(job.data.fields)}" if job.data.fields else f"samples of shape {job.data.shape}"
        raise ValueError(f"the network does not take {kind}: {errors[0]}") from errors[0]
    _check_output(job, *given)
    return job


def doubts(job: Job) -> list[str]:
    """Plain words about what can be trained, but is hardly meant."""
    said, labels = [], job.data.labels
    if job.classifies and labels.ndim == 1 and len(set(labels.tolist())) == 1:
        only = job.data.classes[int(labels[0])] if job.data.classes else int(labels[0])
        said.append(f"all {len(labels):,} samples of train_set have class {only}: there is nothing to tell apart.")
    if job.recipe.class_weight is not None and job.recipe.sampler == "balanced":
        said.append("class_weight and sampler='balanced' both make up for rare classes: together, twice.")
    _, _, output = _forward(job)
    if job.classifies and job.classes > 1 and bool((output >= 0).all() and ((output.sum(-1) - 1).abs() < 1e-4).all()):
        said.append(
            "The network's outputs sum to 1: it seems to end in a softmax. Give logits, the loss does the rest."
        )
    return said


def _forward(job: Job) -> tuple[nn.Module, Any, Any]:
    """The first member's network before training, two samples in the recipe's layout, and what it gives for them."""
    net, index = job.network(0).eval(), torch.arange(min(2, len(job.data)))
    x = layout(job.inputs(job.data.batch(index).to(job.device)), job.recipe)
    with torch.no_grad():
        return net, x, call(net, x)


def _check_output(job: Job, net: nn.Module, x: Any, output: Any) -> None:
    """The network must give one output per class, and the loss one number per sample."""
    if isinstance(output, Tensor) and output.ndim >= 2:
        output = job.method.head.probs(output)
    if not isinstance(output, Tensor) or output.ndim < 2 or len(output) != len(x):
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"the network must give a tensor with one row per sample, got {got} for {len(x)} samples")
    if job.classifies and output.shape[-1] != job.classes:
        raise ValueError(
            f"the network gives {output.shape[-1]} outputs, but the data has {job.classes} classes: "
            f"make its last layer {job.classes} wide, or pass classes={output.shape[-1]} if not all of them occur"
        )
    head, target = job.member(0).head, job.data.labels[: len(x)].to(job.device)
    with torch.no_grad():
        losses = head.held_losses(head.scores(net, x), target, job.loss)
        if losses.shape == (len(x),):
            head.losses(call(net, x), target, job.loss)  # a head may refuse these targets
    if losses.shape != (len(x),):
        raise ValueError(
            f"the loss must give one number per sample, shape ({len(x)},) for {len(x)} samples, got "
            f"{tuple(losses.shape)}: no mean over the batch (reduction='none'), and outputs and targets of one shape"
        )
