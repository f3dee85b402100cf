import shutil

import pytest

import credro
from tests.training.common import digits, trained


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A small trained run on digits; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("run")
    trained("mlp", digits(150), folder, members=3, recipe=credro.Recipe(epochs=8, batch_size=32, lr=0.1))
    return folder


@pytest.fixture
def ensemble(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    return credro.load(tmp_path / "run", device="cpu")
