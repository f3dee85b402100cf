"""What a run keeps of itself, typed: its configuration, an epoch, a finished member, a calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from credro._records import Record
from credro.data.spec import DataSpec
from credro.methods import CHOICES, Method, method_of
from credro.nets.trunk import TrunkRecord
from credro.training.feed import Inputs
from credro.training.recipe import Recipe

FORMAT = 2
"""Of ``config.json``. Format 1 is version 0.1's, and is read (``_version1.py``)."""
MOST = 100_000
"""Members of a run: more is no ensemble, but a file that says nonsense."""


@dataclass(frozen=True)
class Network(Record):
    """What a run knows of its network: the name of one of credro's own, or what the user's looked like.

    target: mean and standard deviation of the targets of a regression. state: names and shapes of its tensors.
    given: whether members were trained elsewhere, and are kept as they came.
    """

    name: str | None = None
    own: str | None = None
    state: dict[str, tuple[int, ...]] | None = None
    target: tuple[float, float] | None = None
    given: bool = False
    brief: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """One or the other."""
        if (self.name is None) == (self.own is None):
            raise ValueError("must have either a name or own")


@dataclass(frozen=True)
class DataRecord(Record):
    """What a run was trained on. fingerprint: of its content (``Data.fingerprint``). spec: how it was read."""

    name: str
    samples: int
    fingerprint: str
    spec: DataSpec | None = None


@dataclass(frozen=True)
class Execution(Record):
    """How members were trained. threads: of each, as a number; never 0 for "as many as there are"."""

    executor: str
    threads: int


@dataclass(frozen=True)
class RunConfig(Record):
    """All that a run was started with: enough to train it again, and to tell whether another run is the same.

    method: as ``Method.config`` wrote it. classes: their names; none for a regression. held_out: fingerprint of the
    data that is watched. loss: its name. facts: anything else a user wants remembered. trunk: what stands before the
    members, which are then heads on its features.
    """

    method: dict[str, Any]
    members: int
    recipe: Recipe
    network: Network
    classes: tuple[str, ...]
    inputs: Inputs
    data: DataRecord
    held_out: str | None
    loss: str
    execution: Execution
    facts: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    trunk: TrunkRecord | None = None
    format: int = FORMAT

    def __post_init__(self) -> None:
        """What the types do not say."""
        if self.format != FORMAT:
            raise ValueError(f"has format {self.format}, this version reads {FORMAT}")
        if not 1 <= self.members <= MOST:
            raise ValueError(f"members must be 1 to {MOST:,}, got {self.members}")
        if not all(map(math.isfinite, (*self.inputs.mean, *self.inputs.std))) or any(s <= 0 for s in self.inputs.std):
            raise ValueError("inputs.mean must be finite, and inputs.std finite and positive")
        if not isinstance(self.method.get("name"), str):
            raise ValueError("method.name is missing or no text")
        for what in CHOICES:
            if not isinstance(self.method.get(what), dict) or not isinstance(self.method[what].get("kind"), str):
                raise ValueError(f"method.{what} is missing or no object with a kind")

    @property
    def trained_by(self) -> Method:
        """The method; an error where one of its choices is a user's own."""
        return method_of(self.method)

    @property
    def known(self) -> bool:
        """Whether the method's choices are all credro's own."""
        return known_kinds(self.method)


def known_kinds(method: Mapping[str, Any]) -> bool:
    """Whether the choices that ``Method.config`` wrote are all credro's own."""
    return all(method[what]["kind"] in kinds for what, (kinds, _) in CHOICES.items())


@dataclass(frozen=True)
class Fit(Record):
    """How a member does on a set, network in eval mode, no augmentation.

    loss: the mean of what it is trained by. nll: mean negative log-likelihood, whatever the loss. accuracy, confidence:
    of classes only.
    """

    loss: float
    nll: float | None = None
    accuracy: float | None = None
    confidence: float | None = None
    brief: ClassVar[bool] = True


@dataclass(frozen=True)
class Lowest(Record):
    """The epoch, from 1, with the lowest held-out loss."""

    epoch: int
    loss: float


@dataclass(frozen=True)
class Epoch(Record):
    """A line of ``history.jsonl``. notes: what the member's stop has to say; stopped: whether it ended the training.

    held_out_calibrated: the held-out loss at its best temperature, where early stopping goes by it.
    """

    epoch: int
    loss: float
    accuracy: float | None
    lr: float
    seconds: float
    held_out_loss: float | None = None
    held_out_accuracy: float | None = None
    held_out_calibrated: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True)
class MemberRecord(Record):
    """What is noted when a member is done.

    train, held_out: how it fits; None of networks trained elsewhere. best_epoch: whose weights it has, where it could
    stop early. traits: what sets it apart: its ``delta``, ``prior``, ``threshold``, ``bias_left`` and the like.
    weights: digest of its weights. trained_in: the run it was taken from, if it was.
    """

    member: int
    epochs: int = 0
    seconds: float = 0.0
    train: Fit | None = None
    held_out: Fit | None = None
    best_epoch: int | None = None
    stopped_early: bool | None = None
    lowest_held_out: Lowest | None = None
    traits: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None
    trained_in: str | None = None
    brief: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """A level is a number."""
        if not isinstance(self.traits.get("delta"), int | float | None):
            raise ValueError(f"traits.delta must be a number, got {self.traits['delta']!r}")

    @property
    def delta(self) -> float | None:
        """The member's CVaR level, or the fraction of each batch that is drawn; None where it has none."""
        found = self.traits.get("delta")
        return None if found is None else float(found)


@dataclass(frozen=True)
class HeldOut(Record):
    """The data that temperatures were fitted on."""

    name: str
    samples: int
    fingerprint: str


@dataclass(frozen=True)
class Calibration(Record):
    """One temperature per member (of a regression: one factor of its variances), and what it was fitted on."""

    temperatures: tuple[float, ...]
    held_out: HeldOut

    def __post_init__(self) -> None:
        """Temperatures are positive numbers."""
        for i, t in enumerate(self.temperatures):
            if not (math.isfinite(t) and t > 0):
                raise ValueError(f"temperatures[{i}] must be positive and finite, got {t}")
