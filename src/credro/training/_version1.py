"""Records of version 0.1 as today's: its training rules in the five choices, its flat notes by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from credro._records import RecordError
from credro.methods import method_of
from credro.training.recipe import ALIASES
from credro.training.records import FORMAT, MemberRecord, known_kinds

RULES: dict[str, dict[str, str]] = {
    "erm": {},
    "cvar": {"risk": "cvar"},
    "random_subset": {"risk": "random_subset"},
    "relative_likelihood": {"start": "biased", "stop": "relative_likelihood"},
    "interval_head": {"risk": "cvar", "head": "interval"},
    "variational": {"head": "variational"},
}
OWNER = {"relative_likelihood": "stop", "interval_head": "risk", "variational": "head"}
"""Which choice the options of a rule went to; the others' went to the risk."""
USUAL = {"start": "fresh", "risk": "mean", "head": "softmax", "stop": "end"}


def upgraded_config(plain: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """``config.json`` of version 0.1 as this version writes it."""
    out = {k: v for k, v in plain.items() if k != "format"}
    try:
        given = plain["method"]
        rule = dict(given["rule"])
        name = rule.pop("rule")
        kinds = {**USUAL, **RULES.get(name, {"risk": name})}  # a user's own rule is no kind that anybody knows
        if not plain["classes"]:
            kinds["head"] = "gaussian"
        method: dict[str, Any] = {what: {"kind": kind} for what, kind in kinds.items()}
        method[OWNER.get(name, "risk")] |= rule
        readout = dict(given["readout"])
        method["readout"] = {"kind": readout.pop("readout"), **readout}
        out["method"] = _complete({"name": given["name"], **method})
        out["recipe"] = {ALIASES.get(k, k): v for k, v in plain["recipe"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(file, "method", f"is not what version 0.1 wrote ({error!r})") from error
    return {**out, "format": FORMAT}


def _complete(method: dict[str, Any]) -> dict[str, Any]:
    """With the options that version 0.1 did not have, at what it did; as it is where nobody knows its kinds."""
    return method_of(method).config() if known_kinds(method) else method


def upgraded_member(plain: Mapping[str, Any]) -> dict[str, Any]:
    """``done.json`` of version 0.1, whose notes on a member stood beside the rest."""
    known = {f.name for f in fields(MemberRecord)}
    if "traits" in plain or not isinstance(plain, Mapping):
        return dict(plain)
    return {
        **{k: v for k, v in plain.items() if k in known},
        "traits": {k: v for k, v in plain.items() if k not in known},
    }
