"""Which samples a run has used, by their content: whatever route they take, it must not be tested on them.

The file ``seen.safetensors`` of a run has a number for each sample (``Data.content``): of those it was *trained* on,
those that were *watched* to choose when to stop, and those it was *calibrated* on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from credro._records import RecordError
from credro.data.base import Data
from credro.training.files import read_tensors, write_tensors
from credro.training.run import Run

USES = ("trained", "watched", "calibrated")
"""What a run does with samples, in the order in which an overlap is told."""

WORDS = {"trained": "trained on", "watched": "watched while training", "calibrated": "calibrated on"}


class SeenSamples(ValueError):  # noqa: N818 - read as a sentence
    """Every sample has been used to make the run: measured on them it would promise too much."""


class SeenWarning(UserWarning):
    """Samples that the run has used were left out of a measurement, or kept in it."""


@dataclass(frozen=True)
class Overlap:
    """How many of ``samples`` samples the run has used, and how.

    known: whether the run can tell what it was trained on; one of an older version, or of a dataset whose samples are
    random, cannot, but may know what it was calibrated on.
    """

    samples: int
    trained: int = 0
    watched: int = 0
    calibrated: int = 0
    known: bool = True

    @property
    def used(self) -> int:
        """Samples that were used in any way."""
        return self.trained + self.watched + self.calibrated

    def __str__(self) -> str:
        """In words: "120 of 524 samples were trained on"."""
        parts = [f"{n:,} of {self.samples:,} samples were {WORDS[use]}" for use in USES if (n := getattr(self, use))]
        if not self.known:
            parts.append("whether these samples were trained on cannot be told")
        return ", ".join(parts) or f"none of the {self.samples:,} samples was used in training"


def seen_path(run: Run) -> Path:
    """The file's place."""
    return run.folder / "seen.safetensors"


def note_seen(run: Run, **uses: Data | None) -> None:
    """Remember what ``run`` does with which samples: ``note_seen(run, trained=data)``. Earlier notes are kept.

    Calibration replaces an earlier one. Samples that come out differently each time they are read have no content.
    """
    write_tensors(seen_path(run), noted(read_seen(run), **uses))


def noted(known: dict[str, Tensor], **uses: Data | None) -> dict[str, Tensor]:
    """What is remembered, with further uses; one that is given as None is forgotten."""
    known = dict(known)
    for use, data in uses.items():
        if data is not None and data.repeats():
            known[use] = torch.unique(data.content())
        else:
            known.pop(use, None)
    return known


def read_seen(run: Run) -> dict[str, Tensor]:
    """What is remembered, by use; empty where nothing is."""
    path = seen_path(run)
    found = read_tensors(path)[0] if path.exists() else {}
    for use, content in found.items():
        if use not in USES or content.dtype != torch.int64 or content.ndim != 1:
            raise RecordError(path, use, f"must be the content of samples, and one of {', '.join(USES)}")
    return found


def overlap(run: Run, data: Data) -> tuple[Overlap, Tensor]:
    """How much of ``data`` the run has used, and which samples (N,) it has not."""
    return overlap_with(read_seen(run), data)


def overlap_with(seen: dict[str, Tensor], data: Data, content: Tensor | None = None) -> tuple[Overlap, Tensor]:
    """The same by what is remembered. content: that of ``data``, where it is at hand."""
    if not seen or not data.repeats():
        return Overlap(len(data), known=False), torch.ones(len(data), dtype=torch.bool)
    content, fresh = data.content() if content is None else content, torch.ones(len(data), dtype=torch.bool)
    counts = dict.fromkeys(USES, 0)
    for use in USES:
        hit = fresh & torch.isin(content, seen.get(use, content[:0]))
        counts[use] = int(hit.sum())
        fresh &= ~hit
    known = "trained" in seen
    return Overlap(len(data), counts["trained"], counts["watched"], counts["calibrated"], known), fresh
