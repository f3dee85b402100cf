"""The main job, from data to a decision, on the embedded benchmark: small enough for two cores and a cup of tea."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from credro.evaluation import Evaluation, evaluate, results_table
from credro.experiments.benchmarks import BENCHMARKS
from credro.experiments.runner import Setting, trained
from credro.methods import make
from credro.metrics import accuracy_rejection
from credro.report.figures import accuracy_rejection_curves, densities, gallery
from credro.report.page import write_report
from credro.training.files import write_json

RUNS = {"de": ("de", "crewra"), "credro": ("en-dro", "credro")}
"""Which methods read each run: networks that agree in all but the read-out are trained once."""
SHOWN = "credro"
"""The method of the report and of the gallery."""
OOD = {
    "letters": "fashion-mini-letters",
    "digits": "fashion-mini-digits",
    "noise": "gaussian_noise-5",
    "blur": "defocus_blur-5",
}
"""The benchmark's OOD sets, by what the demo calls them."""


def demo(
    out: Path,
    *,
    members: int = 5,
    samples: int | None = None,
    epochs: int | None = None,
    progress: str = "auto",
    say: Callable[[str], Any] = print,
) -> list[Evaluation]:
    """Train DE's and CreDRO's members on embedded data, compare four methods, write table and figures to ``out``.

    A demo that was interrupted goes on where it stopped. samples, epochs: the benchmark's own if not given.
    """
    started, benchmark = time.monotonic(), BENCHMARKS["demo"]
    benchmark = benchmark.with_(samples=samples or benchmark.samples, epochs=epochs)
    data, setting = benchmark.load(), Setting(out, progress=progress, say=say)
    test, ood = data.test, {shown: data.ood[name].read() for shown, name in OOD.items()}
    say(f"{len(data.train)} training and {len(test)} test images of Fashion-MNIST, {members} members a run, one recipe")
    evaluations: list[Evaluation] = []
    uncertainty: dict[str, dict[str, Any]] = {}
    curves = {}
    for run, methods in RUNS.items():
        say(f"training {members} members for {' and '.join(methods)} ...")
        ensemble = trained(
            benchmark,
            data,
            make(run),
            members=members,
            seed=0,
            out=out / run,
            reuse=[out / other for other in RUNS],  # CreDRO's last member sees whole batches: it is one of DE's
            setting=setting,
        )
        evaluation = evaluate(ensemble, test, ood, methods)
        evaluations.append(evaluation)
        for name in methods:
            found = {label: evaluation.prediction(name, ood=label) for label in ("", *ood)}
            uncertainty[name] = {label or "test": p.epistemic for label, p in found.items()}
            curves[name] = accuracy_rejection(found[""].label == test.labels, found[""].epistemic)
            if name == SHOWN:
                write_report(out / "report.html", ensemble, evaluation, name="demo")
                images = test.batch(torch.arange(len(test)))
                gallery(images, found[""], test.labels, test.classes, out / "gallery.png")
    densities(uncertainty, "test", out / "densities.png")
    accuracy_rejection_curves(curves, out / "accuracy_rejection.png")
    write_json(out / "results.json", [evaluation.to_json() for evaluation in evaluations])
    say("")
    say(results_table(evaluations))
    say("")
    say(f"a page to look at: {out / 'report.html'}")
    say(f"figures: {', '.join(str(out / f) for f in ('densities.png', 'accuracy_rejection.png', 'gallery.png'))}")
    say(f"numbers: {out / 'results.json'}   ({time.monotonic() - started:.0f} s)")
    return evaluations
