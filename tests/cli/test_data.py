import re

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from credro.cli.data import build
from credro.data import SOURCES
from tests.data.layouts import images, write_image


def run(*arguments, code=0):
    result = CliRunner().invoke(build(), [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_list_names_every_set():
    text = run("list")
    for name, source in SOURCES.items():
        assert re.search(rf"^{name} ", text, re.MULTILINE)
        assert source.page in text


def test_show_images(tmp_path):
    for i, pixels in enumerate(images(5, 8, 9)):
        write_image(tmp_path / "set" / "ab"[i % 2] / f"{i}.png", pixels)
    sheet = tmp_path / "sheet.png"
    text = run("show", tmp_path / "set", "--sheet", sheet)
    assert "samples  5, held in memory" in text
    assert "shape    (3, 8, 9), uint8" in text
    assert "classes  2" in text
    assert re.search(r"3  a\n\s+2  b", text)
    assert Image.open(sheet).size[0] > 9
    assert "samples  5, read from files" in run("show", tmp_path / "set", "--set", "lazy=True", "--set", "size=(4,4)")


def test_show_table_with_groups(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, x=np.ones((4, 2)), y=np.array([0.5, 1.5, 2, 2]), site=np.array(["a", "b", "b", "b"]))
    text = run("show", path, "--set", "group=site")
    assert "labels   0.5 to 2, mean 1.5 (values)" in text
    assert re.search(r"groups   2\n\s+1  a\n\s+3  b", text)


def test_show_by_name_and_split():
    text = run("show", "digits", "--split", "test")
    assert "samples  500" in text
    assert len(re.findall(r"^  +\d+  \d$", text, re.MULTILINE)) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "cifra10"), "did you mean 'cifar10'?"),
        (("show", "mnist", "--root", "/nowhere"), "credro data get mnist"),
        (("show", "digits", "--set", "size"), "--set must be name=value, got 'size'"),
        (("show", "digits", "--set", "size=3"), "'digits' has no option 'size'"),
        (("get", "camelyon17"), "get it from https://wilds"),
        (("get", "cifra10"), "name must be one of"),
    ],
)
def test_errors_are_one_message(arguments, message):
    text = run(*arguments, code=1)
    assert text.startswith("Error: ")
    assert message in text
    assert "Traceback" not in text


def test_get_prints_where(tmp_path, monkeypatch):
    import credro.data.download as download

    def fake(name, root, *, progress, source):
        progress("f", 1, 2)
        return [root / name]

    monkeypatch.setattr(download, "get", fake)
    assert str(tmp_path / "mnist") in run("get", "mnist", "--root", tmp_path).replace("\n", "")
