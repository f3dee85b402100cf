"""Kill -9 at any moment: what was trained is not lost, and the run ends with the weights of an undisturbed one."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch._dynamo

from credro._records import RecordError
from credro.training.files import read_facts, write_tensors
from credro.training.recipe import Recipe
from credro.training.records import Epoch, Execution
from credro.training.run import History, NotARun, Run, RunError
from tests.training.common import assert_bitwise, digits, small_net, tiny_images, trained, weights

# Processes forked from a server that has imported torch but never used it: they start in no time, so kills meet
# training and not imports.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.training.test_resume"])

RECIPES = {
    "mlp": Recipe(epochs=25, batch_size=16, lr=0.05, clip=1.0),
    "cnn": Recipe(epochs=10, batch_size=16, lr=0.05, optimizer="adamw", augment="crop-flip"),
    "early": Recipe(epochs=60, batch_size=16, lr=0.003, optimizer="adamw", early_stop=8),
}


def run_it(net, out, executor, members):
    """What a user's script does: the same call starts a run and goes on with it. Every epoch is a checkpoint."""
    options = {"executor": executor, "workers": 2, "checkpoint_seconds": 0.0}
    if net == "early":  # labels that cannot be learnt but by heart: the best epoch is long past when a member stops
        options["held_out"] = digits(400).subset(range(300, 400))
        data = digits(120)
        data = data.relabel(torch.where(torch.arange(120) % 3 == 0, (data.labels + 1) % 10, data.labels))
    else:
        data = digits(120) if net == "mlp" else tiny_images(64, 8)
    trained("cnn" if net == "cnn" else "mlp", data, out, members=members, recipe=RECIPES[net], **options)


def begin(*args):
    process = SERVER.Process(target=run_it, args=args)
    process.start()
    return process


def ended_well(process):
    process.join(300)
    return process.exitcode == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Folder of an undisturbed run, and the seconds it took; each is trained once."""
    known = {}

    def get(net, executor, members=2):
        if (net, executor, members) not in known:
            folder, started = tmp_path_factory.mktemp("whole"), time.monotonic()
            assert ended_well(begin(net, folder, executor, members))
            known[net, executor, members] = folder, time.monotonic() - started
        return known[net, executor, members]

    return get


def processes():
    """Parent of every living process, from the system's own table. One that has ended and waits to be read is dead."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    return parents


def children_of(pid):
    return [child for child, parent in processes().items() if parent == pid]


def outlive(pids, seconds):
    """Those of ``pids`` that have not ended by themselves within ``seconds``: a worker may still be importing torch."""
    until = time.monotonic() + seconds
    while (living := processes().keys() & pids) and time.monotonic() < until:
        time.sleep(0.05)
    return living


def epochs_recorded(folder):
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("members/*/history.jsonl"))


def kill_and_resume(args, kills, least, longest, seed):
    """Kill -9 at random moments until ``kills`` have met a living process or it is done; then let it end.

    A busy machine becomes idle: a run that was done before ``least`` kills is begun anew, with moments half as long.
    Workers take seconds to start, so with ``processes`` the clock starts with the first epoch that they record.
    Returns the number of kills and the children that the killed left behind.
    """
    moments, folder = random.Random(seed), args[1]
    for _ in range(8):
        met, left = 0, []
        while met < kills:
            process, before = begin(*args), epochs_recorded(folder)
            if args[2] == "processes":
                until = time.monotonic() + 60
                while process.is_alive() and epochs_recorded(folder) <= before and time.monotonic() < until:
                    time.sleep(0.01)
            process.join(moments.uniform(0, longest))
            if process.exitcode is not None:
                break
            children = children_of(process.pid)
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:  # it was done in this very moment
                break
            left += children
            process.join()
            met += 1
        assert ended_well(begin(*args))
        if met >= least:
            return met, left
        longest /= 2
        shutil.rmtree(folder)
    raise AssertionError(f"only {met} of {least} kills met a living process")


