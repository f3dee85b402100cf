"""docs/images/method-NAME.png and methods.png: one and the same image, read by all ten methods.

``python scripts/figure_methods.py`` trains six ensembles of five small networks on three kinds of clothes that are hard
to tell apart, one after another under one recipe and one seed. Minutes on one core; a run that was interrupted goes on.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import credro
from credro.credal.sets import Box, CredalSet, Hull
from credro.data import Data
from credro.methods import colour, label
from credro.prediction import Prediction
from credro.report.simplex import polygon, simplex
from credro.report.style import plotting, save

CLASSES = ("Pullover", "Coat", "Shirt")
SAMPLES = 600
RECIPE = credro.Recipe(epochs=20, batch_size=32, lr=0.03, warmup=1)
OPTIONS: dict[str, dict[str, Any]] = {
    "creens": {"alpha": 0.4},  # leaves two of five out; its default, 0, is the hull of all
    "crebnn": {"kl_weight": 0.01},  # at its default, 1, a narrow prior outweighs so few images
}
SMALL = 0.15  # a set smaller than this is drawn once more under a lens
IMAGES = Path("docs/images")


def three(split: str) -> Data:
    """The three classes, numbered 0 to 2."""
    data = credro.data.load("fashion-mini", split=split)
    kinds = torch.tensor([data.classes.index(name) for name in CLASSES])
    some = data.subset(torch.isin(data.labels, kinds).nonzero()[:, 0])
    return some.relabel((some.labels[:, None] == kinds).long().argmax(1), CLASSES)


def read_all(train: Data, test: Data, runs: Path) -> tuple[dict[str, Prediction], torch.Tensor]:
    """Every method's prediction of the test images, and the intervals (M, N, 2, C) of CreDE's members."""
    found: dict[str, Prediction] = {}
    trained: list[credro.Ensemble] = []
    intervals = torch.empty(0)
    for name in credro.methods.METHODS:
        method = credro.methods.make(name, **OPTIONS.get(name, {}))
        alike = next((ens for ens in trained if ens.method.training() == method.training()), None)
        if alike is None:
            started = time.monotonic()
            alike = credro.fit(
                "cnn", train, method=method, members=5, recipe=RECIPE, out=runs / name,
                executor="sequential", threads=1, device="cpu", progress="none",
            )  # fmt: skip
            trained.append(alike)
            fits = ", ".join(f"{r.train.accuracy:.3f}" for r in alike.records if r.train is not None)
            print(f"{name}: right on the training set {fits} ({time.monotonic() - started:.0f} s)")
        ensemble = alike.read_as(method)
        found[name] = ensemble.predict(test)
        if method.head.gives == "bounds":
            intervals = ensemble.probs(ensemble.scores(test))
        right = (found[name].label == test.labels).double().mean()
        print(f"  {name}: {right:.1%} of the test images, mean EU {found[name].epistemic.mean():.3f}")
    return found, intervals


def choose(found: dict[str, Prediction]) -> int:
    """The test image with the highest EU by the mean of its ranks under all ten methods: it favours none of them."""
    ranks = [p.epistemic.argsort(stable=True).argsort().double() for p in found.values()]
    return int(torch.stack(ranks).mean(0).argmax())


def alone(credal_set: CredalSet, n: int) -> CredalSet:
    """Sample n's set."""
    if isinstance(credal_set, Hull):
        return Hull(credal_set.members[:, n])
    return Box(credal_set.lower[n], credal_set.upper[n])


def draw(ax: Any, name: str, prediction: Prediction, n: int, intervals: torch.Tensor) -> None:
    """One method's answer to image n."""
    own = intervals[:, n] if name == "crede" else ()
    fill(ax, name, prediction, n, own, CLASSES)
    what = "mutual information" if prediction.set is None else "EU"
    ax.set_title(f"{label(name)}: {what} {float(prediction.epistemic[n]):.2f} nats")
    if prediction.set is None:
        return
    corners = polygon(alone(prediction.set, n))
    middle, size = (corners.max(0) + corners.min(0)) / 2, float(np.ptp(corners, axis=0).max())
    if size < SMALL:
        lens = ax.inset_axes((0.72, 0.6, 0.34, 0.4))
        fill(lens, name, prediction, n, own, ("", "", ""))
        lens.axis("on")
        lens.set(xticks=[], yticks=[], xlim=middle[0] + [-size, size], ylim=middle[1] + [-size, size])
        lens.spines[:].set_visible(True)
        ax.indicate_inset_zoom(lens, edgecolor="black")


def fill(ax: Any, name: str, prediction: Prediction, n: int, own: Any, names: tuple[str, ...]) -> None:
    """The triangle with all that is in it. own: intervals (M, 2, C) of members that have their own."""
    simplex(
        ax,
        None if prediction.set is None else alone(prediction.set, n),
        probs=prediction.probs[:, n],
        mean=prediction.mean[n],
        names=names,
        colour=colour(name),
    )
    for lower, upper in own:
        ax.fill(*polygon(Box(lower, upper)).T, fc="none", ec="black", lw=0.7, ls=":", label="members' own sets")


def legend(target: Any, axes: list[Any], shade: str, **where: Any) -> None:
    """Every label of ``axes`` once, what is in a method's colour in ``shade``."""
    handles = {text: handle for ax in axes for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    made = target.legend(list(handles.values()), list(handles), **where)
    for handle, text in zip(made.legend_handles, handles, strict=True):
        if text == "credal set":
            handle.set_color(shade)
        elif text.endswith("entropy"):
            handle.set_markerfacecolor(shade)


def main(runs: Path) -> None:
    warnings.simplefilter("ignore", UserWarning)
    train, test = three("train"), three("test")
    train = train.subset(credro.data.limit(len(train), SAMPLES, 0))
    found, intervals = read_all(train, test, runs)
    n = choose(found)
    print(f"test image {n} of {len(test)}, a {CLASSES[int(test.labels[n])].lower()}")
    plt = plotting()
    for name, prediction in found.items():
        figure, ax = plt.subplots(figsize=(3.6, 3.2))
        draw(ax, name, prediction, n, intervals)
        legend(ax, [ax], colour(name), loc="lower left", bbox_to_anchor=(1.0, -0.02))
        save(figure, IMAGES / f"method-{name}.png")
    figure, axes = plt.subplots(3, 4, figsize=(12.4, 8.6))
    for ax, (name, prediction) in zip(list(axes.flat)[1:], found.items(), strict=False):
        draw(ax, name, prediction, n, intervals)
    picture, *others = axes.flat
    picture.imshow(test.batch(torch.tensor([n]))[0, 0].numpy(), cmap="gray_r")
    picture.set_title(f"the image: a {CLASSES[int(test.labels[n])].lower()}")
    picture.axis("off")
    others[-1].axis("off")
    legend(others[-1], others[:-1], "grey", loc="center")
    figure.tight_layout()
    save(figure, IMAGES / "methods.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/figure-methods"))
