"""What an ensemble says about numbers: members that each give a Gaussian, and the set of their mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from credro.credal.gaussian import Gaussians


@dataclass(frozen=True, eq=False)
class GaussianPrediction:
    """Gaussians of M members for N samples. Uncertainties are variances, in the squared unit of the target.

    means, stds: (M, N), of each member. set: all their mixtures, or None for a method without a credal set.
    """

    means: Tensor
    stds: Tensor
    set: Gaussians | None

    @classmethod
    def of(cls, outputs: Tensor, credal: bool) -> GaussianPrediction:
        """outputs: (M, N, 2), mean and log variance of every member."""
        means, stds = outputs[..., 0].double(), (outputs[..., 1].double() / 2).exp()
        return cls(means, stds, Gaussians(means, stds) if credal else None)

    def __len__(self) -> int:
        """Number of samples."""
        return self.means.shape[1]

    @cached_property
    def _members(self) -> Gaussians:
        return self.set or Gaussians(self.means, self.stds)

    @property
    def mean(self) -> Tensor:
        """The predicted number (N,): the members' mean."""
        return self.means.mean(0)

    @cached_property
    def std(self) -> Tensor:
        """Deviation (N,) of the members' mixture."""
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
        under the Gaussian with the mixture's mean and deviation.
        """
        judges = self.set or Gaussians(self.mean[None], self.std[None])
        ends: tuple[Tensor, Tensor] = judges.interval(level)
        return ends
