"""One thread for all tests: they are many small problems, and threads that wait for each other only slow them down."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

torch.set_num_threads(1)


class Shown(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys):
    """The command line in this process: exit code, standard output, standard error."""
    from credro.cli.app import run

    def call(*arguments):
        capsys.readouterr()
        code = run([str(a) for a in arguments])
        return Shown(code, *capsys.readouterr())

    return call