@pytest.mark.parametrize(
    ("executor", "net", "kills", "longest"),
    [
        ("sequential", "mlp", 3, 0.5),
        ("sequential", "cnn", 3, 0.5),
        ("stacked", "mlp", 3, 0.5),
        ("sequential", "early", 3, 0.5),
        ("stacked", "early", 3, 0.5),
        ("processes", "mlp", 2, 0.1),  # its workers take seconds to start, every time
        ("processes", "early", 2, 0.1),
    ],
)
def test_killed_and_resumed_is_bitwise_the_undisturbed_run(tmp_path, undisturbed, executor, net, kills, longest):
    # One after another and by processes must give the same weights, so one undisturbed run serves both.
    whole, seconds = undisturbed(net, "stacked" if executor == "stacked" else "sequential")
    met, left = kill_and_resume((net, tmp_path, executor, 2), kills, 2, longest * seconds, seed=3)
    assert_bitwise(weights(whole), weights(tmp_path))
    for member in range(2):
        entries = History(Run(tmp_path).member(member) / "history.jsonl").read()
        trained_there = Run(whole).record(member).epochs
        assert [e.epoch for e in entries] == list(range(1, trained_there + 1))
        assert trained_there == RECIPES[net].epochs or net == "early"
        timeless = [replace(Run(f).record(member), seconds=0.0) for f in (whole, tmp_path)]
        assert timeless[0] == timeless[1]
        if net == "early":  # the case is worth something: weights are those of an epoch before the last
            assert timeless[0].stopped_early
            assert timeless[0].best_epoch < trained_there < RECIPES[net].epochs
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*state.safetensors"))
    if executor == "processes":
        assert len(left) >= met  # every kill left workers behind, two, or one where only one member was not done ...
        assert not outlive(set(left), 60)  # ... that ended by themselves


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "longest"), [("sequential", 0.12), ("stacked", 0.12), ("processes", 0.03)])
@pytest.mark.parametrize("net", ["mlp", "early"])
def test_twenty_kills_of_three_members(tmp_path, undisturbed, net, executor, longest):
    whole, seconds = undisturbed(net, "stacked" if executor == "stacked" else "sequential", 3)
    met, _ = kill_and_resume((net, tmp_path, executor, 3), 20, 10, longest * seconds, seed=20)
    print(f"{executor}: {met} kills met a living process; an undisturbed run takes {seconds:.1f} s")
    assert_bitwise(weights(whole), weights(tmp_path))


def test_a_second_process_on_a_run_is_refused(tmp_path):
    run = Run(tmp_path)
    with run.lock(), pytest.raises(RunError, match=rf"in use by another process \(process {os.getpid()}\)"):
        trained("mlp", digits(40), tmp_path)
    assert not (tmp_path / "members").exists()
    trained("mlp", digits(40), tmp_path)  # free again


def test_another_configuration_is_refused_and_the_difference_shown(tmp_path):
    data = digits(40)
    trained("mlp", data, tmp_path, recipe=Recipe(epochs=1, lr=0.05))
    before = weights(tmp_path)
    with pytest.raises(RunError) as error:
        trained("mlp", data, tmp_path, recipe=Recipe(epochs=3, lr=0.05), method="de")
    said = str(error.value)
    assert "recipe.epochs: 1 there, 3 now" in said
    assert "method.name: 'credro' there, 'de' now" in said
    assert "recipe.lr" not in said
    with pytest.raises(RunError, match=r"data\.fingerprint"):
        trained("mlp", digits(41), tmp_path, recipe=Recipe(epochs=1, lr=0.05))
    assert_bitwise(before, weights(tmp_path))


def test_a_finished_run_is_not_trained_again(tmp_path):
    trained("mlp", digits(40), tmp_path)
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("weights.safetensors")}
    trained("mlp", digits(40), tmp_path)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("weights.safetensors")} == stamps


def test_auto_goes_on_with_the_executor_and_threads_of_the_start(tmp_path):
    trained("mlp", digits(40), tmp_path, executor="sequential", threads=1)
    ensemble = trained("mlp", digits(40), tmp_path, executor="auto", threads=0, workers=5)
    assert ensemble.run.config().execution == Execution("sequential", 1)


def test_checkpoints_keep_their_distance(tmp_path):
    """With a long distance only the last epoch is saved, and that is removed when the member is done."""
    from credro.training.loop import Trainer
    from tests.training.common import job_of

    for seconds, written in ((1000.0, False), (0.0, True)):
        trainer = Trainer(job_of(tmp_path / str(seconds), "mlp", digits(40), checkpoint_seconds=seconds), 0)
        trainer.train_epoch(lambda: True)
        assert trainer.state_path.exists() == written
    assert read_facts(trainer.state_path)["epoch"] == 1


def test_a_line_cut_off_by_a_kill_does_not_count(tmp_path):
    history = History(tmp_path / "history.jsonl")
    first, second = (Epoch(i, 0.5, 0.75, 0.1, 2.0, notes={"reached": False}) for i in (1, 2))
    lines = "".join(json.dumps(e.to_json()) + "\n" for e in (first, second))
    history.path.write_text(lines + '{"epo')
    assert history.read() == [first, second]
    assert history.keep(1) == [first]
    history.append(second)
    assert history.path.read_text() == lines


def test_half_written_files_are_removed_on_resume(tmp_path):
    part = tmp_path / "members/00/weights.safetensors.99.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half")
    trained("mlp", digits(40), tmp_path)
    assert not part.exists()


def test_a_run_of_another_format_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"format": 99}')
    with pytest.raises(RecordError, match=r"config\.json: format must be 2") as error:
        Run(tmp_path).config()
    assert (error.value.file, error.value.field) == (str(tmp_path / "config.json"), "format")
    with pytest.raises(NotARun, match="is not a run"):
        Run(tmp_path / "nowhere").config()


def test_tied_weights_are_written_once_per_name(tmp_path):
    net = small_net()
    shared = {"a": net[0].weight, "b": net[0].weight}
    write_tensors(tmp_path / "x.safetensors", shared, {"epoch": 3})
    assert read_facts(tmp_path / "x.safetensors") == {"epoch": 3}
    assert read_facts(tmp_path / "none.safetensors") == {}
