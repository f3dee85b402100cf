"""Install the wheel of a folder in a fresh environment without extras, and see that it works: ``make dist``."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = """
import pathlib, subprocess, sys, tempfile
import numpy as np
import credro

assert "site-packages" in credro.__file__, credro.__file__
one = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])            # two members that are certain of different classes
eu = credro.epistemic(credro.Box.of(one))
assert abs(float(eu[0]) - np.log(2)) < 1e-9, eu         # the box is the whole simplex: from 0 to log 2
data = credro.data.load("fashion-mini", split="test")
assert len(data) > 0

def says(extra, call):
    try:
        call()
    except ImportError as error:
        assert f"credro[{extra}]" in str(error), error
    else:
        raise AssertionError(f"no error without {extra}")

def estimator():
    import credro.sklearn

def tensorboard():
    from credro.training.callbacks import TensorBoard
    TensorBoard()

says("data", lambda: credro.data.load("digits", split="train"))
says("sklearn", estimator)
says("loggers", tensorboard)
with tempfile.TemporaryDirectory() as folder:
    trunk = pathlib.Path(folder)
    (trunk / "config.json").write_text("{}")
    (trunk / "model.safetensors").write_bytes(b"")
    says("transformers", lambda: credro.on(trunk))
done = subprocess.run([sys.executable, "-m", "credro", "list", "nets"], capture_output=True, text=True)
assert done.returncode != 0 and "credro[cli]" in done.stderr, done.stderr
"""


def main(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "src/credro/__init__.py"} <= names, "the sdist is not complete"
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", wheel.resolve()], check=True)
        subprocess.run([python, "-c", CHECK], check=True, cwd=place)
    print(f"{wheel.name}: installs without extras; import, embedded data and epistemic work; errors name the extras")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
