"""The loggers write what the run records.

TensorBoard and MLflow themselves run where they are installed. The calls are checked everywhere, on stand-ins that have
of the packages what the loggers use; so are those of the example for Weights & Biases, which is not run for real.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from credro.training import _loggers
from credro.training.callbacks import MLflow, TensorBoard
from credro.training.run import History, Run
from tests.training.common import small_net
from tests.training.test_callbacks import RECIPE, run_with

EXAMPLE = Path(__file__).parents[2] / "examples" / "wandb_callback.py"
NAMES = ("loss", "accuracy", "lr", "seconds")


def recorded(folder):
    """{"member_00/loss": [(1, value), ...]}, from the run's files."""
    return {
        f"member_{member:02d}/{name}": [(e.epoch, getattr(e, name)) for e in entries]
        for member in range(2)
        for entries in [History(Run(folder).member(member) / "history.jsonl").read()]
        for name in NAMES
    }


class Calls:
    """Takes any call, and keeps it."""

    def __init__(self):
        self.made = []

    def __getattr__(self, name):
        return lambda *args, **named: self.made.append((name, args, named))

    def of(self, name):
        return [(args, named) for n, args, named in self.made if n == name]


def grouped(triples):
    found = {}
    for name, epoch, value in triples:
        found.setdefault(name, []).append((epoch, value))
    return found


def stand_in(monkeypatch, name, **content):
    module = ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_loggers, "_needs", lambda package: None)


def test_a_package_that_is_missing_is_said_at_once(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for logger, package in ((TensorBoard, "tensorboard"), (MLflow, "mlflow")):
        with pytest.raises(ImportError, match=rf"{package} is not installed: pip install 'credro\[loggers\]'"):
            logger()


def test_calls_of_tensorboard(tmp_path, monkeypatch):
    calls, folders = Calls(), []
    stand_in(monkeypatch, "torch.utils.tensorboard", SummaryWriter=lambda folder: folders.append(folder) or calls)
    run_with(tmp_path / "run", TensorBoard())
    assert folders == [str(tmp_path / "run" / "tensorboard")]
    assert grouped((n, e, v) for (n, v, e), _ in calls.of("add_scalar")) == recorded(tmp_path / "run")
    assert calls.made[-1][0] == "close"


@pytest.mark.parametrize("fails", [False, True])
def test_calls_of_mlflow(tmp_path, monkeypatch, fails):
    class Client(Calls):
        def get_experiment_by_name(self, name):
            return None

        def create_experiment(self, name):
            return f"number of {name}"

        def create_run(self, number, run_name):
            assert (number, run_name) == ("number of mine", "run")
            return SimpleNamespace(info=SimpleNamespace(run_id="id"))

    client = Client()
    stand_in(monkeypatch, "mlflow", MlflowClient=lambda tracking_uri: client)
    if fails:
        with pytest.raises(RuntimeError):
            run_with(tmp_path / "run", MLflow("mine"), recipe=RECIPE.with_(lr=1e30))
    else:
        run_with(tmp_path / "run", MLflow("mine"))
        metrics = [(args, named["step"]) for args, named in client.of("log_metric")]
        assert {args[0] for args, _ in metrics} == {"id"}
        assert grouped((args[1], step, args[2]) for args, step in metrics) == recorded(tmp_path / "run")
    params = {key: value for (_, key, value), _ in client.of("log_param")}
    assert (params["method"], params["members"], params["lr"]) == ("credro", 2, 1e30 if fails else 0.05)
    assert client.made[-1] == ("set_terminated", ("id", "FAILED" if fails else "FINISHED"), {})


def test_calls_of_the_example_for_weights_and_biases(tmp_path, monkeypatch):
    calls, given = Calls(), {}
    stand_in(monkeypatch, "wandb", init=lambda **init: given.update(init) or calls)
    spec = importlib.util.spec_from_file_location("wandb_callback", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    run_with(tmp_path, example.WeightsAndBiases(project="mine"), net=small_net)
    assert (given["project"], given["config"]) == ("mine", Run(tmp_path).config().to_json())
    rows = [row for (row,), _ in calls.of("log")]
    triples = []
    for row in rows:
        (axis,) = [name for name in row if name.endswith("/epoch")]
        triples += [(name, row[axis], value) for name, value in row.items() if name != axis]
    assert grouped(triples) == recorded(tmp_path)
    assert calls.made[-1] == ("finish", (), {"exit_code": 0})


def test_tensorboard_itself_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run_with(tmp_path / "run", TensorBoard(tmp_path / "events"))
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    wanted = recorded(tmp_path / "run")
    assert sorted(events.Tags()["scalars"]) == sorted(wanted)
    for name, pairs in wanted.items():
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert [step for step, _ in found] == [step for step, _ in pairs]
        assert [value for _, value in found] == pytest.approx([value for _, value in pairs], rel=1e-6)


def test_mlflow_itself_reads_what_was_written(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow 3 wants a database, which mlflow-skinny lacks
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    uri = (tmp_path / "mlruns").as_uri()
    logger = MLflow("mine", tracking_uri=uri, name="first")
    run_with(tmp_path / "run", logger)
    client = mlflow.MlflowClient(tracking_uri=uri)
    run = client.get_run(logger.run_id)
    assert (run.info.status, run.info.run_name, run.data.params["members"]) == ("FINISHED", "first", "2")
    for name, pairs in recorded(tmp_path / "run").items():
        found = sorted((m.step, m.value) for m in client.get_metric_history(logger.run_id, name))
        assert torch.allclose(torch.tensor(found, dtype=torch.float64), torch.tensor(pairs, dtype=torch.float64))
