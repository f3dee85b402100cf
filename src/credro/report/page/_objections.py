"""What is against a report's figures, said at the top of the page: in red what must not be overlooked, else amber."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from credro._templates import percent
from credro.evaluation import Shared
from credro.report.page._words import listed
from credro.training.seen import USES, WORDS, Overlap

FEW = 30
"""A test set with fewer samples says little about a classifier."""
NAMED = 5
"""Of more classes than this only so many are named."""


@dataclass(frozen=True)
class Objection:
    """A sentence or two. grave: the figures must not be believed without it."""

    text: str
    grave: bool = True


UNCHECKED = Objection(
    "Probabilities were given, and no run: whether it was trained on these samples, or an OOD set holds some of them, "
    "cannot be checked.",
    grave=False,
)


def of_overlap(found: Overlap, *, kept: bool, elsewhere: bool = False) -> list[Objection]:
    """Samples that the run has used to become what it is.

    kept: whether samples that were used are counted. elsewhere: the networks were trained without credro.
    """
    said = []
    if not found.known:
        why = "the networks were not trained by credro" if elsewhere else "the run has kept no record of its samples"
        text = (
            f"Whether it was trained on these samples cannot be checked ({why}). If it was, every figure flatters it."
        )
        said.append(Objection(text, grave=False))
    uses = [f"{count:,} {WORDS[use]}" for use in USES if (count := getattr(found, use))]
    told = replace(found, known=True)
    if uses and found.used == found.samples:
        how = next((WORDS[u] for u in USES if getattr(found, u) == found.samples), f"used to make it ({listed(uses)})")
        said.append(Objection(f"All {found.samples:,} samples were {how}: every figure on this page flatters the run."))
    elif uses and kept:
        said.append(Objection(f"{told}. They are counted all the same: every figure on this page flatters the run."))
    elif uses:
        left = found.samples - found.used
        said.append(Objection(f"{told}. They are left out: the figures are of the other {left:,}."))
    return said


def of_ood(name: str, found: Shared) -> list[Objection]:
    """An OOD set whose samples are ID samples or were used to make the run."""
    said, of = [], f"of {found.samples:,} samples of the OOD set {name}"
    if found.inside:
        text = f"{found.inside:,} {of} are in the ID set too, by content: its scores compare samples with themselves."
        said.append(Objection(text))
    if found.used > found.inside:  # else they have been spoken of
        said.append(Objection(f"{found.used:,} {of} were used to make the run: they are not OOD."))
    return said


def of_names(data: str, theirs: Sequence[str], ours: Sequence[str]) -> list[Objection]:
    """Classes that the dataset calls by other names than the model, all of them."""
    if not theirs or not set(theirs).isdisjoint(ours):
        return []
    given, known = (", ".join(names[:3]) + (", ..." if len(names) > 3 else "") for names in (theirs, ours))
    text = f"The classes of {data} ({given}) are not called as the model's ({known}): they are compared by number."
    return [Objection(text, grave=False)]


def of_unreadable(files: int) -> list[Objection]:
    """Files that could not be read."""
    text = f"{files:,} file{'s were' if files > 1 else ' was'} left out: unreadable."
    return [Objection(text, grave=False)] if files else []


def of_classes(labels: npt.NDArray[np.int64], said: npt.NDArray[np.int64], names: Sequence[str]) -> list[Objection]:
    """One class only, known, tested or answered; classes without samples. labels, said: (N,) class numbers."""
    if len(names) < 2:
        return [Objection(f"The model knows one class only, {names[0]}: it can give no other answer.")]
    there = np.unique(labels)
    found = []
    if len(there) == 1:
        found.append(
            Objection(
                f"All {len(labels):,} samples are of one class, {names[there[0]]}: the figures say nothing about the "
                f"{len(names) - 1} other{'s' if len(names) > 2 else ''}."
            )
        )
    elif len(only := np.unique(said)) == 1:
        found.append(Objection(f"The answer is {names[only[0]]} for every one of the {len(said):,} samples."))
    if 1 < len(there) < len(names):
        lacking = [name for k, name in enumerate(names) if k not in set(there.tolist())]
        text = f"No sample is of {len(lacking)} of the {len(names)} classes: {_few(lacking)}."
        found.append(Objection(text, grave=False))
    return found


def of_unknown(count: int, samples: int, names: Sequence[str], title: str | None) -> list[Objection]:
    """Samples of classes that were never trained. names: of these, where known. title: the OOD set made of them."""
    if not count:
        return []
    which = f" ({_few(names)})" if names else ""
    shown = f" and shown as the OOD set {title}" if title else ""
    are = "sample is" if count == 1 else "samples are"
    text = f"{count:,} {are} of classes that the model does not know{which}: left out of {samples:,}{shown}."
    return [Objection(text, grave=False)]


def of_members(members: npt.NDArray[np.floating], eu: npt.NDArray[np.floating]) -> list[Objection]:
    """Too few members, or copies. members: (M, ...) what each says. eu: (N,)."""
    count = len(members)
    if count < 2:
        text = "There is one member only: epistemic uncertainty is disagreement, and there is nobody to disagree with."
        return [Objection(text, grave=not bool(eu.any()))]
    distinct = len(np.unique(members.reshape(count, -1), axis=0))
    if distinct == 1:
        return [Objection(f"All {count} members say the same of every sample: they are copies, and EU means nothing.")]
    if distinct < count:
        return [Objection(f"Of the {count} members only {distinct} differ, the others are copies: EU is too small.")]
    return []


def of_size(right: int, samples: int) -> list[Objection]:
    """A very small test set: how far off its accuracy may be."""
    if samples >= FEW:
        return []
    low, high = wilson(right, samples)
    are = "There is one sample only" if samples == 1 else f"There are only {samples} samples"
    return [Objection(f"{are}: the true accuracy may be anywhere from {percent(low, 0)} to {percent(high, 0)}.")]


def wilson(right: int, samples: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval of a proportion, 95 % unless told otherwise."""
    p, scale = right / samples, 1 + z * z / samples
    centre = (p + z * z / (2 * samples)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / samples + z * z / (4 * samples * samples))
    return max(0.0, centre - half), min(1.0, centre + half)


def _few(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
