"""Pieces that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from credro.data import Data, conform, limit, load


def settings(pairs: list[str] | None) -> dict[str, Any]:
    """``["delta_g=0.7", "spacing=uniform"]`` as a dict; values are numbers, booleans or text."""
    out: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise typer.BadParameter(f"--set takes NAME=VALUE, got {pair!r}")
        try:
            out[key.replace("-", "_")] = json.loads(value.lower() if value in ("True", "False") else value)
        except json.JSONDecodeError:
            out[key.replace("-", "_")] = value
    return out


def read(
    name: str,
    split: str | None,
    root: Path | None,
    *,
    first: int | None = None,
    seed: int = 0,
    like: tuple[int, ...] | None = None,
    label: str | None = None,
) -> Data:
    """A data set by name or path; ``first`` takes the first part of a seeded shuffle, ``like`` fits it to a shape."""
    wanted = {"label": label} if label else {}
    data = load(name, split=split, root=root, **wanted)
    if first is not None and first < len(data):
        data = data.subset(limit(len(data), first, seed))
    return conform(data, like) if like is not None and data.shape != like else data
