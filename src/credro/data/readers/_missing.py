"""Missing values of a user's own arrays and tables: how they are marked, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from credro._names import Argument, ArgumentError, Message
from credro.data.errors import DataError

LABEL_MARKS = frozenset({"", "?", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "#N/A", "<NA>"})
"""A label written so is missing. What may well be a class ("-" beside "+", "none" beside "mild") is not among them."""

MARKS = LABEL_MARKS | {"None", "none", "-", "--", "."}
"""A cell that holds nothing but one of these is missing; space around it does not count."""

NOT_MARKS = ("drop", "mean", "median", "mode", "zero", "fill", "impute", "ignore", "skip", "raise", "nan")
"""What users may ask for that is not done: taken for a mark, it would do nothing, in silence."""

Missing = str | float | Sequence[str | float] | None
"""The option ``missing`` as users give it."""


@dataclass(frozen=True)
class Rule:
    """What counts as missing, and whether it is refused. added: the marks that the user named."""

    refused: bool = False
    added: tuple[str, ...] = ()

    @property
    def marks(self) -> frozenset[str]:
        """All texts that mark a missing value."""
        return MARKS | frozenset(self.added)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The user's marks that are numbers, such as -9."""
        return tuple(value for mark in self.added if (value := _number(mark)) is not None)


def rule(missing: Missing) -> Rule:
    """None, "keep": known marks are missing values, which stay NaN; "error": they are refused; else further marks."""
    if missing is None or missing == "keep":
        return Rule()
    if isinstance(missing, str) and missing == "error":
        return Rule(refused=True)
    marks = [missing] if isinstance(missing, str | int | float) else list(missing)
    unclear = isinstance(missing, str) and missing in NOT_MARKS
    if unclear or not marks or any(isinstance(mark, bool) or not isinstance(mark, str | int | float) for mark in marks):
        allowed = "'error', 'keep', or texts that mark a missing value"
        raise ArgumentError("missing", f"missing must be {allowed}, got {missing!r}")
    return Rule(added=tuple(str(mark).strip() for mark in marks))


def check_finite(path: Path, x: Tensor, columns: Sequence[str], missing: Missing = None) -> None:
    """Features (N, F) are numbers: NaN passes unless ``missing`` is "error", infinity never."""
    refused = rule(missing).refused
    bad = ~x.isfinite() if refused else x.isinf()
    if bad.any():
        row, column = bad.nonzero()[0].tolist()
        infinite = bool(x[row, column].isinf())
        what = f"{'infinite' if infinite else 'missing'} ({int(bad.sum())} in all)"
        hint = () if infinite else ("; ", Argument("missing", "keep"), " leaves such values as NaN")
        where = f"value in row {row} (counted from 0), column {columns[column]!r}"
        raise DataError(path, Message(f"{where} is {what}", *hint))


@dataclass(frozen=True)
class Holes:
    """How many values a column lacks."""

    column: str
    count: int
    category: bool = False


def missing_note(columns: Sequence[Holes], most: int = 8) -> tuple[str, ...]:
    """A sentence on how many values each column lacks, and what stands in for them; none where none lacks any."""
    lacking = sorted((c for c in columns if c.count), key=lambda c: -c.count)
    if not lacking:
        return ()
    total = sum(c.count for c in lacking)
    listed = ", ".join(f"{c.column} ({c.count:,})" for c in lacking[:most])
    more = f" and {len(lacking) - most} more columns" if len(lacking) > most else ""
    instead = {False: "the training mean stands in for numbers", True: "a category has none of its values"}
    said = ", ".join(instead[kind] for kind in sorted({c.category for c in lacking}))
    return (f"missing: {total:,} value{'s' * (total != 1)}, in {listed}{more}; {said}",)


def _number(mark: str) -> float | None:
    try:
        return float(mark)
    except ValueError:
        return None
