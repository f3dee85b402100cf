"""Empirical risk minimisation: the mean loss (paper, Eq. 1). Deep ensembles and all read-outs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from credro.objectives.base import Rule


@dataclass(frozen=True)
class ERM(Rule):
    """Every member minimises the mean loss; members differ by initialisation and order alone."""

    name: ClassVar[str] = "erm"

    def identity(self, member: int, members: int) -> dict[str, Any]:
        """Nothing else decides."""
        return {"rule": self.name}
