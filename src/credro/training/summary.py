"""A trained ensemble as a notebook shows it: method, members and how they fit, classes, what to be careful about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from credro.readouts.markup import Html, el
from credro.readouts.show import LEFT, RIGHT, cut, table

MEMBERS, CLASSES = 20, 20
"""Members and classes that are shown at most."""


@dataclass(frozen=True)
class Summary:
    """What there is to say. records: of each member when it finished, empty for networks trained elsewhere."""

    title: str
    network: str
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    temperatures: Sequence[float]
    records: Sequence[dict[str, Any]]
    warnings: Sequence[str]

    def html(self) -> Html:
        """A heading, facts, a table of the members and the warnings."""
        return el(
            "div",
            el("p", el("b", self.title), style="margin:.3em 0"),
            el("p", self._facts(), style="margin:.3em 0"),
            self._members() if self._known else None,
            *(
                el("p", "⚠ " + text, style="border-left:3px solid #D55E00;padding-left:.6em;margin:.4em 0")
                for text in self.warnings
            ),
            style="overflow-x:auto",
        )

    @property
    def _known(self) -> bool:
        """Whether the members' training is on record."""
        return any("train" in record for record in self.records)

    def _facts(self) -> str:
        names = ", ".join(cut(name) for name in self.classes[:CLASSES])
        if len(self.classes) > CLASSES:
            names += f" and {len(self.classes) - CLASSES:,} more"
        classes = f"classes: {names}" if self.classes else "predicts numbers"
        trained = "" if self._known else "; trained elsewhere, so that nothing is known of their fit"
        return f"{cut(self.network, 80)}; samples of shape {self.shape}; {classes}{trained}"

    def _members(self) -> Html:
        """Columns of which nothing is known are left out."""
        calibrated = any(t != 1.0 for t in self.temperatures)
        numbers = "temperature" if self.classes else "factor of the variance"
        columns: dict[str, list[Any]] = {
            "delta": [_shown(r.get("delta"), ".3g") for r in self.records],
            "epochs": [_shown(r.get("epochs"), "d") for r in self.records],
            "training accuracy": [_shown(r.get("train", {}).get("accuracy"), ".1%") for r in self.records],
            "training loss": [_shown(r.get("train", {}).get("loss"), ".4f") for r in self.records],
            "held-out accuracy": [_shown(r.get("held_out", {}).get("accuracy"), ".1%") for r in self.records],
            "held-out loss": [_shown(r.get("held_out", {}).get("loss"), ".4f") for r in self.records],
            numbers: [_shown(t, ".3f") if calibrated else None for t in self.temperatures],
        }
        known = {name: values for name, values in columns.items() if any(v is not None for v in values)}
        rows = [
            el(
                "tr",
                el("td", i, style=LEFT),
                *(el("td", "–" if values[i] is None else values[i], style=RIGHT) for values in known.values()),
            )
            for i in range(min(MEMBERS, len(self.records)))
        ]
        more = len(self.records) - len(rows)
        rest = el("p", f"and {more} more members", style="margin:.3em 0") if more else None
        return el("div", table(("member", *known), rows, left=(0,)), rest)


def _shown(value: Any, form: str) -> str | None:
    return None if value is None else format(value, form)
