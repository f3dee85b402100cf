"""A pickle from a stranger runs nothing."""

import io
import pickle
import pickletools
import struct

import numpy as np
import pytest

from credro.data import DataError
from credro.data.readers._unpickle import ADMITTED, UnsafePickleError, read_pickle


@pytest.fixture
def write(tmp_path):
    def write(content: bytes):
        path = tmp_path / "batch"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_what_pickle_reads(write, protocol, order):
    content = {
        b"data": np.asarray(np.random.default_rng(0).integers(0, 256, (7, 11), dtype=np.uint8), order=order),
        b"labels": [3, 1, 2],
        b"filenames": [b"a.png", b"\xff.png"],
        "batch_label": "training batch 1 of 5",
    }
    raw = pickle.dumps(content, protocol=protocol)
    found = read_pickle(write(raw))
    assert set(found) == {"data", "labels", "filenames", "batch_label"}
    np.testing.assert_array_equal(found["data"], pickle.loads(raw)[b"data"])
    assert found["data"].dtype == np.uint8
    assert found["labels"] == [3, 1, 2]
    assert found["filenames"] == [b"a.png", b"\xff.png"]


def test_reads_what_python_2_wrote(write):
    """The official files are of Python 2: text and array bytes as SHORT_BINSTRING, numpy's old module name."""

    def text(s: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(s)) + s

    raw = b"\x80\x02}" + text(b"data") + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
    raw += text(b"b") + b"\x87R(K\x01K\x02K\x03\x86cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
    raw += (
        b"(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + text(bytes([0, 1, 2, 253, 254, 255]))
    )
    raw += b"tbs."
    pickletools.dis(raw, out=io.StringIO())  # well formed by Python's own account
    oracle = pickle.loads(raw, encoding="bytes")[b"data"]
    np.testing.assert_array_equal(read_pickle(write(raw))["data"], oracle)
    assert oracle.tolist() == [[0, 1, 2], [253, 254, 255]]


class Call:
    """Pickles as a call of ``function(*arguments)``."""

    def __init__(self, function, *arguments, state=None):
        self.parts = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.parts


def attacks(victim):
    import builtins
    import copyreg
    import os
    import subprocess

    make = f"open({str(victim)!r}, 'w')"
    reconstruct = np.zeros(1, np.uint8).__reduce__()[0]
    return {
        "open": Call(open, str(victim), "w"),
        "eval": Call(builtins.eval, make),
        "exec": Call(builtins.exec, make),
        "system": Call(os.system, f"touch {victim}"),
        "popen": Call(subprocess.Popen, ["touch", str(victim)]),
        "getattr": Call(getattr, "x", "upper"),
        "import": Call(builtins.__import__, "os"),
        "reconstructor": Call(copyreg._reconstructor, list, object, None),
        "other class": Call(reconstruct, list, (0,), b"b"),
        "matrix": Call(reconstruct, np.matrix, (0,), b"b"),
        "object array": np.array([Call(os.system, f"touch {victim}")], dtype=object),
        "objects": np.array([1, "a"], dtype=object),
        "floats": np.ones(3),
        "structured": np.zeros(2, dtype=[("a", "u1"), ("b", "O")]),
        "scalar": np.uint8(3),
        "load": Call(pickle.loads, pickle.dumps(Call(os.system, f"touch {victim}"))),
        "numpy load": Call(np.load, str(victim)),
        "codec": Call(__import__("codecs").encode, "abc", "rot13"),
        "set": {1, 2},
    }


@pytest.mark.parametrize("name", sorted(attacks("x")))
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_malicious_pickle_raises_and_runs_nothing(write, tmp_path, name, protocol):
    victim = tmp_path / "created"
    attack = attacks(victim)[name]
    for content in (attack, {b"data": attack}, {b"labels": [[attack]]}):
        raw = pickle.dumps(content, protocol=protocol)
        if name == "set" and protocol == 4:  # protocol 4 has sets of its own: no call, and no CIFAR file either
            continue
        with pytest.raises(UnsafePickleError, match="refused"):
            read_pickle(write(raw))
        assert not victim.exists()


def test_the_attack_would_have_worked(write, tmp_path):
    """The oracle of the test above: Python's own reader does create the file."""
    victim = tmp_path / "created"
    pickle.loads(pickle.dumps(attacks(victim)["open"])).close()
    assert victim.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"c_codecs\nencode\n}U\x0b__defaults__NsN\x86b.",  # attributes of a function
        b"c_codecs\nencode\nN}U\x08__call__U\x01xs\x86b.",
        b"cnumpy\nndarray\nN}U\x0c__setstate__K\x01s\x86b.",  # attributes of a class
        b"cnumpy\ndtype\n}U\x08__init__K\x01sb.",
        b"cnumpy\nndarray\n)\x81K\x05b.",  # an array whose state is a number
        b"cnumpy\nndarray\n)\x81(K\x01K\x05\x85cnumpy\ndtype\nU\x02u1\x85R\x89U\x02abtb.",  # five bytes said, two given
        b"\x80\x02cos\nsystem\n.",
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",  # a new object without a call
        b"(S'touch x'\nios\nsystem\n.",  # the old INST
        b"\x82\x01.",  # the registry of extensions
        b"Pid\n.",  # persistent objects
    ],
)
def test_hand_written_attacks(write, raw):
    before = {key: dict(vars(kind)) for key, kind in ADMITTED.items()}
    with pytest.raises(DataError):
        read_pickle(write(raw))
    assert {key: dict(vars(kind)) for key, kind in ADMITTED.items()} == before


@pytest.mark.parametrize("content", [b"", b"\x80\x02}", b"not a pickle at all", b"\x00" * 100])
def test_broken_files_are_named(write, content):
    with pytest.raises(DataError, match="batch: not a complete pickle"):
        read_pickle(write(content))


def test_every_truncation_raises(write):
    raw = pickle.dumps({b"data": np.zeros((2, 30), np.uint8), b"labels": [1, 2]}, protocol=2)
    for end in range(len(raw)):
        with pytest.raises(DataError):
            read_pickle(write(raw[:end]))


def test_not_a_dictionary(write):
    with pytest.raises(DataError, match="expected a dictionary"):
        read_pickle(write(pickle.dumps([1, 2])))
