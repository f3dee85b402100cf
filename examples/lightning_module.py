"""CreDRO with Lightning: a LightningModule whose training step is ``credro.cvar``.

``pip install lightning``, then ``python examples/lightning_module.py``: five small networks on scikit-learn's digits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import credro


def need_lightning() -> Any:
    """The library, or a message that says what to install."""
    try:
        import lightning
    except ImportError:
        raise SystemExit("this example needs Lightning: pip install lightning") from None
    return lightning


def member_module(base: type[Any]) -> type[Any]:
    """One member as a subclass of ``base``, which is ``lightning.LightningModule``."""

    class Member(base):
        """Minimises the mean of the worst ``delta`` of each batch."""

        def __init__(self, net: nn.Module, delta: float, lr: float = 3e-3) -> None:
            super().__init__()
            self.net, self.delta, self.lr = net, delta, lr

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

        def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
            x, y = batch
            losses = cross_entropy(self(x), y, reduction="none")  # (B,): one loss a sample
            return credro.cvar(losses, self.delta)

        def predict_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
            return self(batch[0]).softmax(1)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=self.lr)

    return Member


def digits(split: str) -> TensorDataset:
    """Pixels (N, 64) in [0, 1] and labels (N,)."""
    data = credro.data.load("digits", split=split)
    return TensorDataset(credro.data.to_float(data.batch(torch.arange(len(data)))).flatten(1), data.labels)


def main(members: int = 5, epochs: int = 20) -> Tensor:
    """Train, read; gives the members' probabilities (M, N, C) of the test set."""
    lightning = need_lightning()
    make = member_module(lightning.LightningModule)
    test = digits("test")
    probs = []
    for seed, delta in enumerate(credro.deltas(members=members, delta_g=0.5)):
        lightning.seed_everything(seed)  # every member its own start and its own order
        module = make(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), delta)
        trainer = lightning.Trainer(max_epochs=epochs, logger=False, enable_checkpointing=False)
        trainer.fit(module, DataLoader(digits("train"), batch_size=64, shuffle=True))
        probs.append(torch.cat(trainer.predict(module, DataLoader(test, batch_size=256))))
    stacked = torch.stack(probs)
    eu = credro.epistemic(credro.Box.of(stacked))
    right = stacked.mean(0).argmax(1) == test.tensors[1]
    known, unknown = eu[right].mean(), eu[~right].mean()
    print(f"{right.float().mean():.1%} right; mean EU {known:.3f} where right, {unknown:.3f} where wrong")
    return stacked


if __name__ == "__main__":
    main()
