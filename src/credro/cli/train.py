"""``credro train``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credro.cli.options import Device, Misuse, Root, at_least, check_device, checking_options, one_of, settings

if TYPE_CHECKING:
    from credro.ensemble import Ensemble


def train(
    data: Annotated[str, typer.Option(metavar="DATA", help="A set's name, or a folder, .npz, .csv or .parquet.")],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder of the run; one that is there goes on.")],
    net: Annotated[str, typer.Option(metavar="NAME", help="Network: credro list nets.")] = "resnet8",
    method: Annotated[str, typer.Option(metavar="NAME", help="Method: credro list methods.")] = "credro",
    members: Annotated[int, typer.Option(metavar="M", help="Members of the ensemble.")] = 5,
    recipe: Annotated[
        str | None, typer.Option(metavar="NAME", help="credro list recipes; the options below change it.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(metavar="N", help="Passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", help="Samples a step.")] = None,
    lr: Annotated[float | None, typer.Option(metavar="X", help="Highest learning rate.")] = None,
    augment: Annotated[str | None, typer.Option(metavar="NAME", help="none, flip, crop-flip or histology.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the method or field of the recipe; repeat it."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many samples: the first of a seeded shuffle.")
    ] = None,
    calibrate: Annotated[
        int | None,
        typer.Option(metavar="N", help="Fit a temperature per member on N further samples, not trained on."),
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Split to train on.")] = None,
    held_out: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Split to watch while training; a plateau schedule needs it.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Label column of a table.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of a table to leave out; repeat it.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="HxW", help="Resize image files, as 64 or 48x64, to one size.")
    ] = None,
    root: Root = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Everything random depends on this.")] = 0,
    executor: Annotated[str, typer.Option(metavar="NAME", help="auto, sequential, processes or stacked.")] = "auto",
    workers: Annotated[int | None, typer.Option(metavar="N", help="Processes. Default: one per core.")] = None,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads per member; 0 divides the cores.")] = 0,
    device: Device = "auto",
) -> None:
    """Train an ensemble. The same command again goes on where it stopped.

    \b
    Examples:
      credro train --data cifar10 --net resnet8 --method credro --members 5 \\
          --epochs 10 --limit 20000 --seed 0 --executor processes --out RUN
      credro train --data photos/ --size 64 --net resnet18 --out runs/photos
      credro train --data patients.csv --label outcome --net mlp --out runs/p \\
          --set delta_g=0.7 --set optimizer=adam --lr 0.001 --calibrate 200
    """
    from credro.data import AUGMENTATIONS, load
    from credro.data import limit as shuffled
    from credro.ensemble import fit
    from credro.methods import METHODS, make, options
    from credro.nets import NETS
    from credro.training.executors import EXECUTORS
    from credro.training.recipe import ALIASES, PRESETS, Recipe

    one_of("--method", method, METHODS)
    one_of("--net", net, NETS)
    one_of("--executor", executor, EXECUTORS)
    if augment is not None:
        one_of("--augment", augment, AUGMENTATIONS)
    at_least(1, members=members, limit=limit, calibrate=calibrate, workers=workers)
    at_least(0, threads=threads)
    check_device(device)
    if out.is_file():
        raise Misuse(f"--out must be a folder, got the file {out}")
    plan = PRESETS[one_of("--recipe", recipe, PRESETS)] if recipe is not None else Recipe()
    given: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "augment": augment, "seed": seed}
    changes = {k: v for k, v in given.items() if v is not None}
    of_recipe = {f.name for f in fields(Recipe)}
    chosen: dict[str, Any] = {}
    for key, value in settings(set_).items():
        if key in options(method):
            chosen[key] = value
        elif (key := ALIASES.get(key, key)) in of_recipe:
            changes[key] = tuple(value) if isinstance(value, list) else value
        else:
            raise Misuse(
                f"--set {key}: method {method!r} has {', '.join(options(method)) or 'no options'}; "
                f"the recipe has {', '.join(sorted(of_recipe))}"
            )
    with checking_options():
        plan, how = plan.with_(**changes), make(method, **chosen)
    reader = {"label": label, "drop": tuple(drop or ()) or None, "size": _size(size)}
    reader = {k: v for k, v in reader.items() if v is not None}
    whole = load(data, split=split, root=root, **reader)
    if whole.labels.is_floating_point() and whole.labels.ndim == 1:
        raise ValueError(
            f"--data {data}: labels are numbers such as {float(whole.labels[0]):g}, and the command line knows classes "
            f"only; in Python, credro.sklearn.CredalRegressor predicts numbers"
        )
    watched = load(data, split=held_out, root=root, **reader) if held_out is not None else None
    order = shuffled(len(whole), len(whole), seed)
    used = len(whole) - (calibrate or 0) if limit is None else min(limit, len(whole))
    if used < 1 or used + (calibrate or 0) > len(whole):
        raise Misuse(
            f"--limit {limit} and --calibrate {calibrate} together exceed the {len(whole)} samples"
            if limit is not None
            else f"--calibrate {calibrate} leaves nothing of the {len(whole)} samples to train on"
        )
    ensemble = fit(
        net,
        whole.subset(order[:used]) if used < len(whole) else whole,
        method=how,
        members=members,
        recipe=plan,
        out=out,
        executor=executor,
        workers=workers,
        threads=threads,
        device=device,
        held_out=watched,
        # What predict and evaluate need in order to read other samples in the same way.
        facts={
            "data": data,
            "limit": limit,
            "split": split,
            "label": label,
            "columns": list(whole.columns) or None,
        },
    )
    if calibrate:
        ensemble.calibrate(whole.subset(order[used : used + calibrate]))
    _report(ensemble)
    typer.echo(f"trained {len(ensemble)} members: {out}")


def _size(text: str | None) -> tuple[int, int] | None:
    """``64`` or ``48x64`` as (height, width)."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise Misuse(f"--size takes one number or HEIGHTxWIDTH, got {text!r}")
    return int(parts[0]), int(parts[-1])


def _report(ensemble: Ensemble) -> None:
    """Each member's fit on the training data, and its temperature if there is one."""
    from credro.assess import table

    rows = []
    for i, record in enumerate(ensemble.records):
        fitted = record["train"]
        row = [i, *([f"{record['delta']:.4g}"] if "delta" in record else [])]
        row += [f"{100 * fitted['accuracy']:.2f}" if "accuracy" in fitted else "-", f"{fitted['loss']:.4f}"]
        row += [f"{fitted['confidence']:.3f}" if "confidence" in fitted else "-"]
        rows.append([*row, *([f"{ensemble.temperatures[i]:.3f}"] if ensemble.calibrated else [])])
    columns = ["member", *(["delta"] if "delta" in ensemble.records[0] else []), "training accuracy", "loss"]
    typer.echo(table(rows, [*columns, "confidence", *(["temperature"] if ensemble.calibrated else [])]))
