"""The main job, from data to a decision, on the embedded set: small enough for two cores and a cup of tea."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from credro.assess import Assessment, assess, layout
from credro.data import Data, corrupt_data, limit, load
from credro.ensemble import Ensemble, fit
from credro.evaluation import accuracy_rejection
from credro.report.figures import accuracy_rejection_curves, densities, gallery
from credro.report.page import write_report
from credro.training.checkpoint import write_json
from credro.training.recipe import PRESETS

TRAINED = {"de": ("de", "crewra"), "credro": ("en-dro", "credro")}
"""Which run each method reads: networks are trained once per rule."""
SAMPLES = 6000


def others(test: Data) -> dict[str, Data]:
    """What the networks were not trained for: letters, digits, and the test images corrupted."""
    return {
        "letters": load("fashion-mini-letters", split="test"),
        "digits": load("fashion-mini-digits", split="test"),
        "noise": corrupt_data(test, "gaussian_noise", 5, seed=0),
        "blur": corrupt_data(test, "defocus_blur", 5, seed=0),
    }


def demo(
    out: Path,
    *,
    members: int = 5,
    samples: int = SAMPLES,
    epochs: int | None = None,
    progress: str = "auto",
    say: Callable[[str], Any] = print,
) -> list[Assessment]:
    """Train DE's and CreDRO's members on fashion-mini, compare four methods, write table and figures to ``out``.

    A demo that was interrupted goes on where it stopped.
    """
    started = time.monotonic()
    whole, test = load("fashion-mini", split="train"), load("fashion-mini", split="test")
    train = whole.subset(limit(len(whole), samples, 0))
    sets = others(test)
    recipe = PRESETS["fashion"].with_(**({} if epochs is None else {"epochs": epochs}))
    say(f"{len(train)} training and {len(test)} test images of Fashion-MNIST, {members} members a run, one recipe")
    assessments: list[Assessment] = []
    uncertainty: dict[str, dict[str, Any]] = {}
    curves = {}
    for method, readings in TRAINED.items():
        say(f"training {members} members for {' and '.join(readings)} ...")
        ensemble: Ensemble = fit(
            "cnn",
            train,
            method=method,
            members=members,
            recipe=recipe,
            out=out / method,
            progress=progress,
            share=[out / other for other in TRAINED],  # CreDRO's last member sees whole batches: it is one of DE's
        )
        assessments.append(assess(ensemble, test, sets, methods=readings))
        for name in readings:
            reader = ensemble.read_as(name)
            found = {label: reader.predict(data) for label, data in {"test": test, **sets}.items()}
            uncertainty[name] = {label: p.epistemic for label, p in found.items()}
            curves[name] = accuracy_rejection(found["test"].label == test.labels, uncertainty[name]["test"])
            if name == "credro":
                write_report(out / "report.html", reader, test, ood=sets, name="demo")
                gallery(
                    test.batch(torch.arange(len(test))), found["test"], test.labels, test.classes, out / "gallery.png"
                )
    densities(uncertainty, "test", out / "densities.png")
    accuracy_rejection_curves(curves, out / "accuracy_rejection.png")
    write_json(out / "results.json", [a.to_dict() for a in assessments])
    say("")
    say(layout(assessments))
    say("")
    say(f"a page to look at: {out / 'report.html'}")
    say(f"figures: {', '.join(str(out / f) for f in ('densities.png', 'accuracy_rejection.png', 'gallery.png'))}")
    say(f"numbers: {out / 'results.json'}   ({time.monotonic() - started:.0f} s)")
    return assessments
