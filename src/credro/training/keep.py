"""Writing an ensemble that has no run to a run's folder, and building members from any run's weights.

Networks of the user's own are built again by a function that the user gives. Whether it is the right one is checked: by
the names and shapes of its tensors and, for networks that were trained elsewhere, by what they gave for a test input.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from credro.methods import Method
from credro.nets import make_under_seed
from credro.objectives import Rule
from credro.training.checkpoint import read_json, read_tensors, write_json, write_tensors
from credro.training.feed import Inputs
from credro.training.job import MakeNet
from credro.training.recipe import Recipe
from credro.training.run import Run
from credro.training.seen import read_seen, seen_path

SHOWN = 4
"""Tensors of a network that an error names."""
CLOSE = 1e-3
"""How far outputs may differ from those that were saved, relative to their size: devices round differently."""


@dataclass(frozen=True)
class Kept:
    """What is known of an ensemble beside its networks when it has no run.

    config: of the run it came from, or None for networks trained elsewhere. records: of its members. seen: contents of
    the samples it was trained and calibrated on, by use. calibration: what ``calibration.json`` has.
    """

    config: dict[str, Any] | None = None
    records: tuple[dict[str, Any], ...] = ()
    seen: dict[str, Tensor] = field(default_factory=dict)
    calibration: dict[str, Any] | None = None

    @classmethod
    def of(cls, run: Run) -> Kept:
        """All that the run knows."""
        config, calibration = run.config(), run.folder / "calibration.json"
        records = tuple(run.done(i) or {} for i in range(config["members"]))
        return cls(config, records, read_seen(run), read_json(calibration) if calibration.exists() else None)


@dataclass(frozen=True, eq=False)
class Parts:
    """What an ensemble is made of."""

    nets: Sequence[nn.Module]
    method: Method
    inputs: Inputs
    classes: tuple[str, ...]
    device: torch.device

    def scores(self, x: Tensor) -> Tensor:
        """What the members give (M, B, ...) for samples (B, *shape)."""
        given = self.inputs(x.to(self.device))
        with torch.inference_mode():
            return torch.stack([self.method.rule.scores(net, given).float().cpu() for net in self.nets])


def write_run(folder: Path, parts: Parts, kept: Kept) -> Run:
    """A run's folder for an ensemble without one. The configuration comes last: half a folder is no run."""
    run = Run(folder)
    states = [_tensors(net, i) for i, net in enumerate(parts.nets)]
    config = kept.config or _config(parts, states)
    for i, state in enumerate(states):
        write_tensors(run.weights(i), state)
        write_json(run.member(i) / "done.json", kept.records[i] if kept.records else {"member": i})
    if kept.seen:
        write_tensors(seen_path(run), kept.seen)
    if kept.calibration is not None:
        write_json(run.folder / "calibration.json", kept.calibration)
    if probe := _probe(parts):
        write_tensors(_probe_path(run), probe)
    run.start({name: value for name, value in config.items() if name != "format"})
    return run


def build_members(run: Run, config: dict[str, Any], build: MakeNet, rule: Rule) -> list[nn.Module]:
    """The members' networks with their weights, in eval mode, on the CPU."""
    nets, network = [], config["network"]
    for i in range(config["members"]):
        net = make_under_seed(build, i)
        if not network.get("given"):  # networks trained elsewhere are as they came
            net = rule.convert(net, i, config["members"])
        try:
            net.load_state_dict(read_tensors(run.weights(i))[0])
        except RuntimeError as error:
            if "own" not in network:
                raise
            raise ValueError(
                f"make_net builds another network than the one in {run.folder}, {in_words(network)}: {error}"
            ) from error
        if config["recipe"]["channels_last"]:
            net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        nets.append(net.eval())
    return nets


def in_words(network: dict[str, Any]) -> str:
    """What a run has recorded of a network of the user's own, in words."""
    state = network.get("state", {})
    names = ", ".join(f"{name} {tuple(shape)}" for name, shape in list(state.items())[:SHOWN])
    rest = ", ..." if len(state) > SHOWN else ""
    return f"{network['own']} ({len(state)} tensors: {names}{rest})" if state else str(network["own"])


def check_members(run: Run, network: dict[str, Any], parts: Parts) -> None:
    """Raise where networks of the user's own do not give what they gave when they were saved."""
    if "own" not in network or not _probe_path(run).exists():
        return
    saved = read_tensors(_probe_path(run))[0]
    scores = parts.scores(saved["x"])
    off = float((scores - saved["scores"]).abs().max()) if scores.shape == saved["scores"].shape else float("inf")
    if not off <= CLOSE * max(1.0, float(saved["scores"].abs().max())):
        raise ValueError(
            f"make_net builds another network than the one in {run.folder}, {in_words(network)}: the weights fit, but "
            f"its outputs differ by {off:.3g} from those that were saved"
        )


def _probe(parts: Parts) -> dict[str, Tensor]:
    """A made-up input and what each member gives for it; nothing where they refuse it or answer at random."""
    inputs = parts.inputs
    steps = torch.arange(2 * math.prod(inputs.shape))
    x = (steps % 2 if inputs.whole else (steps * 0.7).sin()).reshape(2, *inputs.shape)
    try:
        first, second = parts.scores(x), parts.scores(x)
    except Exception:  # a user's network raises whatever it likes
        return {}
    return {"x": x, "scores": first} if torch.equal(first, second) and bool(first.isfinite().all()) else {}


def _tensors(net: nn.Module, member: int) -> dict[str, Tensor]:
    state = dict(net.state_dict())
    strange = [name for name, value in state.items() if not isinstance(value, Tensor)]
    if strange:
        raise ValueError(f"member {member} cannot be saved: {strange[0]!r} of its state is no tensor")
    return state


def _config(parts: Parts, states: Sequence[dict[str, Tensor]]) -> dict[str, Any]:
    """The configuration of a run of networks that were trained elsewhere: of data and recipe nothing is known."""
    nets = parts.nets
    shapes = [{name: list(t.shape) for name, t in state.items()} for state in states]
    kinds = [f"{type(net).__module__}.{type(net).__qualname__}" for net in nets]
    for i in range(1, len(nets)):
        if (kinds[i], shapes[i]) != (kinds[0], shapes[0]):
            raise ValueError(
                f"nets must all be of one kind to be saved: member {i} is {kinds[i]} with {len(shapes[i])} tensors, "
                f"member 0 {kinds[0]} with {len(shapes[0])}, or their shapes differ. A run has one make_net for all"
            )
    last = any(t.ndim == 4 and not t.is_contiguous() for t in states[0].values())
    return {
        "method": parts.method.config(),
        "members": len(nets),
        "recipe": Recipe(channels_last=last).config(),
        "network": {"own": kinds[0], "state": shapes[0], "given": True},
        "classes": list(parts.classes),
        "inputs": parts.inputs.config(),
        "data": {"name": "unknown", "samples": 0, "fingerprint": "", "spec": None},
        "held_out": None,
        "loss": "",
        "execution": {"executor": "elsewhere", "threads": 0},
        "facts": {},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }


def _probe_path(run: Run) -> Path:
    return run.folder / "probe.safetensors"
