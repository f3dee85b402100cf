"""Convex minimisation over the simplex, a batch of small problems at once: a primal-dual interior-point method.

``minimise phi(w)  subject to  w >= 0, sum(w) = 1`` for N problems of M weights each. Newton's method on the perturbed
optimality conditions ``grad + nu - z = 0``, ``w * z = mu``, with Mehrotra's choice of ``mu``. Every iterate is
feasible and strictly positive, so the linearisation at it certifies how far it is from the optimum:
``phi(w) - phi* <= <grad, w> - min(grad)``.

Mehrotra's steps are fast but may cycle, about once in 40,000 ensembles. What they have not solved after QUICK_STEPS
is finished by damped Newton steps along the central path, which always converge (docs/exactness.md).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

QUICK_STEPS = 20
CARRIED = 0.75
"""Problems that are solved are put aside once fewer than this share of a batch is still open."""

GradHess = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(weights (n, M), numbers of the problems (n,)) -> gradient (n, M) and Hessian (n, M, M), which is overwritten."""


def minimise(
    grad_hess: GradHess, problems: int, members: int, *, tol: float, like: Tensor, max_steps: int = 200
) -> tuple[Tensor, Tensor]:
    """Weights (N, M) of the minima and the certified distance (N,) of each to its optimum.

    A problem is left alone once its certificate is at most ``tol``; the certificate returned says how far it got.
    """
    best = torch.full((problems, members), 1 / members, dtype=like.dtype, device=like.device)
    gap = torch.full((problems,), torch.inf, dtype=like.dtype, device=like.device)
    open_ = torch.arange(problems, device=like.device)
    w = best.clone()
    z = nu = w  # set in the first round
    for step in range(max_steps + 1):
        grad, hess = grad_hess(w, open_)
        certificate = (grad * w).sum(-1) - grad.amin(-1)
        better = certificate < gap[open_]
        best[open_[better]], gap[open_[better]] = w[better], certificate[better]
        going = certificate > tol
        if step == max_steps or not going.any():  # also when none is left
            break
        if step == 0:  # a dual point that satisfies grad + nu = z > 0 exactly
            nu = certificate - grad.amin(-1)
            z = grad + nu[:, None]
        if going.count_nonzero() < CARRIED * len(going):  # to carry a few on costs less than to choose the others
            open_, w, z, nu, grad, hess = (t[going] for t in (open_, w, z, nu, grad, hess))
        if step < QUICK_STEPS:
            w, z, nu = _newton_step(w, z, nu, grad, hess)
        else:
            w, z = _damped_step(w, z, grad, hess)
        # At the limit of float64 the system becomes singular: such a problem keeps the point and certificate it has.
        if not (sound := torch.isfinite(w).all(-1) & torch.isfinite(z).all(-1)).all():
            open_, w, z, nu = (t[sound] for t in (open_, w, z, nu))
    return best, gap


