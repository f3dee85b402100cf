import json
import re

import numpy as np
import pytest
from PIL import Image

from credro.cli.app import run as credro
from credro.data import SOURCES
from tests.data.layouts import images, write_image


@pytest.fixture
def run(capsys):
    def call(*arguments, code=0):
        assert credro(["data", *(str(a) for a in arguments)]) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    return call


def test_list_names_every_set(run):
    text = run("list")
    for name, source in SOURCES.items():
        assert re.search(rf"^{name} ", text, re.MULTILINE)
        assert source.page in text


def test_show_images(run, tmp_path):
    for i, pixels in enumerate(images(5, 8, 9)):
        write_image(tmp_path / "set" / "ab"[i % 2] / f"{i}.png", pixels)
    sheet = tmp_path / "sheet.png"
    text = run("show", tmp_path / "set", "--sheet", sheet)
    assert "samples  5, held in memory" in text
    assert "shape    (3, 8, 9), uint8" in text
    assert "classes  2" in text
    assert re.search(r"3  a\n\s+2  b", text)
    assert Image.open(sheet).size[0] > 9
    assert "samples  5, read from files" in run("show", tmp_path / "set", "--set", "lazy=true", "--set", "size=[4,4]")


def test_show_table_with_groups(run, tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, x=np.ones((4, 2)), y=np.array([0.5, 1.5, 2, 2]), site=np.array(["a", "b", "b", "b"]))
    text = run("show", path, "--set", "group=site")
    assert "labels   0.5 to 2, mean 1.5 (regression)" in text
    assert re.search(r"groups   2\n\s+1  a\n\s+3  b", text)


def test_show_for_a_program(run):
    known = json.loads(run("show", "digits", "--split", "test", "--json"))
    assert (known["name"], known["samples"], known["shape"]) == ("digits", 500, [1, 8, 8])
    assert list(known["classes"]) == list("0123456789")
    assert sum(known["classes"].values()) == 500


def test_without_a_command_the_help(run):
    assert run() == run("--help")


def test_show_by_name_and_split(run):
    text = run("show", "digits", "--split", "test")
    assert "samples  500" in text
    assert len(re.findall(r"^  +\d+  \d$", text, re.MULTILINE)) == 10


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "cifra10"), 1, "did you mean 'cifar10'?"),
        (("show", "mnist", "--root", "/nowhere"), 1, "credro data get mnist"),
        (("show", "digits", "--set", "size"), 2, "--set takes NAME=VALUE, got 'size'"),
        (("show", "digits", "--set", "size=3"), 1, "'digits' has no option 'size'"),
        (("get", "camelyon17"), 1, "get it from https://wilds"),
        (("get", "cifra10"), 2, "did you mean 'cifar10'?"),
        (("get",), 2, "Missing argument 'NAME'; see credro data get --help"),
    ],
)
def test_errors_are_one_line(run, arguments, code, message):
    text = run(*arguments, code=code)
    assert text.startswith("credro: ")
    assert message in text
    assert text.count("\n") == 1


def test_get_prints_where(run, tmp_path, monkeypatch):
    import credro.data.download as download

    def fake(name, root, *, progress, source):
        progress("f", 1, 2)
        return [root / name]

    monkeypatch.setattr(download, "get", fake)
    assert str(tmp_path / "mnist") in run("get", "mnist", "--root", tmp_path).replace("\n", "")
