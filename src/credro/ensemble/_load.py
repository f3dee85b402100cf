"""A trained run from its folder."""

from __future__ import annotations

from pathlib import Path

import torch

from credro._names import ArgumentError
from credro._records import RecordError
from credro.ensemble._ensemble import Ensemble
from credro.ensemble._trunk import member_on, reopened
from credro.methods import Method, as_read
from credro.nets.tail import cut
from credro.nets.trunks import Source
from credro.training.job import MakeNet
from credro.training.keep import Parts, build_members, check_members, in_words
from credro.training.records import RunConfig
from credro.training.run import Run, RunError
from credro.training.train import net_factory, pick_device

FEW = 20
"""Members that an error names."""


def load(
    folder: str | Path,
    *,
    method: str | Method | None = None,
    make_net: MakeNet | None = None,
    device: str | torch.device = "auto",
    trunk: Source | None = None,
) -> Ensemble:
    """A trained run from its folder. Nothing in it is a pickle, so a run from a stranger is safe to load.

    Args:
        folder: where ``fit`` or ``credro train`` put it.
        method: read the same networks by another method with the same training, such as "crewra" for a run of "de".
            A run whose method has a choice of your own (``credro.Method``) needs it here.
        make_net: needed for a network, or a head on a trunk, that is not one of credro's own.
        device: where the networks go.
        trunk: needed for members on a trunk that cannot be opened from the address that the run has.

    Raises:
        RunError: the folder holds no run, or one that is not finished.
        RecordError: a file of the run does not hold what it must; the message names file and field.
    """
    run = Run(folder)
    config = run.config()
    run.check_begun()
    if missing := run.missing():
        few = f"{missing[:FEW]}{' and more' if len(missing) > FEW else ''}"
        raise RunError(f"{run.folder} is not finished: members {few} are not trained; start the same fit again")
    where = pick_device(device)
    if isinstance(method, Method):  # which may have choices that nobody else knows
        if method.training() != {what: config.method[what] for what in method.training()}:
            method = as_read(_trained_by(run, config), method)
        chosen = method
    else:
        trained = _trained_by(run, config)
        chosen = trained if method is None else as_read(trained, method)
    network, inputs, classes = config.network, config.inputs, config.classes
    stands = None if config.trunk is None else reopened(config.trunk, run.folder, trunk)
    parted = cut(stands, config.trunk.unfreeze) if config.trunk and stands and config.trunk.unfreeze else None
    if config.trunk is not None and parted is not None and (config.trunk.head or make_net is not None):
        build = member_on(parted, config.trunk, len(classes), make_net)
    elif network.name is not None:
        build, _ = net_factory(network.name, len(classes), inputs.shape, network.target)
    elif make_net is None:
        raise ArgumentError(
            "make_net",
            f"{run.folder} was trained with {in_words(network)}: give make_net, the function that builds it",
        )
    else:
        build = make_net
    nets = [net.to(where) for net in build_members(run, config, build, chosen)]
    check_members(run, network, Parts(nets, chosen, inputs, classes, where))
    ensemble = Ensemble(nets, chosen, inputs, classes, where, run)
    if stands is not None:
        ensemble.trunk = stands if parted is None else parted.front
        ensemble.trunk.module.to(where)
    return ensemble


def _trained_by(run: Run, config: RunConfig) -> Method:
    """The method of the configuration; one with a choice of the user's own is asked for."""
    try:
        return config.trained_by
    except ValueError as error:
        if not config.known:
            raise
        raise RecordError(run.config_path, "method", f"is none: {error}") from error
