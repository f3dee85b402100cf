"""The table of methods: a training rule and a read-out each. A new method is a new line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from credro.objectives import ERM, CVaR, IntervalRule, RandomSubset, RelativeLikelihood, Rule, VariationalRule, rule_of
from credro.readouts import (
    READOUTS,
    AveragedBoxReadOut,
    BoxReadOut,
    HullReadOut,
    MeanReadOut,
    NearestHullReadOut,
    ReadOut,
)


@dataclass(frozen=True)
class Method:
    """A named pair: how members are trained, and how their outputs are read."""

    name: str
    rule: Rule
    readout: ReadOut

    def config(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"name": self.name, "rule": self.rule.config(), "readout": self.readout.config()}


@dataclass(frozen=True)
class Entry:
    """A line of the table."""

    rule: Callable[..., Rule]
    readout: Callable[..., ReadOut]
    title: str
    reference: str


METHODS: dict[str, Entry] = {
    "de": Entry(ERM, MeanReadOut, "Deep ensemble", "Lakshminarayanan et al., 2017"),
    "crewra": Entry(ERM, BoxReadOut, "Credal wrapper", "Wang et al., 2025"),
    "creens": Entry(ERM, NearestHullReadOut, "Credal ensembling", "Nguyen et al., 2025"),
    "en-dro": Entry(CVaR, MeanReadOut, "CreDRO's members without a credal set", "Wang et al., 2026"),
    "credro": Entry(CVaR, BoxReadOut, "CreDRO", "Wang et al., 2026"),
    "credro-hull": Entry(CVaR, HullReadOut, "CreDRO with a convex hull", "Wang et al., 2026"),
    "creram": Entry(RandomSubset, BoxReadOut, "Random subsets in place of the worst", "Wang et al., 2026"),
    "crerl": Entry(RelativeLikelihood, BoxReadOut, "Credal relative likelihood", "Löhr et al., 2025"),
    "crede": Entry(IntervalRule, AveragedBoxReadOut, "Credal deep ensemble", "Wang et al., 2024"),
    "crebnn": Entry(VariationalRule, HullReadOut, "Credal Bayesian network", "Caprio et al., 2024"),
}


def options(name: str) -> dict[str, Any]:
    """The method's hyper-parameters and their defaults."""
    entry = _entry(name)
    return {f.name: f.default for part in (entry.rule, entry.readout) for f in fields(part)}  # type: ignore[arg-type]


def make(name: str, **given: Any) -> Method:
    """The method called ``name``, with options of its rule or read-out set: ``make("credro", delta_g=0.7)``."""
    entry = _entry(name)
    known = options(name)
    for key in given:
        if key not in known:
            allowed = ", ".join(f"{k}={v}" for k, v in known.items()) or "none"
            raise ValueError(f"method {name!r} has no option {key!r}; its options and defaults: {allowed}")
    parts = []
    for part in (entry.rule, entry.readout):
        names = {f.name for f in fields(part)}  # type: ignore[arg-type]
        parts.append(part(**{k: v for k, v in given.items() if k in names}))
    rule, readout = parts
    return Method(name, rule, readout)  # type: ignore[arg-type]


def reading(rule: Rule) -> list[str]:
    """Names of the methods that can read networks trained by ``rule``: they are trained once and shared."""
    return [name for name, entry in METHODS.items() if entry.rule is type(rule)]


def method_of(config: dict[str, Any]) -> Method:
    """The method a run's configuration records."""
    given = config["method"]
    rule, readout_name = rule_of(given["rule"]), given["readout"]["readout"]
    if rule is None or readout_name not in READOUTS:
        raise ValueError(
            f"the run was trained by method {given['name']!r} (rule {given['rule']['rule']!r}, read-out "
            f"{readout_name!r}), which is none of credro's own: give it as method="
        )
    readout_type = READOUTS[readout_name]
    readout = {f.name: given["readout"][f.name] for f in fields(readout_type) if f.name in given["readout"]}
    return Method(given["name"], rule, readout_type(**readout))


def shared_options(name: str, recorded: Method) -> dict[str, Any]:
    """The recorded rule's options, when ``name`` is a method of that rule."""
    if name not in reading(recorded.rule):
        return {}
    return {f.name: getattr(recorded.rule, f.name) for f in fields(recorded.rule)}


def for_numbers() -> list[str]:
    """Names of the methods that can also predict numbers."""
    found = [(name, make(name)) for name in METHODS]
    return [n for n, m in found if m.rule.regresses and type(m.readout).numbers is not ReadOut.numbers]


def _entry(name: str) -> Entry:
    if name not in METHODS:
        near = get_close_matches(str(name), METHODS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {name!r}{hint}")
    return METHODS[name]
