"""Small files in the published layouts, written without the code under test."""

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
from PIL import Image

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def rng(seed=0):
    return np.random.default_rng(seed)


def images(n, h=32, w=32, c=3, seed=0):
    return rng(seed).integers(0, 256, (n, h, w, c) if c > 1 else (n, h, w), dtype=np.uint8)


def write_pickle(path, content, protocol=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=protocol))


def cifar_rows(x):
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2).reshape(len(x), -1))


def write_idx(path, array, *, compress=True, shape=None):
    """shape: what the header says, if not the truth."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = array.shape if shape is None else shape
    raw = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}i", *shape) + array.tobytes()
    path.write_bytes(gzip.compress(raw) if compress else raw)


def write_image(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def chw(x):
    """(N, H, W, C) or (N, H, W) as (N, C, H, W)."""
    return (x[..., None] if x.ndim == 3 else x).transpose(0, 3, 1, 2)
