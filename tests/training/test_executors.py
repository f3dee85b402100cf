import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import ClassVar

import pytest
import torch
from torch import nn

from credro.data import Data, as_data
from credro.members import End, Softmax
from credro.members.choice import RESOLVED
from credro.methods import Method
from credro.training import executors
from credro.training.executors import choose, why_not_sent
from credro.training.job import TrainingError
from credro.training.recipe import Recipe
from credro.training.run import Run
from tests.training.common import assert_bitwise, blobs, digits, job_of, small_net, tiny_images, trained, weights


def test_processes_give_bitwise_the_weights_of_one_after_another(tmp_path):
    """resnet8 with augmentation; the kill tests say the same of the MLP. Three members, two workers: one has two."""
    recipe = Recipe(epochs=2, batch_size=16, lr=0.05, augment="crop-flip")
    for executor in ("sequential", "processes"):
        trained("resnet8", tiny_images(), tmp_path / executor, members=3, recipe=recipe, executor=executor, workers=2)
    assert_bitwise(weights(tmp_path / "sequential"), weights(tmp_path / "processes"))
    records = [[Run(tmp_path / e).record(i).train for i in range(3)] for e in ("sequential", "processes")]
    assert records[0] == records[1]


def dies_in_member_one(output, target):
    """A member that takes its process with it, as one that runs out of memory does."""
    if torch.is_grad_enabled() and bool((output.detach().abs() < 1e-30).all()):
        os._exit(7)
    return nn.functional.cross_entropy(output, target, reduction="none")


@dataclass(frozen=True)
class ZeroedSecond(Softmax):
    """Member 1 starts with a last layer of zeros, by which the loss knows it."""

    number: int | None = field(default=None, metadata=RESOLVED)
    kind: ClassVar[str] = "zeroed"

    def member(self, i, members):
        return replace(self, number=i)

    def convert(self, net):
        if self.number == 1:
            nn.init.zeros_(net[-1].weight)
            nn.init.zeros_(net[-1].bias)
        return net


def test_a_process_that_dies_takes_no_other_member_with_it(tmp_path):
    method = Method(head=ZeroedSecond(), readout="mean")
    with pytest.raises(TrainingError, match="member 1: its process ended with exit code 7"):
        trained(
            small_net, blobs(), tmp_path, members=3, method=method, executor="processes", workers=1,
            loss=dies_in_member_one,
        )  # fmt: skip
    assert [Run(tmp_path).is_done(i) for i in range(3)] == [True, False, True]


def test_auto_stacks_small_networks_without_convolutions(tmp_path):
    assert choose(job_of(tmp_path, "mlp", digits(20), members=3), "auto", 2) == "stacked"
    assert choose(job_of(tmp_path, "mlp", digits(20), members=2), "auto", 2) == "sequential"
    assert choose(job_of(tmp_path, "resnet8", tiny_images()), "auto", 2) == "processes"
    assert choose(job_of(tmp_path, "resnet8", tiny_images()), "auto", 1) == "sequential"
    assert choose(job_of(tmp_path, "resnet8", tiny_images(), members=1), "auto", 2) == "sequential"
    assert choose(job_of(tmp_path, "mlp", digits(20), members=1), "auto", 2) == "sequential"
    assert choose(job_of(tmp_path, "mlp", digits(20)), "sequential", 2) == "sequential"


def test_what_cannot_be_sent_is_named(tmp_path):
    data = tiny_images()

    def local():
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(4))

    lazy = Data("lazy", lambda i: data.samples[i], data.labels, data.shape, data.classes)
    assert why_not_sent(job_of(tmp_path, "resnet8", data)) is None
    assert why_not_sent(job_of(tmp_path, "resnet8", lazy)).startswith("the data cannot be sent")
    assert why_not_sent(job_of(tmp_path, "resnet8", data, held_out=lazy)).startswith("held_out cannot be sent")
    assert choose(job_of(tmp_path, "resnet8", lazy), "auto", 2) == "sequential"
    with pytest.raises(ValueError, match="executor='processes': the loss cannot be sent to another process"):
        trained("resnet8", data, tmp_path, executor="processes", loss=lambda o, t: o.sum(1))


SCRIPT = """
    import credro
    from credro.data import load
    credro.fit("cnn", load("digits").subset(range(40)), members=2, recipe=credro.Recipe(epochs=1), workers=2,
               {options} out={out!r}, progress="none")
    print("trained")
"""


def run_script(tmp_path, options):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(options=options, out=str(tmp_path / "run"))))
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)


def test_a_script_without_a_main_guard_is_trained_all_the_same(tmp_path):
    """Workers read the script again and would train in turn; it is said what to do, and trained in this process."""
    ended = run_script(tmp_path, "")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "trained\n"
    assert "put the call under `if __name__ == '__main__':`" in ended.stderr
    assert "Training one member after another" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_order_puts_those_first_that_others_wait_for(tmp_path):
    class Waits(End):
        def member(self, i, members):
            return End() if i == 2 else self

        @property
        def waits_for(self):
            return (2,)

    job = job_of(tmp_path, "mlp", digits(20), members=4, method=Method(stop=Waits()))
    assert executors.order(job) == [2, 0, 1, 3]


def test_a_run_by_processes_goes_on_where_they_cannot_be_had(tmp_path, monkeypatch):
    """As when a script began it and a notebook, whose functions cannot be sent, goes on."""
    options = {"members": 2, "recipe": Recipe(epochs=2, batch_size=16, lr=0.05)}
    trained("resnet8", tiny_images(), tmp_path, executor="processes", **options)
    wanted = weights(tmp_path)
    shutil.rmtree(tmp_path / "members" / "01")
    monkeypatch.setattr(executors, "why_not_sent", lambda _: "make_net cannot be sent")
    with pytest.warns(UserWarning, match="make_net cannot be sent.*Training one member after another"):
        trained("resnet8", tiny_images(), tmp_path, executor="auto", threads=0, quiet=False, **options)
    assert_bitwise(weights(tmp_path), wanted)


@pytest.mark.parametrize("kind", [FunctionType, type])
def test_what_a_prompt_defined_is_not_sent(tmp_path, monkeypatch, kind):
    """Pickle would name it, and a new process would look for it in vain."""
    main = sys.modules["__main__"]
    names: dict = {"__name__": "__main__", "nn": nn}
    code = "def own(): return nn.Linear(6, 3)" if kind is FunctionType else "class own(nn.Module): pass"
    exec(code, names)
    monkeypatch.setattr(main, "own", names["own"], raising=False)
    job = job_of(tmp_path, names["own"], as_data(blobs()), classes=3)
    monkeypatch.setattr(executors, "_no_file", lambda: False)
    assert why_not_sent(job) is None
    monkeypatch.setattr(executors, "_no_file", lambda: True)
    assert "own was defined in a notebook or at a prompt" in why_not_sent(job)
