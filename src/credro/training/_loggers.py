"""Callbacks that hand what members report to TensorBoard and MLflow, where these are installed."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credro.training.callbacks import MemberEpoch, RunEnd, RunStart


def _needs(package: str) -> None:
    """Raise before anything is trained, not when the first epoch is over."""
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"{package} is not installed: pip install 'credro[loggers]'", name=package)


class TensorBoard:
    """Writes event files: ``member_00/loss`` and so on, against the epoch. Look at them with ``tensorboard --logdir``.

    folder: where to; the run's own folder ``tensorboard`` if not given.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        """Raises where the package is not installed."""
        _needs("tensorboard")
        self.folder = folder
        self.writer: Any = None

    def on_start(self, start: RunStart) -> None:
        """Open the files."""
        tensorboard = importlib.import_module("torch.utils.tensorboard")
        self.writer = tensorboard.SummaryWriter(str(self.folder or start.run.folder / "tensorboard"))

    def on_epoch(self, epoch: MemberEpoch) -> None:
        """Write the epoch's numbers."""
        for name, value in epoch.numbers.items():
            self.writer.add_scalar(f"member_{epoch.member:02d}/{name}", value, epoch.record.epoch)

    def on_end(self, end: RunEnd) -> None:
        """Close the files."""
        self.writer.close()


class MLflow:
    """Logs one MLflow run: the recipe as parameters, ``member_00/loss`` and so on as metrics against the epoch.

    Args:
        experiment: its name; made if there is none.
        tracking_uri: where MLflow keeps its runs; its own setting if not given. mlflow-skinny, which the extra brings,
            knows servers and folders (``file:...``); a database needs the whole of mlflow.
        name: of the run; that of its folder if not given.
    """

    def __init__(self, experiment: str = "credro", tracking_uri: str | None = None, name: str | None = None) -> None:
        """Raises where the package is not installed."""
        _needs("mlflow")
        self.experiment, self.tracking_uri, self.name = experiment, tracking_uri, name
        self.client: Any = None
        self.run_id = ""

    def on_start(self, start: RunStart) -> None:
        """Begin a run. A client of its own leaves the user's active run alone."""
        self.client = importlib.import_module("mlflow").MlflowClient(tracking_uri=self.tracking_uri)
        found = self.client.get_experiment_by_name(self.experiment)
        number = found.experiment_id if found else self.client.create_experiment(self.experiment)
        self.run_id = self.client.create_run(number, run_name=self.name or start.run.folder.name).info.run_id
        config = start.config
        about = {"method": config.method["name"], "members": config.members, "data": config.data.name}
        for key, value in {**about, **config.recipe.to_json()}.items():
            self.client.log_param(self.run_id, key, value)

    def on_epoch(self, epoch: MemberEpoch) -> None:
        """Log the epoch's numbers."""
        for name, value in epoch.numbers.items():
            self.client.log_metric(self.run_id, f"member_{epoch.member:02d}/{name}", value, step=epoch.record.epoch)

    def on_end(self, end: RunEnd) -> None:
        """End the run, as finished or as failed."""
        self.client.set_terminated(self.run_id, "FAILED" if end.error else "FINISHED")
