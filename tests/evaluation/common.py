"""An ensemble of linear networks that counts what it is asked, and samples for it."""

import numpy as np
import torch
from scipy.special import softmax
from torch import nn

from credro.data import Data
from credro.ensemble import Ensemble
from credro.methods import make
from credro.training.feed import Inputs

MEMBERS, CLASSES, FEATURES = 4, 2, 3


class Counted(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.weight = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(seed))
        self.calls, self.seen = 0, 0

    def forward(self, x):
        self.calls, self.seen = self.calls + 1, self.seen + len(x)
        return x @ self.weight


def ensemble(method="crewra", temperatures=None):
    nets = [Counted(seed) for seed in range(MEMBERS)]
    made = Ensemble(nets, make(method), Inputs((FEATURES,)), ("no", "yes"), torch.device("cpu"))
    made.temperatures = temperatures or made.temperatures
    return made


def samples(name, count, seed, scale=1.0):
    draw = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(count, FEATURES, generator=draw)
    return Data(name, x, torch.randint(0, CLASSES, (count,), generator=draw), (FEATURES,), ("no", "yes"))


KNOWN, FAR, NEAR = samples("known", 80, 0), samples("far", 50, 1, 3.0), samples("near", 60, 2)


def probs(made, data, temperatures=(1.0,) * MEMBERS):
    logits = [data.samples.double() @ net.weight.double() / t for net, t in zip(made.nets, temperatures, strict=True)]
    return softmax(np.stack([x.numpy() for x in logits]), axis=-1)
