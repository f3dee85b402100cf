"""What an ensemble says about classes: the members' probabilities, the credal set, and what it does not know."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from credro.credal.decisions import decide
from credro.credal.entropy import shannon
from credro.credal.measures import aleatoric, interval_width, mutual_information, total
from credro.credal.sets import CredalSet
from credro.prediction.pick import carry, index_of, pick, sample_names

if TYPE_CHECKING:
    import pandas

CHEAP = 20_000
"""Samples times classes up to which uncertainties are computed merely to show them."""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """What an ensemble says about N samples of C classes. Uncertainties are in nats and computed when first asked for.

    probs: (M, N, C) each member's own point prediction. mean: (N, C) the ensemble's point prediction.
    set: the credal set, or None for a method without one. measure: how ``epistemic`` is measured.
    classes: C names. samples: N names of files, or row numbers. Empty: both are numbered from 0. method: its name.

    ``pred[3]``, ``pred[:10]``, ``pred[mask]`` and ``pred[[4, 2]]`` are the predictions of those samples.
    """

    probs: Tensor
    mean: Tensor
    set: CredalSet | None
    measure: str = field(default="gap")
    classes: tuple[str, ...] = ()
    samples: tuple[Any, ...] = ()
    method: str = ""

    def __post_init__(self) -> None:
        """Names must be as many as what they name."""
        for name, count in (("classes", self.mean.shape[-1]), ("samples", len(self.mean))):
            if (given := len(getattr(self, name))) not in (0, count):
                raise ValueError(f"{name} must be {count} names, or none, got {given}")

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.mean)

    def __getitem__(self, index: Any) -> Prediction:
        """Some of the samples: a number, a slice, a mask (N,) or numbers. What was computed of them is kept."""
        at = index_of(index, len(self))
        chosen = replace(
            self,
            probs=pick(self.probs, at, 1),
            mean=pick(self.mean, at),
            set=None if self.set is None else self.set.take(at),
            samples=sample_names(self.samples, at),
        )
        carry(self, chosen, at, ("label", "epistemic", "aleatoric", "total", "possible"))
        return chosen

    def __repr__(self) -> str:
        """Sizes, method and mean EU, where that is at hand or cheap."""
        said = f"{len(self):,} sample{'s' * (len(self) != 1)}, {self.mean.shape[-1]} classes"
        kind = "no credal set" if self.set is None else type(self.set).__name__.lower()
        said += f", {self.method} ({kind})" if self.method else f", {kind}"
        if len(self) and ("epistemic" in vars(self) or self.mean.shape[0] * self.mean.shape[-1] <= CHEAP):
            said += f"; mean EU {float(self.epistemic.mean()):.3g}"
        return f"Prediction({said})"

    @cached_property
    def label(self) -> Tensor:
        """Most probable class (N,) of the point prediction."""
        return self.mean.argmax(-1)

    @property
    def names(self) -> list[str]:
        """Names (N) of the most probable classes."""
        classes = self.classes or tuple(map(str, range(self.mean.shape[-1])))
        return [classes[k] for k in self.label.tolist()]

    @cached_property
    def possible(self) -> Any:
        """Which classes (N, C) remain: no other is more probable under every distribution of the set (maximality).

        Without a credal set there is one distribution, and its label.
        """
        if self.set is not None:
            return decide(self.set)
        return torch.zeros_like(self.mean, dtype=torch.bool).scatter_(1, self.label[:, None], True)

    @cached_property
    def epistemic(self) -> Any:
        """Epistemic uncertainty (N,): entropy gap, interval width, or mutual information of the members."""
        if self.set is None:
            return mutual_information(self.probs)
        if self.measure == "width":
            return interval_width(self.set)
        return (self.total - self.aleatoric).clamp_min(0)

    @cached_property
    def aleatoric(self) -> Any:
        """Aleatoric uncertainty (N,): lower entropy of the set, or the members' mean entropy."""
        return shannon(self.probs).mean(0) if self.set is None else aleatoric(self.set)

    @cached_property
    def total(self) -> Any:
        """Total uncertainty (N,): upper entropy of the set, or the mean's entropy."""
        return shannon(self.mean) if self.set is None else total(self.set)

    @property
    def lower(self) -> Tensor:
        """Lower probability (N, C) of each class; without a set, the smallest of the members'."""
        lower: Tensor = self.probs.amin(0) if self.set is None else self.set.lower
        return lower

    @property
    def upper(self) -> Tensor:
        """Upper probability (N, C) of each class; without a set, the largest of the members'."""
        upper: Tensor = self.probs.amax(0) if self.set is None else self.set.upper
        return upper

    def to_frame(self, columns: str = "all") -> pandas.DataFrame:
        """A pandas data frame with one row per sample, by its name or number.

        columns: "short": label, probability, lower, upper, eu, au, tu and possible (the classes that remain). "all":
        also ``p:NAME``, ``lower:NAME`` and ``upper:NAME`` of every class.
        """
        from credro.prediction.columns import frame

        return frame(self, columns)

    def plot(self, i: int, ax: Any = None) -> Any:
        """Intervals, members and mean of sample ``i``, drawn by matplotlib; of 20 classes at most. Gives the axes.

        ax: where to draw; a new figure if not given.
        """
        from credro.prediction.plot import plot_classes

        return plot_classes(self, i, ax)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from credro.prediction.show import prediction_html

        return prediction_html(self)
