"""What an ensemble says about numbers: members that each give a Gaussian, and the set of their mixtures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch import Tensor

from credro.credal.gaussian import Gaussians
from credro.prediction.pick import carry, index_of, pick, sample_names

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class GaussianPrediction:
    """Gaussians of M members for N samples. Uncertainties are variances, in the squared unit of the target.

    means, stds: (M, N), of each member. set: all their mixtures, or None for a method without a credal set.
    samples: N names of files, or row numbers; empty: numbered from 0. method: its name.

    ``pred[3]``, ``pred[:10]``, ``pred[mask]`` and ``pred[[4, 2]]`` are the predictions of those samples.
    """

    means: Tensor
    stds: Tensor
    set: Gaussians | None
    samples: tuple[Any, ...] = ()
    method: str = ""

    def __post_init__(self) -> None:
        """Names must be as many as what they name."""
        if len(self.samples) not in (0, len(self)):
            raise ValueError(f"samples must be {len(self)} names, or none, got {len(self.samples)}")

    @classmethod
    def of(cls, outputs: Tensor, credal: bool) -> GaussianPrediction:
        """outputs: (M, N, 2), mean and log variance of every member."""
        means, stds = outputs[..., 0].double(), (outputs[..., 1].double() / 2).exp()
        return cls(means, stds, Gaussians(means, stds) if credal else None)

    def __len__(self) -> int:
        """Number of samples."""
        return self.means.shape[1]

    def __getitem__(self, index: Any) -> GaussianPrediction:
        """Some of the samples: a number, a slice, a mask (N,) or numbers. What was computed of them is kept."""
        at = index_of(index, len(self))
        chosen = replace(
            self,
            means=pick(self.means, at, 1),
            stds=pick(self.stds, at, 1),
            set=None if self.set is None else self.set.take(at),
            samples=sample_names(self.samples, at),
        )
        carry(self, chosen, at, ("std", "epistemic", "aleatoric", "total"))
        return chosen

    def __repr__(self) -> str:
        """Sizes, method and mean EU."""
        said = f"{len(self):,} sample{'s' * (len(self) != 1)}, {len(self.means)} Gaussians each"
        kind = "no credal set" if self.set is None else "mixtures"
        said += f", {self.method} ({kind})" if self.method else f", {kind}"
        said += f"; mean EU {float(self.epistemic.mean()):.3g}" if len(self) else ""
        return f"GaussianPrediction({said})"

    @cached_property
    def _members(self) -> Gaussians:
        return self.set or Gaussians(self.means, self.stds)

    @property
    def mean(self) -> Tensor:
        """The predicted number (N,): the members' mean."""
        return self.means.mean(0)

    @cached_property
    def std(self) -> Tensor:
        """Standard deviation (N,) of the members' mixture."""
        std: Tensor = self._members.centre[1]
        return std

    @cached_property
    def total(self) -> Tensor:
        """Total uncertainty (N,): the largest variance in the set, or the variance of the members' mixture."""
        return self.std.square() if self.set is None else self._bounds[1]

    @cached_property
    def aleatoric(self) -> Tensor:
        """Aleatoric uncertainty (N,): the smallest variance in the set, or the members' mean variance."""
        return self.stds.square().mean(0) if self.set is None else self._bounds[0]

    @cached_property
    def epistemic(self) -> Tensor:
        """Epistemic uncertainty (N,), total minus aleatoric; without a set, the variance of the members' means."""
        if self.set is None:
            return (self.means - self.mean).square().mean(0)
        return (self.total - self.aleatoric).clamp_min(0)

    @cached_property
    def _bounds(self) -> tuple[Tensor, Tensor]:
        bounds: tuple[Tensor, Tensor] = self._members.variance_bounds
        return bounds

    def interval(self, level: float = 0.9) -> tuple[Tensor, Tensor]:
        """Ends (N,) of an interval for the target, with at least ``level`` of the probability.

        With a credal set: under every mixture of the members, at most half of the rest on either side. Without one:
        under the Gaussian with the mixture's mean and standard deviation.
        """
        judges = self.set or Gaussians(self.mean[None], self.std[None])
        ends: tuple[Tensor, Tensor] = judges.interval(level)
        return ends

    def to_frame(self, columns: str = "all") -> pandas.DataFrame:
        """A pandas data frame with one row per sample, by its name or number.

        columns: "short": mean, std, lower and upper (an interval with at least 90 % of the probability), eu, au, tu.
        "all": also ``mean:I`` and ``std:I`` of every member.
        """
        from credro.prediction.columns import frame

        return frame(self, columns)

    def plot(self, i: int, ax: Any = None) -> Any:
        """Densities of the members and of their mixture for sample ``i``, drawn by matplotlib. Gives the axes.

        ax: where to draw; a new figure if not given.
        """
        from credro.prediction.plot import plot_numbers

        return plot_numbers(self, i, ax)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from credro.prediction.show import regression_html

        return regression_html(self)
