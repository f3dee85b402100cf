"""What a report is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from credro.evaluation import Evaluation, MethodResult
from credro.report.page._numbers import Booleans, Floats, Rejection, picks, rejection
from credro.report.page._objections import Objection
from credro.report.page._samples import Samples
from credro.training.records import MemberRecord, RunConfig


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that the page tells. result: of the method that it is about. far: the OOD sets by name.

    objections: what is against the figures. each: samples in a group of the gallery. config: what the members were
    trained with, and what they recorded at their end; of somebody's own networks nothing is known.
    """

    evaluation: Evaluation
    result: MethodResult
    samples: Samples
    far: dict[str, Samples]
    objections: tuple[Objection, ...]
    each: int
    config: RunConfig | None = None
    records: Sequence[MemberRecord] = ()
    temperatures: Sequence[float] = ()

    @property
    def eu(self) -> Floats:
        """EU of the ID samples (N,)."""
        return self.samples.eu

    @property
    def ood(self) -> dict[str, Floats]:
        """EU of each OOD set (K,)."""
        return {name: far.eu for name, far in self.far.items()}

    @cached_property
    def correct(self) -> Booleans:
        """Which predictions are right (N,)."""
        found: Booleans = self.samples.said == self.samples.labels
        return found

    @cached_property
    def rejection(self) -> Rejection:
        """The slider's numbers."""
        return rejection(self.correct, self.eu, self.ood)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """The ID samples of the gallery."""
        return picks(self.eu, self.samples.mean.max(1), self.samples.said, self.correct, self.each)

    @property
    def against(self) -> list[str]:
        """What is against the figures, the graver first."""
        return [o.text for o in sorted(self.objections, key=lambda o: not o.grave)]

    @property
    def unit(self) -> str:
        """What EU is measured in."""
        prediction = self.samples.prediction
        return "interval width" if prediction.set is not None and prediction.measure == "width" else "nats"
