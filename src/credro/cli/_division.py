"""What ``credro train`` trains on, watches and calibrates on: the data that is named, divided as asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credro.cli.options import Misuse, checking_options

if TYPE_CHECKING:
    from torch import Tensor

    from credro.data import Data
    from credro.nets.trunk import OnTrunk


@dataclass(frozen=True)
class Division:
    """What a run is trained on, watched on and calibrated on."""

    train: Data
    held_out: Data | None
    calibrate: Data | None

    def on(self, heads: OnTrunk) -> Division:
        """The same as features of the trunk; what temperatures are fitted on goes through it later."""
        from credro.training.features import with_features
        from credro.training.views import with_views

        held_out = None if self.held_out is None else with_features(heads.front, self.held_out, progress=True)
        train = with_views(heads.front, self.train, heads.views, heads.augment, progress=True)
        return replace(self, train=train, held_out=held_out)


def read_parts(
    source: str,
    split: str | None,
    held_out: str | None,
    root: Path | None,
    options: dict[str, Any],
    *,
    limit: int | None,
    test: float | None,
    calibrate: int | None,
    seed: int,
) -> Division:
    """Read the data and divide it. held_out: the split to watch, which no threshold can then be chosen on."""
    from credro.data import limit as shuffled
    from credro.data import load
    from credro.data.again import Wanted, read_labelled
    from credro.data.load import options_of

    with checking_options():
        if Path(source).exists() and (strange := [o for o in options if o not in options_of(source)]):
            raise Misuse(f"--{strange[0].replace('_', '-')} does not go with --data {source}")
    whole = load(source, split=split, root=root, **options)
    assert whole.spec is not None
    wanted = Wanted(whole.shape, whole.classes, whole.spec, whole.texts is not None)
    watched = None if held_out is None else read_labelled(wanted, source, held_out, root)
    kept, notes = whole, []
    if test is not None:
        kept = whole.subset(_without_test(whole, test, seed))
        notes.append(f"{len(whole) - len(kept):,} of {len(whole):,} samples are kept aside, for credro evaluate")
    order = shuffled(len(kept), len(kept), seed)
    used = len(kept) - (calibrate or 0) if limit is None else min(limit, len(kept))
    if used < 1 or used + (calibrate or 0) > len(kept):
        raise Misuse(
            f"--limit {limit} and --calibrate {calibrate} together exceed the {len(kept)} samples"
            if limit is not None
            else f"--calibrate {calibrate} leaves nothing of the {len(kept)} samples to train on"
        )
    part = kept.subset(order[:used]) if used < len(kept) else kept
    if limit is not None:
        notes.append(f"{used:,} of {len(kept):,} samples, by --limit")
    part = replace(part, notes=(*whole.notes, *notes))
    return Division(part, watched, kept.subset(order[used : used + calibrate]) if calibrate else None)


def _without_test(whole: Data, test: float, seed: int) -> Tensor:
    """Sample numbers (K,) of all but a fraction: by group where there are groups, else by class."""
    from credro.data import split as divided
    from credro.data import split_groups

    classes = whole.labels.ndim == 1 and not whole.labels.is_floating_point()
    with checking_options():
        if whole.groups is not None:
            return split_groups(whole.groups, 1 - test, seed=seed, labels=whole.labels if classes else None)[0]
        return divided(whole, 1 - test, seed=seed, stratify=classes)[0]
