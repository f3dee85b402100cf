import re
import sys
from types import SimpleNamespace

import pytest

from credro.training import progress
from credro.training.loop import Progress
from credro.training.progress import Display
from credro.training.recipe import Recipe
from tests.training.common import digits, trained


def test_plain_lines_say_member_epoch_loss_accuracy_and_time_left(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with Display(2, 3, mode="plain") as display:
        display(Progress(1, 1, 3, 0.5, 0.75, 0.1))
        display(Progress(0, 3, 3, 0.25, 1.0, 0.1, done=True))
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"member 1: epoch 1/3, loss 0\.5000, accuracy 75\.0% \| all members: 1/6 epochs, \d+ s left", first
    )
    assert second.startswith("member 0: epoch 3/3, loss 0.2500, accuracy 100.0% | all members: 2/6 epochs")


def test_plain_lines_are_few(capsys):
    with Display(1, 100, mode="plain") as display:
        for epoch in range(1, 101):
            display(Progress(0, epoch, 100, 0.5, 0.75, 0.1, done=epoch == 100))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_member_that_stops_early_counts_in_full(capsys):
    with Display(1, 10, mode="plain") as display:
        display(Progress(0, 4, 10, 0.5, 0.75, 0.1, done=True))
        assert display.count == 7  # one epoch, and the six that need no training


def test_the_time_left_is_at_the_speed_of_what_was_trained_here(monkeypatch):
    """Of 40 epochs 20 were done elsewhere, and a member that stops is spared 6: neither makes the others faster."""
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    display = Display(4, 10, done=20, mode="none")
    for epoch in range(1, 5):
        clock[0] += 3.0
        display(Progress(2, epoch, 10, 0.5, 0.75, 3.0, done=epoch == 4))
    assert display.count == 30
    assert display._time_left() == "30 s"  # ten epochs of three seconds


def test_members_of_other_runs_count_as_done(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    options = {"recipe": Recipe(epochs=3, batch_size=16, lr=0.05), "method": "de"}
    trained("mlp", digits(40), tmp_path / "a", members=2, **options)
    capsys.readouterr()
    trained("mlp", digits(40), tmp_path / "b", members=3, reuse=[tmp_path / "a"], progress="plain", **options)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("member 2")]
    assert [line.split("all members: ")[1].split(",")[0] for line in lines] == [
        "7/9 epochs",
        "8/9 epochs",
        "9/9 epochs",
    ]


def test_auto_is_plain_without_a_terminal_and_none_is_silent(capsys):
    assert Display(1, 1).mode == "plain"
    trained("mlp", digits(40), progress="none")
    assert capsys.readouterr().err == ""
    trained("mlp", digits(40), progress="auto")
    assert "all members: 4/4 epochs" in capsys.readouterr().err


def test_a_resumed_run_counts_what_its_checkpoints_hold(tmp_path, capsys):
    """Epochs that were recorded after the last checkpoint are trained again, and must not count twice."""
    from credro.training.loop import Trainer
    from tests.training.common import job_of

    recipe = Recipe(epochs=4, batch_size=16, lr=0.05)
    trained("mlp", digits(40), tmp_path / "reference", recipe=recipe, members=1)
    folder = tmp_path / "run"
    trainer = Trainer(job_of(folder, "mlp", digits(40), recipe=recipe, members=1, checkpoint_seconds=1000.0), 0)
    trainer.train_epoch(lambda: True)
    trainer._save()
    trainer.train_epoch(lambda: True)  # recorded, but not saved
    trained("mlp", digits(40), folder, recipe=recipe, members=1, progress="plain")
    assert "all members: 4/4 epochs, 0 s left" in capsys.readouterr().err


def test_the_bar_on_a_terminal(capsys):
    pytest.importorskip("rich")
    with Display(2, 3, mode="bar") as display:
        display(Progress(1, 1, 3, 0.5, 0.75, 0.1))
        display(Progress(0, 1, 3, 0.25, 1.0, 0.1))
    said = capsys.readouterr().err
    assert "2/6 epochs" in said
    assert "#0 0.250 100%" in said


def test_unknown_modes_are_named():
    with pytest.raises(ValueError, match="progress must be one of auto, bar, plain, none, got 'loud'"):
        Display(1, 1, mode="loud")


class Handle:
    """Stands for IPython's: what a notebook would be sent."""

    def __init__(self):
        self.sent = []

    def display(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.sent.append(bundle)
        return self

    def update(self, bundle, *, raw):
        assert raw
        self.sent.append(bundle)


@pytest.fixture
def handle(monkeypatch):
    found = Handle()
    shell = SimpleNamespace(kernel=object())
    display = SimpleNamespace(display=found.display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


def test_a_notebook_gets_one_output_and_few_changes(handle, capsys):
    with Display(1, 500) as display:
        assert display.mode == "notebook"
        display.say("a <b>note</b>")
        for epoch in range(1, 501):
            display(Progress(0, epoch, 500, 0.5, 0.75, 0.0, done=epoch == 500))
    assert 2 <= len(handle.sent) < 10
    assert handle.sent[0]["text/plain"] == "0/500 epochs, starting"
    assert handle.sent[-1]["text/plain"] == "500/500 epochs, in 0 s  #0 0.500 75%\na <b>note</b>"
    assert "<div>a &lt;b&gt;note&lt;/b&gt;</div>" in handle.sent[-1]["text/html"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("mode", "shown"), [("auto", "notebook"), ("bar", "notebook"), ("plain", "plain")])
def test_what_is_asked_for_is_shown_in_a_notebook(handle, mode, shown):
    assert Display(1, 1, mode=mode).mode == shown


def test_ipython_in_a_terminal_is_no_notebook(handle, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    assert Display(1, 1).mode == "plain"


def test_what_is_said_is_a_line_elsewhere(capsys):
    for mode in ("plain", "bar", "none"):
        with Display(1, 1, mode=mode) as display:
            display.say("one [after] another")
    assert capsys.readouterr().err.count("one [after] another") == 2
