"""A run is locked on every system: also where ``fcntl`` does not exist."""

import subprocess
import sys
import textwrap

import pytest

from credro.training.run import Run, RunError

BLOCKED = """
    import os, sys, warnings
    sys.modules["fcntl"] = None  # as on a system that has none: importing it is an ImportError
    warnings.simplefilter("ignore")
    import torch
    import credro
    from credro.training.run import Run, RunError
    folder = sys.argv[1]
"""
FIT = """
    x, y = torch.randn(60, 4), torch.arange(60) % 3
    recipe = credro.Recipe(epochs=2, batch_size=32)
    for members in (2, 2):  # anew, and once more over what is there
        credro.fit("mlp", (x, y), members=members, recipe=recipe, out=folder, progress="none", executor="sequential")
    print(credro.load(folder).predict(x).probs.shape)
"""
DIE = """
    with Run(folder).lock():
        os._exit(9)
"""
TWICE = """
    with Run(folder).lock():  # the one that died let go of it
        try:
            with Run(folder).lock():
                print("both")
        except RunError as error:
            print(error)
    with Run(folder).lock():
        print("free")
"""


def without_fcntl(code, folder):
    script = textwrap.dedent(BLOCKED) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=120, check=False
    )


def test_fit_and_load_do_without_fcntl(tmp_path):
    ended = without_fcntl(FIT, tmp_path / "run")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "torch.Size([2, 60, 3])\n"


def test_a_process_that_died_without_fcntl_leaves_the_run_free_and_one_that_lives_does_not(tmp_path):
    assert without_fcntl(DIE, tmp_path).returncode == 9
    ended = without_fcntl(TWICE, tmp_path)
    assert ended.returncode == 0, ended.stderr
    refused, free = ended.stdout.splitlines()
    assert "is in use by another process (process " in refused
    assert free == "free"


def test_members_are_locked_by_themselves(tmp_path):
    run = Run(tmp_path)
    with run.lock("members/00/lock"):
        one, other = run.lock("members/01/lock"), run.lock("members/01/lock", wait=0.2)
        with one, pytest.raises(RunError, match="in use by another process"), other:
            pass
    with run.lock("members/01/lock"):
        pass
