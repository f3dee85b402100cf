"""``import credro`` stays light: torch and numpy, nothing else that is heavy, and hardly any time of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "IPython",
    "PIL",
    "hypothesis",
    "joblib",
    "kornia",
    "matplotlib",
    "onnx",
    "pandas",
    "plotly",
    "pyarrow",
    "pytest",
    "ray",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "torchvision",
    "typer",
}
LEVEL_ONE = "credro.epistemic(credro.Box.of([[[0.2, 0.8]], [[0.5, 0.5]]])); credro.lower_entropy; credro.decide"
"""What someone who has an ensemble's probabilities needs."""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("use", ["credro.__version__", LEVEL_ONE])
def test_nothing_heavy_but_torch_and_numpy(use):
    modules = "sorted({name.split('.')[0] for name in sys.modules})"
    alone = set(json.loads(run(f"import sys, json, torch, numpy; print(json.dumps({modules}))")))
    ours = set(json.loads(run(f"import sys, json, torch, numpy, credro; {use}; print(json.dumps({modules}))")))
    assert "credro" in ours
    assert not HEAVY & (ours - alone)


def test_import_is_quick():
    """Import after torch, so that only our own part is measured; the best of several runs, so that load is not."""
    code = "import time, torch; t = time.perf_counter(); import credro; {use}; print(time.perf_counter() - t)"
    for use in ("credro.__version__", "credro.Box, credro.epistemic, credro.decide"):
        assert min(float(run(code.format(use=use))) for _ in range(4)) < 0.3


def test_import_adds_little_to_that_of_torch():
    """The same from outside: the whole process with and without credro, in turns."""
    code = "import time; t = time.perf_counter(); import {what}; print(time.perf_counter() - t)"
    times = {what: [] for what in ("torch", "torch, credro")}
    for _ in range(4):
        for what, found in times.items():
            found.append(float(run(code.format(what=what))))
    assert min(times["torch, credro"]) - min(times["torch"]) < 0.3
