"""Street View House Numbers, cropped digits (MATLAB files)."""

from __future__ import annotations

from pathlib import Path

import torch

from credro.data.base import Data
from credro.data.errors import DataError, need
from credro.data.readers._idx import DIGITS
from credro.data.readers._published import Published, check_labels, whole_numbers

SVHN = Published("svhn", {s: ((f"SVHN/{s}_32x32.mat", f"{s}_32x32.mat"),) for s in ("train", "test", "extra")})


def svhn(root: Path, split: str | None) -> Data:
    """``SVHN/{train,test,extra}_32x32.mat``: digits in colour (3, 32, 32). In the file, label 10 stands for zero."""
    (path,) = SVHN.find(root, SVHN.split(split))
    try:
        content = need("scipy.io").loadmat(path, variable_names=("X", "y"))
    except ModuleNotFoundError:
        raise
    except Exception as error:  # a broken file may raise anything
        raise DataError(path, f"not a complete MATLAB file ({type(error).__name__}: {error})") from error
    if missing := {"X", "y"} - set(content):
        raise DataError(path, f"has no variable {' and no '.join(sorted(missing))}")
    x, y = content["X"], content["y"]
    if x.dtype != "uint8" or x.ndim != 4 or x.shape[2] != 3:
        raise DataError(path, f"X must be uint8 (height, width, 3, N), got {x.dtype} {x.shape}")
    samples = torch.from_numpy(x.transpose(3, 2, 0, 1).copy())
    stored = whole_numbers(path, y.reshape(-1))
    # stored as 1..10: shifted by one for the check, so that a stray 0 is not taken for a zero
    labels = (check_labels(path, stored - 1, len(samples), 10) + 1) % 10
    return Data("svhn", samples, labels, tuple(samples.shape[1:]), DIGITS)
