"""``credro train``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from credro.cli.options import read, settings


def train(
    data: Annotated[str, typer.Option(help="Name of a set (credro list data), or a folder, .npz, .csv or .parquet.")],
    out: Annotated[Path, typer.Option(help="Folder of the run. A run that is there goes on where it stopped.")],
    net: Annotated[str, typer.Option(help="Network (credro list nets).")] = "resnet8",
    method: Annotated[str, typer.Option(help="Method (credro list methods).")] = "credro",
    members: Annotated[int, typer.Option(help="Members of the ensemble.")] = 5,
    recipe: Annotated[str | None, typer.Option(help="A recipe by name; the options below change it.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples a step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    augment: Annotated[str | None, typer.Option(help="none, flip, crop-flip or histology.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: an option of the method or a field of the recipe.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Use only so many samples: the first of a seeded shuffle.")] = None,
    calibrate: Annotated[
        int | None,
        typer.Option(help="Fit one temperature per member on so many further samples, taken out of the training data."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split to train on.")] = None,
    label: Annotated[str | None, typer.Option(help="Label column of a table.")] = None,
    root: Annotated[
        Path | None, typer.Option(help="Where the data sets are (default: CREDRO_DATA, then a cache).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Everything random depends on this.")] = 0,
    executor: Annotated[str, typer.Option(help="auto, sequential, processes or stacked.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes (default: one per core).")] = None,
    threads: Annotated[int, typer.Option(help="Threads per member (default: divided among the processes).")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Train an ensemble; start the same command again to go on after an interruption.

    Example: credro train --data cifar10 --net resnet8 --method credro --members 5 --epochs 10 --limit 20000 --out RUN

    Example: credro train --data photos/ --net resnet18 --set delta_g=0.7 --out runs/photos
    """
    from credro.data import limit as shuffled
    from credro.data import load
    from credro.ensemble import fit
    from credro.methods import make, options
    from credro.training.recipe import PRESETS, Recipe

    if recipe is not None and recipe not in PRESETS:
        raise typer.BadParameter(f"--recipe must be one of {', '.join(PRESETS)}, got {recipe!r}")
    given: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "augment": augment, "seed": seed}
    changes = {k: v for k, v in given.items() if v is not None}
    of_recipe = {f.name for f in fields(Recipe)}
    chosen: dict[str, Any] = {}
    for key, value in settings(set_).items():
        if key in options(method):
            chosen[key] = value
        elif key in of_recipe:
            changes[key] = tuple(value) if isinstance(value, list) else value
        else:
            raise typer.BadParameter(
                f"--set {key}: method {method!r} has {', '.join(options(method)) or 'no options'}; "
                f"the recipe has {', '.join(sorted(of_recipe))}"
            )
    plan = (PRESETS[recipe] if recipe else Recipe()).with_(**changes)
    how = make(method, **chosen)
    whole = load(data, split=split, root=root, **({"label": label} if label else {}))
    order = shuffled(len(whole), len(whole), seed)
    used = len(whole) - (calibrate or 0) if limit is None else min(limit, len(whole))
    if calibrate and used + calibrate > len(whole):
        raise typer.BadParameter(f"--limit {used} and --calibrate {calibrate} together exceed the {len(whole)} samples")
    samples = whole.subset(order[:used]) if used < len(whole) else whole
    ensemble = fit(
        net,
        samples,
        method=how,
        members=members,
        recipe=plan,
        out=out,
        executor=executor,
        workers=workers,
        threads=threads,
        device=device,
        facts={"data": data, "limit": limit, "split": split},
    )
    if calibrate:
        held_out = whole.subset(order[used : used + calibrate])
        found = ensemble.calibrate(held_out)
        typer.echo("temperatures: " + ", ".join(f"{t:.3f}" for t in found))
    for i, record in enumerate(ensemble.records):
        fitted = record["train"]
        delta = f", delta {record['delta']:.4g}" if "delta" in record else ""
        typer.echo(
            f"member {i}{delta}: training accuracy {fitted['accuracy']:.2%}, loss {fitted['loss']:.4f}, "
            f"confidence {fitted['confidence']:.3f}"
        )
    typer.echo(f"trained {len(ensemble)} members: {out}")
