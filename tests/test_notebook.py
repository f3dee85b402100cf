"""In a real Jupyter kernel: the example notebook runs, progress changes one output in place, cells' functions train."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

WHY = "pip install nbclient ipykernel to run notebooks"
nbclient = pytest.importorskip("nbclient", reason=f"nbclient is not installed: {WHY}")
pytest.importorskip("ipykernel", reason=f"ipykernel is not installed: {WHY}")
nbformat = pytest.importorskip("nbformat", reason=f"nbformat is not installed: {WHY}")

STREAMS = ("stdout", "stderr")
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))

CELLS = {
    "ready": """
import warnings

import credro
from torch import nn

warnings.simplefilter("ignore", UserWarning)
data = credro.data.load("digits").subset(range(60))
images = credro.data.load("fashion-mini").subset(range(60))
recipe = credro.Recipe(epochs=3, batch_size=32, lr=0.05)
""",
    "long": """credro.fit("mlp", data, members=2, recipe=recipe.with_(epochs=200));""",
    "cell": """
def make():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1352, 10))

ens = credro.fit(make, images, members=2, recipe=recipe, workers=2)
print(ens.config.execution.executor)
""",
    "refused": """
try:
    credro.fit(make, images, members=2, recipe=recipe, workers=2, executor="processes", progress="none")
except ValueError as error:
    print(error)
""",
    "workers": """
named = credro.fit("cnn", images, members=2, recipe=recipe, workers=2)
print(named.config.execution.executor, len(named.predict(images)))
""",
    "again": """credro.fit("cnn", images, members=2, recipe=recipe, workers=2, out=named.run.folder);""",
    "stopped": """
def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

calls = []

def loss(output, target):
    calls.append(0)
    if len(calls) > 60:
        raise KeyboardInterrupt
    return nn.functional.cross_entropy(output, target, reduction="none")

try:
    credro.fit(flat, images, members=2, recipe=recipe.with_(epochs=200), loss=loss, executor="sequential")
except KeyboardInterrupt:
    pass
""",
    "shown": "named.predict(images)",
    "silent": """credro.fit("mlp", data, members=2, recipe=recipe, progress="none");""",
}


def run(notebook: Any, folder: Path) -> Any:
    """Execute all cells in a kernel of its own; an error in a cell is an error here."""
    resources = {"metadata": {"path": str(folder)}}
    return nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Outputs of the cells above, by name, and the messages that made them."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code.strip()) for code in CELLS.values()])
    done = run(notebook, tmp_path_factory.mktemp("kernel"))
    return {name: cell.outputs for name, cell in zip(CELLS, done.cells, strict=True)}


def bars(outputs):
    return [o["data"] for o in outputs if "<progress" in o.get("data", {}).get("text/html", "")]


def printed(outputs, *streams):
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] in (streams or STREAMS))


def test_progress_is_one_output_that_ends_full(cells):
    (shown,) = bars(cells["long"])  # 400 epochs: neither 400 outputs
    assert len(printed(cells["long"]).splitlines()) < 5  # nor 400 lines
    assert re.match(r"400/400 epochs, in \d+ s  #0 \d\.\d+ \d+%  #1 ", shown["text/plain"])
    assert 'value="400" max="400"' in shown["text/html"]


def test_a_function_of_a_cell_trains_without_processes_and_says_why(cells):
    assert printed(cells["cell"], "stdout") == "sequential\n"
    (shown,) = bars(cells["cell"])
    [note] = [line for line in shown["text/plain"].splitlines() if line.startswith("note: one member after another")]
    assert "since make_net cannot be sent to another process (make was" in note
    assert "defined in a notebook" in note


def test_asked_for_by_name_processes_are_refused_with_the_reason(cells):
    assert "make was defined in a notebook or at a prompt" in printed(cells["refused"])
    assert "or use executor='sequential'" in printed(cells["refused"])


def test_processes_train_in_a_notebook(cells):
    assert printed(cells["workers"], "stdout") == "processes 60\n"
    (shown,) = bars(cells["workers"])
    assert "note:" not in shown["text/plain"]
    assert shown["text/plain"].startswith("6/6 epochs, in ")


def test_nothing_is_shown_where_nothing_is_trained(cells):
    assert bars(cells["again"]) == []
    assert cells["silent"] == []


def test_training_that_is_interrupted_says_where_it_stopped(cells):
    (shown,) = bars(cells["stopped"])
    assert 0 < int(re.match(r"(\d+)/400 epochs, stopped after \d+ s", shown["text/plain"]).group(1)) < 60


def test_a_prediction_shows_itself(cells):
    (shown,) = cells["shown"]
    assert shown["data"]["text/plain"].startswith("Prediction(60 samples, 10 classes, credro (box); mean EU ")
    assert "Ankle boot" in shown["data"]["text/html"]
    assert "tensor" not in shown["data"]["text/html"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(path, tmp_path):
    notebook = nbformat.read(path, 4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "keep outputs out of the tree"
    outputs = [o for cell in run(notebook, tmp_path).cells if cell.cell_type == "code" for o in cell.outputs]
    said = printed(outputs)
    assert "Warning" not in said
    kinds = [set(o.get("data", {})) for o in outputs]
    assert sum("image/png" in kind for kind in kinds) == 1
    html = " ".join(o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {}))
    assert html.count("<svg") == 30 + 15  # ten samples, then the five most doubtful
    assert "Ensemble(credro, 5 members, 10 classes)" in html
    answered, wrong = map(float, re.search(r"answered: ([\d.]+)% of the test digits, ([\d.]+)%", said).groups())
    assert answered > 50
    assert wrong <= 3  # what the threshold promised
    plain = float(re.search(r"without abstaining ([\d.]+)%", said).group(1))
    assert wrong < plain
    assert float(re.search(r"AUROC: ([\d.]+)", said).group(1)) > 0.85


def test_there_is_an_example():
    assert [path.name for path in EXAMPLES] == ["first_notebook.ipynb"]
