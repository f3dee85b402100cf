"""``credro train``."""

from __future__ import annotations

import math
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli._division import read_parts
from credro.cli._readers import with_reader_options
from credro.cli._wording import one_line
from credro.cli.options import (
    Address,
    Cpus,
    Device,
    Executor,
    Gpus,
    Misuse,
    PerDevice,
    Retries,
    Root,
    at_least,
    check_device,
    checking_options,
    executor_of,
    one_of,
    settings,
)

if TYPE_CHECKING:
    from credro.ensemble import Ensemble
    from credro.methods import Method
    from credro.nets.trunk import OnTrunk


@with_reader_options
def train(
    data: Annotated[str, typer.Option(metavar="DATA", help="A set's name, or a folder, .npz, .csv or .parquet.")],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder of the run; one that is there goes on.")],
    net: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Network: credro list nets. Default: table; images: resnet8."),
    ] = None,
    trunk: Annotated[
        str | None,
        typer.Option(
            metavar="TRUNK", help="Heads on a frozen backbone: a name, NAME:WEIGHTS, an .onnx file or a folder."
        ),
    ] = None,
    head: Annotated[str, typer.Option(metavar="NAME", help="Heads on the trunk: mlp or linear.")] = "mlp",
    unfreeze: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Train these layers of the trunk too: last_block, or names such as top*."),
    ] = None,
    views: Annotated[
        int | None,
        typer.Option(metavar="N", help="Views of each image through the trunk, N - 1 of them by --augment."),
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="Method: credro list methods.")] = "credro",
    members: Annotated[int, typer.Option(metavar="M", help="Members of the ensemble.")] = 5,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="credro list recipes. Default: one for the data. Options below change it."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(metavar="N", help="Passes over the data, at most.")] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", help="Samples a step.")] = None,
    lr: Annotated[float | None, typer.Option(metavar="X", help="Highest learning rate.")] = None,
    augment: Annotated[str | None, typer.Option(metavar="NAME", help="none, flip, crop-flip or histology.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A choice or option of the method, or a field of the recipe; repeat it."
        ),
    ] = None,
    early_stop: Annotated[
        bool | None,
        typer.Option(
            "--early-stop/--no-early-stop",
            help="End a member when its held-out loss no longer falls, and keep its best epoch. Default: for own data.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many samples: the first of a seeded shuffle.")
    ] = None,
    test: Annotated[
        float | None, typer.Option(metavar="FRACTION", help="Keep so much aside, for evaluate; whole groups.")
    ] = None,
    calibrate: Annotated[
        int | None,
        typer.Option(metavar="N", help="Fit a temperature per member on N further samples, not trained on."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Split to train on. Default: train; all for all of them.")
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(metavar="SPLIT", help="Split to stop by. Default: a part of the training data."),
    ] = None,
    reader: Any = None,
    root: Root = None,
    force: Annotated[bool, typer.Option("--force", help="Remove the run that is in RUN, and start anew.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Everything random depends on this.")] = 0,
    executor: Executor = "auto",
    workers: Annotated[int | None, typer.Option(metavar="N", help="Processes. Default: one per core.")] = None,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads per member; 0 divides the cores.")] = 0,
    device: Device = "auto",
    members_per_device: PerDevice = 1,
    address: Address = None,
    cpus_per_member: Cpus = None,
    gpus_per_member: Gpus = None,
    retries: Retries = None,
) -> None:
    """Train an ensemble. The same command again goes on where it stopped.

    What was read, and how, is said first; credro data show says it without training.

    \b
    Examples:
      credro train --data photos/ --size 64 --out runs/photos
      credro train --data photos/ --size 128 --trunk efficientnet-lite0 --out RUN
      credro train --data patients.csv --label outcome --drop id,date \\
          --missing '?' --test 0.2 --out runs/patients
      credro train --data messages.csv --text text --label topic --out RUN
      credro train --data cifar10 --net resnet8 --method credro --members 5 \\
          --epochs 10 --limit 20000 --seed 0 --executor processes --out RUN
      credro train --data digits --method credro --set start=biased \\
          --set head.norm=batch --set delta_g=0.7 --out RUN
    """
    from credro.data import AUGMENTATIONS
    from credro.ensemble import fit
    from credro.methods import METHODS
    from credro.nets import NETS
    from credro.nets.texts import DEFAULT
    from credro.nets.trunks import on
    from credro.training.plan import planned
    from credro.training.recipe import PRESETS, Recipe

    one_of("--method", method, METHODS)
    how_run = executor_of(
        executor, address=address, cpus_per_member=cpus_per_member, gpus_per_member=gpus_per_member, retries=retries
    )
    if net is not None:
        one_of("--net", net, NETS)
    if augment is not None:
        one_of("--augment", augment, AUGMENTATIONS)
    at_least(
        1, members=members, limit=limit, calibrate=calibrate, workers=workers, members_per_device=members_per_device
    )
    at_least(0, threads=threads)
    if executor != "ray":  # whose nodes have devices of their own
        check_device(device)
    if test is not None and not 0 < test < 1:
        raise Misuse(f"--test must lie in (0, 1), got {test:g}")
    if out.is_file():
        raise Misuse(f"--out must be a folder, got the file {out}")
    for name, value in (("unfreeze", unfreeze), ("views", views)):
        if value is not None and trunk is None:
            raise Misuse(f"--{name} is for members on a trunk: give --trunk")
    at_least(1, views=views)
    several = (views or 1) > 1  # which are what is augmented then
    recipe_augment = None if several else augment
    given = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "augment": recipe_augment, "seed": seed}
    base = PRESETS[one_of("--recipe", recipe, PRESETS)] if recipe is not None else None
    how, fields_set = _settings(set_, method)
    changes = {**{k: v for k, v in given.items() if v is not None}, **fields_set}
    with checking_options(fields_set):
        (base or Recipe()).with_(**changes)
    if trunk is not None and net is not None:
        raise Misuse("--net is a member's whole network; with --trunk members are heads: take --head")
    texts = "text" in reader
    if texts and net is not None:
        raise Misuse("--net takes numbers; with --text members are heads on a trunk: take --trunk and --head")
    with checking_options():
        named = trunk or (DEFAULT if texts else None)
        heads = None  # before anything is read
        if named is not None:
            heads = on(named, head, unfreeze=unfreeze or "", views=views or 1, augment=augment if several else None)
    if heads is not None and heads.trunk.takes_texts != texts:
        raise Misuse(
            f"--trunk {trunk} takes texts: --text says which column has them" if heads.trunk.takes_texts
            else f"--trunk {trunk} takes no texts, and --text is given: take tfidf, wordllama or a text model"
        )  # fmt: skip
    parts = read_parts(data, split, held_out, root, reader, limit=limit, test=test, calibrate=calibrate, seed=seed)
    made: str | OnTrunk = heads or net or ("resnet8" if len(parts.train.shape) == 3 else "table")
    if isinstance(made, str):
        _check_net(made, parts.train.shape)
    elif not texts:  # what learns from texts must not see those that are set aside below
        parts = parts.on(made)
    plan = planned(parts.train, made, base, held_out=parts.held_out, early_stop=early_stop, changes=changes)
    if force:
        _remove(out)
    ensemble = fit(
        made,
        replace(plan.train, notes=tuple(map(one_line, (*parts.train.notes, *plan.notes)))),
        method=how,
        members=members,
        recipe=plan.recipe,
        out=out,
        executor=how_run,
        workers=workers,
        threads=threads,
        device=device,
        members_per_device=members_per_device,
        held_out=plan.held_out,
    )
    if parts.calibrate is not None:
        ensemble.calibrate(parts.calibrate)
    _report(ensemble)
    typer.echo(f"trained {len(ensemble)} members: {out}")


