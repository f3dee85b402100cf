"""Random crop, mirror and normalisation of 128 CIFAR-size images: as one batch, against image by image with Pillow.

Both sides start from uint8 arrays and a generator, and end with a float tensor (128, 3, 32, 32). Pillow's side is
what the usual pipeline of transforms does (pad, crop, mirror, to tensor, normalise, collate); ``lean`` is the fastest
that we could write with NumPy, its draws made in one go. One thread, interleaved rounds, median of the ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps
from torch import Tensor

from credro.data.augment import AUGMENTATIONS, normalise

BATCH, SIZE, PADDING = 128, 32, 4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
TARGET = 20.0  # over the usual transforms
Array = npt.NDArray[np.uint8]


def batched(x: Tensor, generator: torch.Generator) -> Tensor:
    return normalise(AUGMENTATIONS["crop-flip"](x, generator), MEAN, STD)


def one_by_one(arrays: list[Array], generator: torch.Generator) -> Tensor:
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    out = []
    for array in arrays:
        image = Image.fromarray(array)
        dy, dx = (int(torch.randint(0, 2 * PADDING + 1, (1,), generator=generator)) for _ in range(2))
        image = ImageOps.expand(image, PADDING).crop((dx, dy, dx + SIZE, dy + SIZE))
        if torch.rand(1, generator=generator) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        out.append(pixels.sub_(mean).div_(std))
    return torch.stack(out)


def lean(arrays: list[Array], generator: torch.Generator) -> Tensor:
    mean, std = (np.array(v, np.float32) for v in (MEAN, STD))
    offsets = torch.randint(0, 2 * PADDING + 1, (len(arrays), 2), generator=generator).tolist()
    mirrored = (torch.rand(len(arrays), generator=generator) < 0.5).tolist()
    out = np.empty((len(arrays), 3, SIZE, SIZE), np.float32)
    for target, array, (dy, dx), mirror in zip(out, arrays, offsets, mirrored, strict=True):
        image = ImageOps.expand(Image.fromarray(array), PADDING).crop((dx, dy, dx + SIZE, dy + SIZE))
        if mirror:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        target[...] = ((np.asarray(image, np.float32) / 255 - mean) / std).transpose(2, 0, 1)
    return torch.from_numpy(out)


def seconds(function: Callable[[], Tensor], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def run(rounds: int = 15) -> list[dict[str, object]]:
    """One row per rival: milliseconds per batch of both (medians), and the median ratio."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE), generator=generator, dtype=torch.uint8)
    arrays = [image.permute(1, 2, 0).contiguous().numpy() for image in x]
    rivals = {"Pillow, usual transforms": one_by_one, "Pillow and NumPy, leanest": lean}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in rivals}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds(lambda: batched(x, generator), 20)
        for _ in range(rounds):
            for name, rival in rivals.items():
                ours = seconds(lambda: batched(x, generator), 20)
                times[name].append((ours, seconds(lambda rival=rival: rival(arrays, generator), 2)))  # type: ignore[misc]
    finally:
        torch.set_num_threads(threads)
    return [
        {
            "what": "crop + flip + normalise, 128 images 32x32",
            "rival": name,
            "ours_ms": 1e3 * statistics.median(a for a, _ in pairs),
            "rival_ms": 1e3 * statistics.median(b for _, b in pairs),
            "ratio": statistics.median(b / a for a, b in pairs),
        }
        for name, pairs in times.items()
    ]


def main() -> None:
    for row in run():
        print(
            f"{row['what']}: {row['ours_ms']:.2f} ms as one batch, {row['rival_ms']:.2f} ms with {row['rival']}: "
            f"{row['ratio']:.1f} times faster"
        )
    print(f"(at least {TARGET:g} times faster than the usual transforms is what we ask of it)")


if __name__ == "__main__":
    main()
