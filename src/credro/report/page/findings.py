"""What a report is made from, and the frame of a section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from credro.assess import Assessment, Line
from credro.readouts import Prediction
from credro.report.page.markup import Html, el
from credro.report.page.numbers import Booleans, Floats, Rejection, picks, rejection
from credro.report.page.objections import Objection
from credro.report.page.samples import Samples


@dataclass(frozen=True)
class Story:
    """What a run tells of itself. config: None for somebody's own networks. records: of each member, at its end."""

    config: dict[str, Any] | None = None
    records: Sequence[dict[str, Any]] = ()
    temperatures: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that the page tells. line: of the method that it is about. far: the OOD sets by name.

    objections: what is against the figures. each: samples in a group of the gallery.
    """

    assessment: Assessment
    line: Line
    samples: Samples
    far: dict[str, Samples]
    objections: tuple[Objection, ...]
    story: Story
    each: int

    @property
    def prediction(self) -> Prediction:
        """Of the ID samples."""
        return self.samples.prediction

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
        return "nats" if self.prediction.set is None or self.prediction.measure != "width" else "interval width"


@dataclass(frozen=True)
class Section:
    """A part of the page. short: its name in the navigation. data: what the script reads."""

    key: str
    title: str
    short: str
    intro: str
    content: Html
    data: dict[str, Any] | None = None

    @property
    def html(self) -> Html:
        """Heading and introduction beside the content."""
        head = el("div", el("h2", self.title, id=f"{self.key}-heading"), el("p", self.intro), class_="intro")
        body = el("div", self.content, class_="content")
        return el("section", head, body, id=self.key, aria_labelledby=f"{self.key}-heading")
