"""Snow, frost, fog. All take x (N, C, H, W), float64 in [0, 1]."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from credro.data.corruptions._severities import Parameters
from credro.data.corruptions._tools import Draws, convolve, enlarge, motion_kernel, spatial_scale

_GREY = (0.299, 0.587, 0.114)
_ICE = (0.86, 0.96, 1.0)  # frost is a little blue


def snow(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Random flakes, blurred along their fall, over a picture that turns pale; the layer falls twice, once turned."""
    mean, spread, flake, threshold, motion, left = c
    scale = spatial_scale(x)
    h, w = x.shape[-2:]
    small = (math.ceil(h / scale), math.ceil(w / scale))  # flakes fall on about 32x32 cells, whatever the size
    cells = small if flake == 1 else (math.ceil(small[0] / flake) + 1, math.ceil(small[1] / flake) + 1)
    layer = enlarge((mean + spread * draws.normal(1, *cells)), flake, small)
    layer = enlarge(torch.where(layer < threshold, 0.0, layer.clamp(max=1)), scale, (h, w))
    angle = draws.uniform(low=math.pi / 4, high=3 * math.pi / 4)  # downwards
    layer = convolve(layer, motion_kernel(angle, motion * scale))
    pale = torch.maximum(x, grey(x) * 1.5 + 0.5)
    return (left * x + (1 - left) * pale) + layer + layer.rot90(2, (-2, -1))


def frost(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """Ice crystals grown over the picture. CIFAR-10-C lays photographs of frost over it; ours is drawn."""
    ice = crystals(draws, x.shape[-2], x.shape[-1], spatial_scale(x))
    if x.shape[1] == 3:
        ice = ice * ice.new_tensor(_ICE).view(3, 1, 1)
    return c[0] * x + c[1] * ice


def fog(x: Tensor, c: Parameters, draws: Draws) -> Tensor:
    """A fractal cloud is added, and the whole dimmed to the range the picture had."""
    thickness, decay = c
    h, w = x.shape[-2:]
    cloud = plasma(draws, max(h, w), decay)[:, None, :h, :w]
    brightest = x.amax((1, 2, 3), keepdim=True)
    return (x + thickness * cloud) * brightest / (brightest + thickness)


def grey(x: Tensor) -> Tensor:
    """(N, 1, H, W): luminance."""
    return x if x.shape[1] == 1 else (x * x.new_tensor(_GREY).view(3, 1, 1)).sum(1, keepdim=True)


def plasma(draws: Draws, size: int, decay: float) -> Tensor:
    """(N, S, S) in [0, 1], S the next power of two: clouds by the diamond-square method, on a torus."""
    n = 1 << max(1, math.ceil(math.log2(size)))
    field = draws.uniform(1, 1) * 0
    roughness = 1.0
    while field.shape[-1] < n:
        m = field.shape[-1]
        below, right = field.roll(-1, 1), field.roll(-1, 2)
        wobble = draws.uniform(3, m, m, low=-roughness, high=roughness)
        middle = (field + below + right + below.roll(-1, 2)) / 4 + wobble[:, 0]
        top = (field + right + middle + middle.roll(1, 1)) / 4 + wobble[:, 1]
        side = (field + below + middle + middle.roll(1, 2)) / 4 + wobble[:, 2]
        # The old points stay, new ones come between: rows (old, top), (side, middle).
        upper = torch.stack([field, top], -1).view(-1, m, 2 * m)
        lower = torch.stack([side, middle], -1).view(-1, m, 2 * m)
        field = torch.stack([upper, lower], 2).view(-1, 2 * m, 2 * m)
        roughness /= decay**2  # the published code scales by the roughness twice
    # The first, highest point would be in the middle of every picture: each torus is turned by its own amount.
    turned = (torch.arange(n, device=field.device) + draws.integers(n, 2, 1)) % n
    field = field.gather(1, turned[:, 0, :, None].expand(-1, n, n)).gather(2, turned[:, 1, None].expand(-1, n, n))
    low, high = field.amin((1, 2), keepdim=True), field.amax((1, 2), keepdim=True)
    return (field - low) / (high - low)


def crystals(draws: Draws, h: int, w: int, scale: float) -> Tensor:
    """(N, 1, H, W) in [0, 1]: ferns of ice, each with a stem and barbs, that meet where their areas end."""
    number = 12
    u = draws.uniform(5, number, 1, 1)
    angle, pitch, phase = u[:, 2] * 2 * math.pi, (3.0 + 2.5 * u[:, 3]) * scale, u[:, 4]
    device = u.device
    dy = torch.arange(h, device=device).double()[:, None] - (u[:, 0] * 1.2 - 0.1) * h
    dx = torch.arange(w, device=device).double() - (u[:, 1] * 1.2 - 0.1) * w
    along = dx * angle.cos() + dy * angle.sin()
    across = (dy * angle.cos() - dx * angle.sin()).abs()
    # Ferns are long and narrow: distance across the stem counts double.
    distance = (along**2 + (2 * across) ** 2).sqrt()
    nearest, owner = distance.topk(2, dim=1, largest=False)
    mine = owner[:, :1]
    along, across = along.gather(1, mine), across.gather(1, mine)
    pitch, phase = (t.expand(-1, -1, h, w).gather(1, mine) for t in (pitch, phase))
    barbs = (((along - 0.8 * across) / pitch + phase) % 1 - 0.5).abs() * 2  # a herring-bone of slanted lines
    stem = torch.exp(-((across / (0.8 * scale)) ** 2))
    seam = torch.exp(-(((nearest[:, 1:] - nearest[:, :1]) / (1.5 * scale)) ** 2))
    cloud = plasma(draws, max(h, w), 2.0)[:, None, :h, :w]
    grain = 0.25 * (draws.uniform(1, math.ceil(h / scale), math.ceil(w / scale)) - 0.5)
    grain = enlarge(grain, scale, (h, w))
    return ((0.25 + 0.6 * barbs**2 + 0.5 * stem + 0.3 * seam) * (0.35 + 0.75 * cloud) + grain).clamp(0, 1)