def _settings(pairs: list[str] | None, method: str) -> tuple[Method, dict[str, Any]]:
    """What ``--set`` makes of the method, and the fields of the recipe that it changes.

    A name is the method's where its choices have such an option, else the recipe's.
    """
    from credro._names import did_you_mean
    from credro.methods import CHOICES, make
    from credro.training.recipe import ALIASES, Recipe

    given = settings(pairs)
    of_recipe = {f.name: f.name for f in fields(Recipe)} | ALIASES
    every = {o for kinds, _ in CHOICES.values() for kind in kinds.values() for o in kind().options()}
    with checking_options(given):
        base = make(method, **{what: given[what] for what in CHOICES if what in given})
    own = {option for what in CHOICES for option in getattr(base, what).options()}
    changes = {of_recipe[key]: value for key, value in given.items() if key in of_recipe and key not in own}
    chosen = {key: value for key, value in given.items() if key in own or key not in of_recipe}
    for key in chosen:
        if key not in every and key.partition(".")[0] not in CHOICES:
            raise Misuse(
                f"--set {key} is nothing that can be set{did_you_mean(key, [*CHOICES, *own, *of_recipe])}: method "
                f"{method!r} has {', '.join([*CHOICES, *sorted(own)])}; the recipe has {', '.join(of_recipe)}"
            )
    with checking_options(given):
        return make(method, **chosen), changes


def _check_net(net: str, shape: tuple[int, ...]) -> None:
    """Refuse samples that the network does not take, and say what else to type."""
    import torch

    from credro.nets import make

    try:
        with torch.device("meta"):  # nothing is allocated
            make(net, classes=2, shape=shape)
    except ValueError as error:
        other = "another --net, or --size for image files" if len(shape) == 3 else "--net table or mlp"
        raise ValueError(f"--net {net} does not take samples of shape {shape} ({error}): take {other}") from error


def _remove(out: Path) -> None:
    """Remove a run, and nothing that is none."""
    if out.exists() and any(out.iterdir()):
        if not (out / "config.json").exists():
            raise Misuse(f"--force removes a run, and {out} is none: it has no config.json")
        shutil.rmtree(out)


def _report(ensemble: Ensemble) -> None:
    """Each member's fit on the training data, and its temperature if there is one."""
    from credro._text import text_table
    from credro.training.records import Fit

    records = ensemble.records
    columns: dict[str, list[str]] = {"member": [str(record.member) for record in records]}
    if any(record.delta is not None for record in records):
        columns["delta"] = [_number(record.delta, ".4g") for record in records]
    fits = [record.train or Fit(math.nan) for record in records]
    columns["training accuracy"] = [_number(fit.accuracy, ".2f", 100) for fit in fits]
    columns["loss"] = [_number(fit.loss, ".4f") for fit in fits]
    columns["confidence"] = [_number(fit.confidence, ".3f") for fit in fits]
    if ensemble.calibrated:
        columns["temperature"] = [f"{t:.3f}" for t in ensemble.temperatures]
    typer.echo(text_table(list(zip(*columns.values(), strict=True)), list(columns)))


def _number(value: float | None, form: str, times: float = 1) -> str:
    return "-" if value is None or math.isnan(value) else f"{times * value:{form}}"