def _newton_step(w: Tensor, z: Tensor, nu: Tensor, grad: Tensor, hess: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One predictor-corrector step for every problem. w, z, grad: (n, M); nu: (n,); hess: (n, M, M)."""
    ratio = z / w
    factor = _cholesky(hess, ratio)
    pull = -(grad + nu[:, None])
    by_one, by_pull = _solve(factor, torch.ones_like(w), pull)

    def direction(x: Tensor, target: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
        """Towards ``w * z = w * target`` where x solves for ``pull + target``, keeping ``sum(w) = 1``."""
        dnu = x.sum(-1) / by_one.sum(-1)
        dw = x - dnu[:, None] * by_one
        return dw, target - z - ratio * dw, dnu

    mu = (w * z).mean(-1)
    dw, dz, _ = direction(by_pull, 0.0)
    reach = _step_length(w, dw, z, dz)[:, None]
    ahead = ((w + reach * dw) * (z + reach * dz)).mean(-1)
    # Mehrotra: centre as much as the predictor could not do, and correct for its own curvature.
    target = (((ahead / mu) ** 3 * mu)[:, None] - dw * dz) / w
    (x,) = _solve(factor, pull + target)
    dw, dz, dnu = direction(x, target)
    alpha = (0.99 * _step_length(w, dw, z, dz)).clamp(max=1)[:, None]
    w = w + alpha * dw
    return w / w.sum(-1, keepdim=True), z + alpha * dz, nu + alpha[:, 0] * dnu


def _damped_step(w: Tensor, z: Tensor, grad: Tensor, hess: Tensor) -> tuple[Tensor, Tensor]:
    """One Newton step on ``phi(w) - mu sum(log w)`` for every problem; mu falls once its minimum is near.

    With ``phi`` a sum of ``p log p`` (or quadratic) this function over mu is self-concordant, so a step of length
    ``1 / (1 + decrement)`` stays inside and always descends. The state is kept in ``z = mu / w``.
    """
    mu = (w * z).mean(-1, keepdim=True)
    slope = grad - mu / w
    factor = _cholesky(hess, mu / w.square())
    x, by_one = _solve(factor, slope, torch.ones_like(w))
    dw = by_one * (x.sum(-1) / by_one.sum(-1))[:, None] - x
    decrement = (-(slope * dw).sum(-1, keepdim=True) / mu).clamp_min(0).sqrt()
    w = w + dw / (1 + decrement)
    return w / w.sum(-1, keepdim=True), mu.where(decrement > 0.5, 0.1 * mu) / w


def _step_length(w: Tensor, dw: Tensor, z: Tensor, dz: Tensor) -> Tensor:
    """Largest step in [0, 1 / 0.99] that keeps w and z nonnegative. (n,)."""
    down = torch.cat([-dw / w, -dz / z], -1).amax(-1)
    return 1 / down.clamp(min=0.99)


def _cholesky(hess: Tensor, diagonal: Tensor) -> Tensor:
    """Factor of ``hess`` (n, M, M) plus a ``diagonal`` (n, M). hess is overwritten."""
    # Members that are affinely dependent make the Hessian singular; a trace of damping leaves the minimum in place.
    damping = 1e-14 * hess.diagonal(dim1=1, dim2=2).mean(-1, keepdim=True)
    hess.diagonal(dim1=1, dim2=2).add_(diagonal + damping)
    factor: Tensor = torch.linalg.cholesky_ex(hess)[0]
    return factor


def _solve(factor: Tensor, *sides: Tensor) -> tuple[Tensor, ...]:
    """The solution (n, M) for each right-hand side (n, M)."""
    return torch.cholesky_solve(torch.stack(sides, -1), factor).unbind(-1)


def distance_to_hull(members: Tensor, points: Tensor) -> Tensor:
    """Euclidean distance (N,) of ``points`` (N, C) to the convex hull of ``members`` (N, M, C)."""
    shift = members - points.unsqueeze(1)
    gram = shift @ shift.transpose(1, 2)  # 0.5 |sum w_i shift_i|^2 has gradient gram w and Hessian gram

    def grad_hess(w: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        part = gram[which]
        return (part @ w.unsqueeze(-1)).squeeze(-1), part

    weights, _ = minimise(grad_hess, *shift.shape[:2], tol=1e-22, like=shift, max_steps=3 * QUICK_STEPS)
    distance = _norm_of_mixture(weights, shift)
    # On a face the last digits come slowly: take the nearest point of the plane through the members in use as well,
    # by least squares on the members themselves (their Gram matrix has the squares of small numbers).
    columns = torch.cat([shift, torch.ones_like(shift[..., :1])], -1).transpose(1, 2)
    for least in (1e-2, 1e-4, 1e-6, 1e-8):
        used = (weights > least).to(shift.dtype)
        plane = torch.linalg.pinv(columns * used.unsqueeze(1))[..., -1].clamp_min(0) * used
        distance = distance.fmin(_norm_of_mixture(plane / plane.sum(-1, keepdim=True), shift))
    return distance


def _norm_of_mixture(weights: Tensor, vectors: Tensor) -> Tensor:
    norm: Tensor = (weights.unsqueeze(1) @ vectors).squeeze(1).norm(dim=-1)
    return norm
