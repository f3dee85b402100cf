"""``credro reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from credro.cli.options import (
    Address,
    Cpus,
    Device,
    Executor,
    Gpus,
    Misuse,
    Retries,
    Root,
    at_least,
    check_device,
    executor_of,
    one_of,
)


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", hidden=True, show_default=False)] = None,
    preset: Annotated[str, typer.Option(metavar="NAME", help="fashion, features, cpu, paper or demo.")] = "fashion",
    runs: Annotated[int | None, typer.Option(metavar="R", help="Repetitions; default: the paper's.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where networks and results go.")] = Path("runs/reproduce"),
    root: Root = None,
    executor: Executor = "auto",
    device: Device = "auto",
    address: Address = None,
    cpus_per_member: Cpus = None,
    gpus_per_member: Gpus = None,
    retries: Retries = None,
    show: Annotated[bool, typer.Option("--list", help="Show what there is, and what is ready.")] = False,
) -> None:
    """Make a table or figure of the paper.

    Networks are trained once for all experiments in DIR; what was interrupted goes on where it stopped.
    fashion: Fashion-MNIST and a small CNN, minutes. cpu: CIFAR-10 and ResNet-8, hours. paper: the paper's own setting.
    features: CIFAR-10 through a frozen trunk. demo: data that comes with the package.

    \b
    Examples:
      credro reproduce --list
      credro reproduce main --preset fashion --runs 3
      credro reproduce sizes --preset paper --root data --device cuda
    """
    from credro.experiments import BENCHMARKS, EXPERIMENTS
    from credro.experiments import reproduce as execute

    if show:
        for experiment in EXPERIMENTS.values():
            ready = [p for p in BENCHMARKS if (out / f"{experiment.name}-{p}" / "experiment.json").exists()]
            done = f"  (made: {', '.join(ready)})" if ready else ""
            typer.echo(f"{experiment.name:<12} {experiment.title}{done}")
        return
    if name is None:
        raise Misuse("reproduce needs NAME, one of the experiments of credro reproduce --list")
    one_of("NAME", name, EXPERIMENTS)
    one_of("--preset", preset, BENCHMARKS)
    how_run = executor_of(
        executor, address=address, cpus_per_member=cpus_per_member, gpus_per_member=gpus_per_member, retries=retries
    )
    at_least(1, runs=runs)
    if executor != "ray":
        check_device(device)
    tables = execute(
        name,
        preset,
        runs=runs,
        out=out,
        root=root,
        executor=how_run,
        device=device,
        say=lambda text: typer.echo(text, err=True),
    )
    for table in tables:
        typer.echo(f"\n{table.title}. {table.note}\n\n{table.markdown()}")
