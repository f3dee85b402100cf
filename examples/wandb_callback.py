"""Log the training of an ensemble to Weights & Biases: pip install wandb, then python examples/wandb_callback.py.

One run of theirs for the ensemble; the numbers of every member against its own epochs.
"""

from __future__ import annotations

from typing import Any

from credro.data import load
from credro.methods import make
from credro.training.callbacks import Callback, MemberEpoch, RunEnd, RunStart
from credro.training.recipe import Recipe
from credro.training.train import train


class WeightsAndBiases(Callback):
    """What goes to ``wandb.init``, such as project and name, is given to it."""

    def __init__(self, **init: Any) -> None:
        """Imports the package here, so that a missing one is noticed before training."""
        import wandb

        self.wandb, self.init, self.log = wandb, init, None  # type: Any, dict[str, Any], Any

    def on_start(self, start: RunStart) -> None:
        """The recipe and the method become the run's configuration."""
        self.log = self.wandb.init(config=start.config.to_json(), **self.init)
        for member in range(start.config.members):
            # Members train beside each other: every one of them has an axis of its own.
            self.log.define_metric(f"member_{member:02d}/*", step_metric=f"member_{member:02d}/epoch")

    def on_epoch(self, epoch: MemberEpoch) -> None:
        """Loss, accuracy, learning rate and so on."""
        name = f"member_{epoch.member:02d}"
        numbers = {f"{name}/{key}": value for key, value in epoch.numbers.items()}
        self.log.log({**numbers, f"{name}/epoch": epoch.record.epoch})

    def on_end(self, end: RunEnd) -> None:
        """A run that failed says so."""
        self.log.finish(exit_code=1 if end.error else 0)


def main(out: str = "runs/digits", epochs: int = 20, **init: Any) -> None:
    """Train five members on the digits and log them."""
    recipe = Recipe(epochs=epochs, batch_size=32, lr=0.05)
    callbacks = [WeightsAndBiases(**{"project": "credro", **init})]
    train("mlp", load("digits"), make("credro"), members=5, recipe=recipe, out=out, callbacks=callbacks)


if __name__ == "__main__":
    main()
