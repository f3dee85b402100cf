"""Writing an ensemble that has no run to a run's folder, and building members from any run's weights.

Networks of the user's own are built again by a function that the user gives. Whether it is the right one is checked: by
the names and shapes of its tensors and, for networks that were trained elsewhere, by what they gave for a test input.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from credro._records import RecordError
from credro.methods import Method
from credro.nets import make_under_seed
from credro.training.feed import Inputs
from credro.training.files import digest_of, read_tensors, write_json, write_tensors
from credro.training.job import MakeNet
from credro.training.recipe import Recipe
from credro.training.records import Calibration, DataRecord, Execution, MemberRecord, Network, RunConfig
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
    the samples it was trained and calibrated on, by use.
    """

    config: RunConfig | None = None
    records: tuple[MemberRecord, ...] = ()
    seen: dict[str, Tensor] = field(default_factory=dict)
    calibration: Calibration | None = None

    @classmethod
    def of(cls, run: Run) -> Kept:
        """All that the run knows."""
        return cls(run.config(), tuple(run.records()), read_seen(run), run.calibration())


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
            return torch.stack([self.method.head.scores(net, given).float().cpu() for net in self.nets])


def write_run(folder: Path, parts: Parts, kept: Kept) -> Run:
    """A run's folder for an ensemble without one. The configuration comes last: half a folder is no run."""
    run = Run(folder)
    states = [_tensors(net, i) for i, net in enumerate(parts.nets)]
    config = kept.config or _config(parts, states)
    for i, state in enumerate(states):
        digest = write_tensors(run.weights(i), state)
        record = replace(kept.records[i] if kept.records else MemberRecord(i), weights=digest)
        write_json(run.record_path(i), record.to_json())
    if kept.seen:
        write_tensors(seen_path(run), kept.seen)
    if kept.calibration is not None:
        write_json(run.calibration_path, kept.calibration.to_json())
    if probe := _probe(parts):
        write_tensors(_probe_path(run), probe)
    run.start(config)
    return run


def build_members(run: Run, config: RunConfig, build: MakeNet, method: Method) -> list[nn.Module]:
    """The members' networks with their weights, in eval mode, on the CPU."""
    nets, network = [], config.network
    for i in range(config.members):
        if not run.weights(i).exists():
            raise RecordError(run.weights(i), "", "is missing: the member's record is there, and its weights are not")
        known = run.record(i).weights  # version 0.1 noted none
        if known is not None and digest_of(run.weights(i)) != known:
            raise RecordError(run.weights(i), "", "is not what was trained: its digest is not the one in the record")
        state = read_tensors(run.weights(i))[0]
        net = _empty_member(run, config, build, method, i, state)
        try:
            net.load_state_dict(state)
        except RuntimeError as error:
            if network.own is None:
                raise RecordError(run.weights(i), "", f"does not hold a member of this run: {error}") from error
            raise ValueError(
                f"make_net builds another network than the one in {run.folder}, {in_words(network)}: {error}"
            ) from error
        if config.recipe.channels_last:
            net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        nets.append(net.eval())
    return nets


def _empty_member(
    run: Run, config: RunConfig, build: MakeNet, method: Method, i: int, state: dict[str, Tensor]
) -> nn.Module:
    """Member i's network before its weights ``state`` are loaded.

    One of credro's own is first built without memory: a configuration that speaks of a larger one than the weights are
    of is found before that is filled.
    """

    def make() -> nn.Module:
        net = build()  # networks trained elsewhere are as they came
        return net if config.network.given else method.member(i, config.members).head.convert(net)

    if config.network.name is None:
        return make_under_seed(make, i)
    try:
        with torch.device("meta"):
            wanted = {name: tuple(t.shape) for name, t in make().state_dict().items()}
        if wanted == {name: tuple(t.shape) for name, t in state.items()}:
            return make_under_seed(make, i)
    except (ValueError, TypeError, RuntimeError) as error:
        raise RecordError(run.config_path, "network", f"cannot be built: {error}") from error
    raise RecordError(run.weights(i), "", f"does not hold a member of this run, {config.network.name!r}")


def in_words(network: Network) -> str:
    """What a run has recorded of a network of the user's own, in words."""
    state = network.state or {}
    names = ", ".join(f"{name} {tuple(shape)}" for name, shape in list(state.items())[:SHOWN])
    rest = ", ..." if len(state) > SHOWN else ""
    return f"{network.own} ({len(state)} tensors: {names}{rest})" if state else str(network.own)


def check_members(run: Run, network: Network, parts: Parts) -> None:
    """Raise where networks of the user's own do not give what they gave when they were saved."""
    if network.own is None or not _probe_path(run).exists():
        return
    saved = read_tensors(_probe_path(run))[0]
    if not {"x", "scores"} <= saved.keys():
        raise RecordError(_probe_path(run), "", "must hold x and scores")
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
    if inputs.fields:  # made-up tokens and masks would be no sample
        return {}
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


def _config(parts: Parts, states: Sequence[dict[str, Tensor]]) -> RunConfig:
    """The configuration of a run of networks that were trained elsewhere: of data and recipe nothing is known."""
    nets = parts.nets
    shapes = [{name: tuple(t.shape) for name, t in state.items()} for state in states]
    kinds = [f"{type(net).__module__}.{type(net).__qualname__}" for net in nets]
    for i in range(1, len(nets)):
        if (kinds[i], shapes[i]) != (kinds[0], shapes[0]):
            raise ValueError(
                f"nets must all be of one kind to be saved: member {i} is {kinds[i]} with {len(shapes[i])} tensors, "
                f"member 0 {kinds[0]} with {len(shapes[0])}, or their shapes differ. A run has one make_net for all"
            )
    last = any(t.ndim == 4 and not t.is_contiguous() for t in states[0].values())
    return RunConfig(
        method=parts.method.config(),
        members=len(nets),
        recipe=Recipe(channels_last=last),
        network=Network(own=kinds[0], state=shapes[0], given=True),
        classes=parts.classes,
        inputs=parts.inputs,
        data=DataRecord("unknown", 0, ""),
        held_out=None,
        loss="",
        execution=Execution("elsewhere", 0),
        versions={"torch": torch.__version__, "python": platform.python_version()},
    )


def _probe_path(run: Run) -> Path:
    return run.folder / "probe.safetensors"
