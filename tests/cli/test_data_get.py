"""``credro data get`` itself, against a server on this machine's loopback address."""

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from credro.cli.app import run as credro
from credro.data import SOURCES, load
from credro.data import sources as table
from tests.data.layouts import images, write_idx
from tests.data.serving import serving


@pytest.fixture
def run(capsys):
    def call(*arguments, code=0):
        assert credro(["data", "get", "mnist", *(str(a) for a in arguments)]) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    return call


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    """A small MNIST on a server, and its checksums in the place of the published ones."""
    for stem, n in (("train", 40), ("t10k", 20)):
        write_idx(tmp_path / f"{stem}-images-idx3-ubyte.gz", images(n, 28, 28, 1))
        write_idx(tmp_path / f"{stem}-labels-idx1-ubyte.gz", np.arange(n, dtype=np.uint8) % 10)
    published = {path.name: path.read_bytes() for path in tmp_path.glob("*.gz")}
    sums = {name: hashlib.md5(content).hexdigest() for name, content in published.items()}
    files = tuple(replace(file, md5=sums[file.url.rpartition("/")[2]]) for file in SOURCES["mnist"].files)
    monkeypatch.setitem(table.SOURCES, "mnist", replace(SOURCES["mnist"], files=files))
    with serving({f"/{name}": content for name, content in published.items()}) as server:
        yield server


def test_interrupted_and_taken_up_again(run, mirror, tmp_path):
    root = tmp_path / "root"
    arguments = ("--root", root, "--source", mirror.url)
    mirror.cuts = [5000, 0, 0, 0]  # and the connection does not come back
    assert re.search(r"5000 bytes are kept in .*\.part, and the next try goes on from there", run(*arguments, code=1))
    with pytest.raises(FileNotFoundError):
        load("mnist", root=root)
    mirror.cuts, mirror.requests = [], []
    text = run(*arguments)
    assert mirror.requests[0] == ("/train-images-idx3-ubyte.gz", "bytes=5000-")
    assert [line.rpartition("/")[2] for line in text.split()] == [path.strip("/") for path, _ in mirror.requests]
    assert (len(load("mnist", root=root)), len(load("mnist", split="test", root=root))) == (40, 20)
    mirror.requests = []
    run(*arguments)
    assert mirror.requests == []  # all there, all right: nothing is fetched twice


def test_wrong_bytes_are_thrown_away(run, mirror, tmp_path):
    mirror.files["/train-labels-idx1-ubyte.gz"] += b"x"
    text = run("--root", tmp_path / "root", "--source", mirror.url, code=1)
    assert "md5 is" in text
    assert "thrown away" in text
    assert [path.name for path in (tmp_path / "root").rglob("*.*")] == ["train-images-idx3-ubyte.gz"]


def test_progress_is_shown_on_a_terminal(mirror, tmp_path):
    pty = pytest.importorskip("pty", reason="no terminals of this kind on Windows")
    sums = [file.md5 for file in SOURCES["mnist"].files]
    code = (
        "import sys; from dataclasses import replace; from credro.data import SOURCES; old = SOURCES['mnist']; "
        f"files = tuple(replace(f, md5=m) for f, m in zip(old.files, {sums!r})); "
        "SOURCES['mnist'] = replace(old, files=files); from credro.cli.app import run; sys.exit(run(sys.argv[1:]))"
    )
    ours, theirs = pty.openpty()
    arguments = ["data", "get", "mnist", "--root", str(tmp_path / "root"), "--source", mirror.url]
    done = subprocess.run([sys.executable, "-c", code, *arguments], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode(errors="replace")
    os.close(ours)
    assert done.returncode == 0
    assert "train-images-idx3-ubyte.gz" in shown
    assert re.search(r"(\d+\.\d)/\1 kB", shown)  # all of it
