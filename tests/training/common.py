"""What the tests of the training engine share. Everything is at the top of a module: it must travel to processes."""

import warnings

import torch
from safetensors.torch import load_file
from torch import nn

from credro.data import Data, load
from credro.ensemble import fit
from credro.methods import make
from credro.training.feed import Inputs
from credro.training.job import Job
from credro.training.recipe import Recipe
from credro.training.run import Run
from credro.training.train import net_factory


def digits(count=200):
    return load("digits").subset(range(count))


def tiny_images(count=48, size=12, classes=4, channels=3):
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(count) % classes
    samples = torch.randint(0, 200, (count, channels, size, size), generator=generator, dtype=torch.uint8)
    samples += (labels * 15).to(torch.uint8)[:, None, None, None]
    return Data("tiny", samples, labels, tuple(samples.shape[1:]), tuple("abcdef"[:classes]))


def blobs(count=64, features=6, classes=3, seed=0):
    """A table: one Gaussian cloud a class, as (x, y)."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % classes
    centres = 2 * torch.randn(classes, features, generator=generator)
    return centres[y] + torch.randn(count, features, generator=generator), y


def small_net():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def trained(net, data, out=None, *, members=2, method="credro", quiet=True, **options):
    """``fit`` as the tests want it: one thread, no display, no advice on how well the members fitted."""
    recipe = options.pop("recipe", None) or Recipe(epochs=2, batch_size=16, lr=0.05)
    options = {"executor": "sequential", "threads": 1, "device": "cpu", "progress": "none", **options}
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", UserWarning)
        return fit(net, data, method=method, members=members, recipe=recipe, out=out, **options)


def job_of(folder, net, data, *, method="credro", members=2, recipe=None, classes=None, **options):
    """A job without a run started."""
    classes = classes or len(data.classes)
    factory, _ = net_factory(net, classes, data.shape)
    chosen = make(method) if isinstance(method, str) else method
    where = torch.device("cpu")
    recipe = recipe or Recipe(epochs=2, batch_size=16, lr=0.05)
    return Job(Run(folder), factory, data, Inputs.of(data), chosen, members, recipe, classes, where, 1, **options)


def weights(folder):
    """Every member's final weights, by member and name."""
    run = Run(folder)
    return {
        f"{i}.{name}": tensor for i in range(run.config().members) for name, tensor in load_file(run.weights(i)).items()
    }


def assert_bitwise(left, right):
    assert left.keys() == right.keys()
    different = [name for name in left if not torch.equal(left[name], right[name])]
    assert not different, f"differ: {different}"
