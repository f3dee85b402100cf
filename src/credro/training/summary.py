"""A trained ensemble as a notebook shows it: method, members and how they fit, classes, what to be careful about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from credro._templates import render
from credro.prediction.show import cut
from credro.training.records import Fit, MemberRecord

MEMBERS, CLASSES = 20, 20
"""Members and classes that are shown at most."""


@dataclass(frozen=True)
class Summary:
    """What there is to say. records: of each member when it finished, empty for networks trained elsewhere."""

    title: str
    network: str
    classes: tuple[str, ...]
    samples: str  # what one is like
    temperatures: Sequence[float]
    records: Sequence[MemberRecord]
    warnings: Sequence[str]

    def html(self) -> str:
        """A heading, facts, a table of the members and the warnings."""
        known = self._columns() if self._known else {}
        rows = (
            [[i, *(column[i] or "–" for column in known.values())] for i in range(len(self.records))] if known else []
        )
        return render(
            "training/summary.html.j2",
            title=self.title,
            facts=self._facts(),
            heads=["member", *known],
            rows=rows[:MEMBERS],
            more=max(0, len(rows) - MEMBERS),
            warnings=self.warnings,
        )

    @property
    def _known(self) -> bool:
        """Whether the members' training is on record."""
        return any(record.train is not None for record in self.records)

    def _facts(self) -> str:
        names = ", ".join(cut(name) for name in self.classes[:CLASSES])
        if len(self.classes) > CLASSES:
            names += f" and {len(self.classes) - CLASSES:,} more"
        classes = f"classes: {names}" if self.classes else "predicts real numbers"
        trained = "" if self._known else "; trained elsewhere, so that nothing is known of their fit"
        return f"{cut(self.network, 80)}; samples of {self.samples}; {classes}{trained}"

    def _columns(self) -> dict[str, list[str | None]]:
        """By title, an entry for each member; columns of which nothing is known are left out."""
        train, held_out = [r.train for r in self.records], [r.held_out for r in self.records]
        scaled = self.temperatures if any(t != 1.0 for t in self.temperatures) else []
        columns = {
            "delta": [_shown(r.delta, ".3g") for r in self.records],
            "epochs": [_shown(r.epochs, "d") for r in self.records],
            "training accuracy": [_shown(_accuracy(fit), ".1%") for fit in train],
            "training loss": [_shown(_loss(fit), ".4f") for fit in train],
            "held-out accuracy": [_shown(_accuracy(fit), ".1%") for fit in held_out],
            "held-out loss": [_shown(_loss(fit), ".4f") for fit in held_out],
            "temperature" if self.classes else "factor of the variance": [_shown(t, ".3f") for t in scaled],
        }
        return {name: values for name, values in columns.items() if any(v is not None for v in values)}


def _accuracy(fit: Fit | None) -> float | None:
    return None if fit is None else fit.accuracy


def _loss(fit: Fit | None) -> float | None:
    return None if fit is None else fit.loss


def _shown(value: float | None, form: str) -> str | None:
    return None if value is None else format(value, form)
