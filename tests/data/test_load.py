import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from credro.data import SOURCES, DataNotFound, data_root, load
from credro.data.readers import READERS
from tests.data.layouts import images, write_idx


def write_mnist(root, n):
    write_idx(root / "MNIST/raw/t10k-images-idx3-ubyte.gz", images(n, 28, 28, 1))
    write_idx(root / "MNIST/raw/t10k-labels-idx1-ubyte.gz", np.zeros(n, np.uint8))


def test_root_is_argument_then_environment_then_cache(tmp_path, monkeypatch):
    for n, folder in enumerate(("argument", "environment", "cache/credro", "home/.cache/credro"), 1):
        write_mnist(tmp_path / folder, n)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CREDRO_DATA", str(tmp_path / "environment"))
    assert len(load("mnist", split="test", root=tmp_path / "argument")) == 1
    assert len(load("mnist", split="test")) == 2
    monkeypatch.delenv("CREDRO_DATA")
    assert len(load("mnist", split="test")) == 3
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert len(load("mnist", split="test")) == 4
    assert data_root("~/x") == tmp_path / "home/x"


def test_unknown_name_offers_the_closest(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"called 'cifar_10' \(did you mean 'cifar10'\?\); the names are cifar10, cifar100, .*fashion-mini",
    ):
        load("cifar_10", root=tmp_path)
    with pytest.raises(ValueError, match=r"called 'FMNIST' \(did you mean 'fmnist'\?\)"):
        load("FMNIST", root=tmp_path)
    with pytest.raises(ValueError, match=r"called 'qqqqqqq'; the names are"):
        load("qqqqqqq", root=tmp_path)


def test_unknown_path(tmp_path):
    with pytest.raises(DataNotFound, match=r"nowhere/x\.npz"):
        load(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(DataNotFound, match=r"'x\.csv' was not found; looked for: x\.csv, .*x\.csv"):
        load("x.csv", root=tmp_path)
    (tmp_path / "x.doc").write_text("hello")
    with pytest.raises(ValueError, match=r"must be a folder of images or end in \.npz, \.csv, \.tsv, \.parquet"):
        load(tmp_path / "x.doc")


def test_relative_path_below_root(tmp_path):
    (tmp_path / "mine").mkdir()
    np.savez(tmp_path / "mine" / "a.npz", x=np.ones((2, 2)), y=np.arange(2))
    assert len(load("mine/a.npz", root=tmp_path)) == 2
    assert len(load(str(tmp_path / "mine" / "a.npz"))) == 2


def test_a_path_is_not_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from tests.data.layouts import write_image

    for name in ("a", "b"):
        write_image(tmp_path / "digits" / name / "0.png", images(1)[0])
    assert len(load("digits", split="all")) == 1797
    assert len(load("./digits")) == 2
    assert len(load(Path("digits"))) == 2


def test_unknown_options_and_splits(tmp_path):
    with pytest.raises(TypeError, match="'mnist' has no option 'size'; it has none"):
        load("mnist", root=tmp_path, size=(3, 3))
    with pytest.raises(TypeError, match="'cifar100' has no option 'corse'; it has coarse"):
        load("cifar100", root=tmp_path, corse=True)
    with pytest.raises(ValueError, match="split of 'mnist' must be one of 'train', 'test', got 'dev'"):
        load("mnist", split="dev", root=tmp_path)


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if not source.embedded])
def test_every_missing_set_says_what_where_and_whence(name, tmp_path):
    options = {"corruption": "fog"} if name.endswith("-c") else {}
    with pytest.raises(FileNotFoundError) as caught:
        load(name, root=tmp_path, **options)
    text = str(caught.value)
    assert str(tmp_path) in text.split("looked for:")[1]
    assert SOURCES[name].page in text
    assert f"credro data get {name}" in text
    assert ("cannot fetch" in text) == (not SOURCES[name].files)
    assert not any(tmp_path.iterdir())


def test_every_name_has_a_reader():
    assert set(READERS) == set(SOURCES)


def test_importing_is_light():
    heavy = "scipy sklearn pandas matplotlib pyarrow typer rich urllib.request"
    code = (
        "import sys, torch; before = set(sys.modules); import credro.data; "
        f"print([m for m in {heavy.split()} if m in set(sys.modules) - before])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
