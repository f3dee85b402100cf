"""CreDRO in a training loop of your own: only the loss changes. ``python examples/plain_pytorch.py``

Five small networks on scikit-learn's digits, a few seconds on one core. All that is credro's is ``deltas`` and ``cvar``
while training, and ``Box``, ``epistemic`` and ``accuracy_rejection`` afterwards.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import credro

MEMBERS, EPOCHS, BATCH = 5, 20, 64


def digits(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels (N, 64) in [0, 1] and labels (N,); any tensors of yours will do."""
    data = credro.data.load("digits", split=split)
    return credro.data.to_float(data.batch(torch.arange(len(data)))).flatten(1), data.labels


def train(delta: float, seed: int, x: torch.Tensor, y: torch.Tensor) -> nn.Module:
    """One member: the usual loop, but that the mean of the losses is the mean of the worst ``delta`` of them."""
    torch.manual_seed(seed)  # every member its own start and its own order
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            losses = cross_entropy(net(x[batch]), y[batch], reduction="none")  # (B,): one loss a sample
            optimizer.zero_grad()
            credro.cvar(losses, delta).backward()
            optimizer.step()
    return net.eval()


def main() -> torch.Tensor:
    """Train, read, judge; gives the members' probabilities (M, N, C) of the test set."""
    x, y = digits("train")
    x_test, y_test = digits("test")
    levels = credro.deltas(members=MEMBERS, delta_g=0.5)  # 0.5, 0.625, 0.75, 0.875, 1.0
    nets = [train(delta, seed, x, y) for seed, delta in enumerate(levels)]

    with torch.inference_mode():
        fit = [(net(x).argmax(1) == y).float().mean().item() for net in nets]
        probs = torch.stack([net(x_test).softmax(1) for net in nets])  # (M, N, C)
    print("fit on the training set:", ", ".join(f"{accuracy:.1%}" for accuracy in fit), "(below 98 %: train longer)")

    eu = credro.epistemic(credro.Box.of(probs))  # (N,), nats, exact
    right = probs.mean(0).argmax(1) == y_test
    known, unknown = eu[right].mean(), eu[~right].mean()
    print(f"{right.float().mean():.1%} right; mean EU {known:.3f} where right, {unknown:.3f} where wrong")
    kept = credro.accuracy_rejection(right, eu).accuracy[len(eu) // 5]
    print(f"{kept:.1%} right after the fifth with the largest EU is left unanswered")
    return probs


if __name__ == "__main__":
    main()
