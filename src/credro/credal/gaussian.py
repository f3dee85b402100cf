"""Sets of Gaussian mixtures, for members that predict a number as a Gaussian (paper, appendix on regression).

Members come first: means and standard deviations are ``(M, ...)``. Everything is exact; nothing is sampled or iterated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from credro.credal.arrays import first_bad, give, to_tensor


@dataclass(frozen=True, eq=False, init=False)
class Gaussians:
    """All mixtures ``sum_i w_i N(mean_i, std_i^2)`` of M Gaussians, w in the simplex. mean, std: (M, ...).

    A probability, a mean and a lower variance are extreme at a member, since they are linear or concave in w; a
    quantile of a mixture lies between those of its members. Only the upper variance needs a thought.
    """

    _mean: Tensor = field(repr=False)
    _std: Tensor = field(repr=False)
    numpy: bool

    def __init__(self, mean: Any, std: Any) -> None:
        """Check the members and keep them in float64."""
        means, numpy = to_tensor(mean, "mean")
        stds, numpy_std = to_tensor(std, "std")
        if means.shape != stds.shape:
            raise ValueError(f"mean and std must have one shape, got {tuple(means.shape)} and {tuple(stds.shape)}")
        if means.ndim < 1 or len(means) == 0:
            raise ValueError(f"mean must be (M, ...) with at least one member, got shape {tuple(means.shape)}")
        means, stds = means.to(torch.float64), stds.to(torch.float64)
        for name, values in (("mean", means), ("std", stds)):
            if (bad := ~torch.isfinite(values)).any():
                raise ValueError(f"{name} is not finite at {first_bad(bad)}")
        if (bad := stds < 0).any():
            raise ValueError(f"std is negative at {first_bad(bad)}: {stds[bad][0].item():.6g}")
        for name, value in (("_mean", means), ("_std", stds), ("numpy", numpy and numpy_std)):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> torch.Size:
        """``(...)``: of one member."""
        return self._mean.shape[1:]

    def __len__(self) -> int:
        """Samples along the first axis."""
        return self.shape[0]

    def take(self, index: Tensor) -> Gaussians:
        """The sets of the samples ``index`` (B,) along the first axis."""
        mean, std = (values.index_select(1, index.to(values.device)) for values in (self._mean, self._std))
        return Gaussians(give(mean, self.numpy), give(std, self.numpy))

    @property
    def centre(self) -> tuple[Any, Any]:
        """Mean and deviation (...) of the mixture with equal weights (paper, Eq. on classical prediction)."""
        mean = self._mean.mean(0)
        variance = self._std.square().mean(0) + (self._mean - mean).square().mean(0)
        return self._give(mean), self._give(variance.sqrt())

    @property
    def mean_bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest mean (...) in the set."""
        return self._ends(self._mean)

    @property
    def variance_bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest variance (...) in the set.

        The variance ``sum_i w_i (s_i^2 + m_i^2) - (sum_i w_i m_i)^2`` is concave in w, so it is smallest at a member.
        For a given mean, its largest value is a linear program with two equations, which has a solution with two
        members at most; between members i and j of weights t and 1 - t it is ``t s_i^2 + (1-t) s_j^2 + t(1-t) d^2``,
        ``d = m_i - m_j``, largest at ``t = 1/2 + (s_i^2 - s_j^2) / (2 d^2)`` or at an end.
        """
        variance = self._std.square()
        largest = variance.amax(0)
        for i in range(1, len(variance)):
            apart = (self._mean[i] - self._mean[:i]).square()
            more = variance[i] - variance[:i]
            t = (0.5 + more / (2 * apart)).clamp(0, 1)
            between = torch.where(apart > 0, variance[:i] + t * more + t * (1 - t) * apart, largest)
            largest = torch.maximum(largest, between.amax(0))
        return self._give(variance.amin(0)), self._give(largest)

    def cdf(self, y: Any) -> tuple[Any, Any]:
        """The smallest and the largest probability (...) of a value of at most ``y``, a number or (...)."""
        value = self._like(y, "y")
        sharp = (value >= self._mean).to(torch.float64)  # a member without spread is sure
        smooth = torch.special.ndtr((value - self._mean) / self._std)
        return self._ends(torch.where(self._std > 0, smooth, sharp))

    def quantile(self, q: Any) -> tuple[Any, Any]:
        """The smallest and the largest q-quantile (...) in the set; q in (0, 1), a number or (...)."""
        share = self._like(q, "q")
        if not bool(((share > 0) & (share < 1)).all()):
            raise ValueError(f"q must lie in (0, 1), got {q}")
        return self._ends(self._mean + self._std * torch.special.ndtri(share))

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """The shortest interval (...) that leaves out at most ``(1 - level) / 2`` on each side under every mixture."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie in (0, 1), got {level}")
        aside = (1 - level) / 2
        return self.quantile(aside)[0], self.quantile(1 - aside)[1]

    def _like(self, value: Any, name: str) -> Tensor:
        return to_tensor(value, name)[0].to(self._mean)

    def _ends(self, values: Tensor) -> tuple[Any, Any]:
        return self._give(values.amin(0)), self._give(values.amax(0))

    def _give(self, values: Tensor) -> Any:
        return give(values, self.numpy)
