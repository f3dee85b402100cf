"""Errors carry what they are about; whoever needs it never reads the message."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from credro._names import Argument, ArgumentError, Message, Open, UnknownName, joined, message_of
from credro.data import SOURCES, BadFiles, DataError, DataNotFound, UnknownSplit, candidates, load
from credro.data.readers import PUBLISHED
from tests.data.layouts import images, write_image


def options(argument):
    """As a command line may write it."""
    return f"--{argument.name}" + ("" if argument.value is None else f" <{argument.value}>")


def test_a_message_reads_as_python_and_can_be_worded_otherwise():
    inner = Message("pass ", Argument("drop", ("id", "date")), " or ", Argument("size", Open(("height", "width"))))
    message = joined("; ", ["column: no numbers", inner, Message(Argument("root", Open()))])
    assert message == "column: no numbers; pass drop=('id', 'date') or size=(height, width); root=..."
    assert isinstance(message, str)
    assert (
        message.worded(options)
        == "column: no numbers; pass --drop <('id', 'date')> or --size <(height, width)>; --root <...>"
    )
    assert pickle.loads(pickle.dumps(message)).parts == message.parts
    assert Message("plain").worded(options) == "plain"


@pytest.mark.parametrize(
    "error",
    [
        ArgumentError("label", "label must be a column of label.csv"),
        ArgumentError("label", "no label"),
        UnknownName("on_error", "stopp", ("stop", "skip")),
        UnknownSplit("x.csv", "dev", ("train", "test"), Message("or ", Argument("split", "all"))),
        UnknownSplit("x.csv", None, ("0", "1")),
        UnknownSplit("x.csv", "dev", ()),
        DataError("x.csv", Message("pass ", Argument("header", False))),
        BadFiles("photos", [], 3, Message(Argument("on_error", "skip"), " leaves them out")),
        DataNotFound("mnist", [Path("a"), Path("b")], "nowhere"),
    ],
)
def test_errors_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error) == message_of(again)
    assert message_of(again).parts == message_of(error).parts
    assert {k: v for k, v in vars(again).items() if k != "bad"} == {k: v for k, v in vars(error).items() if k != "bad"}


def test_the_argument_of_an_error_is_worded_too():
    error = ArgumentError("label", "label must be a column of label.csv")
    assert message_of(error).worded(options) == "--label must be a column of label.csv"
    assert message_of(UnknownSplit("x", "dev", ("train",))).worded(options).startswith("--split of 'x' must be one of")
    assert message_of(OSError(2, "gone")) == "[Errno 2] gone"


def table(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"label": "z"}, "label"),
        ({"label": "y", "drop": "z"}, "drop"),
        ({"label": "y", "keep": "z"}, "keep"),
        ({"label": "y", "group": "z"}, "group"),
        ({"label": "y", "categories": "z"}, "categories"),
        ({"label": "y", "missing": "drop"}, "missing"),
        ({"label": "y", "task": "guess"}, "task"),
        ({"label": "y", "classes": 0}, "classes"),
        ({"label": "y", "split": "test"}, "split"),
        ({"label": "y", "drop": "y"}, "drop"),
        ({}, "label"),
    ],
)
def test_every_wrong_option_is_named_in_a_field(tmp_path, given, argument):
    path = table(tmp_path, "a,b,y\n1,2,0\n3,4,1\n5,6.5,0\n")
    if not given:
        path = table(tmp_path, "a,b,c\n1,2,0\n3,4,1\n5,6.5,0\n")
    with pytest.raises(ArgumentError) as caught:
        load(path, **given)
    assert caught.value.argument == argument


def arguments(message):
    return [part for part in message.parts if isinstance(part, Argument)]


@pytest.mark.parametrize(
    ("text", "given", "remedies"),
    [
        ("when,y\n2020-01-01,0\n2020-01-02,1\n", {}, [Argument("drop", ("when",))]),
        (
            "a,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(30)) + "x,1\n",
            {},
            [Argument("missing", "x"), Argument("drop", ("a",)), Argument("categories", ("a",))],
        ),
        ("a,y\n1.5,0\n,1\n2.5,0\n", {"missing": "error"}, [Argument("missing", "keep")]),
        (
            "a,y,target\n1.5,0,1\n2.5,1,0\n",
            {},
            [Argument("label"), Argument("label", "y"), Argument("drop", ("target",))],
        ),
        ("a,a,y\n1.5,0,1\n2.5,1,0\n", {"header": True}, [Argument("header", False)]),
    ],
)
def test_remedies_are_fields(tmp_path, text, given, remedies):
    with pytest.raises(ValueError) as caught:
        load(table(tmp_path, text), **given)
    assert arguments(message_of(caught.value)) == remedies


def test_remedies_in_notes(tmp_path):
    path = table(tmp_path, "one,a,y\n" + "".join(f"7,{i}.5,{i % 2}\n" for i in range(30)))
    notes = load(path).notes
    assert [a for n in notes if isinstance(n, Message) for a in arguments(n)] == [Argument("keep", ("one",))]
    for i, side in enumerate((8, 9, 9)):
        write_image(tmp_path / "photos" / "ab"[i % 2] / f"{i}.png", images(1, side, side)[0])
    notes = load(tmp_path / "photos").notes
    assert [a.name for n in notes if isinstance(n, Message) for a in arguments(n)] == ["size"]


@pytest.mark.parametrize("name", SOURCES)
def test_candidates_are_where_a_reader_looks(name, tmp_path):
    """Each is a place whose absence is told, and no file of a set is looked for elsewhere."""
    places = candidates(name, tmp_path)
    assert (not places) == SOURCES[name].embedded
    assert all(place.is_relative_to(tmp_path) for place in places)
    told = set()
    for split in PUBLISHED[name].splits if places else ():
        with pytest.raises(DataNotFound) as caught:
            load(name, split=split, root=tmp_path)
        assert caught.value.name == name
        told |= set(caught.value.places)
    assert told == set(places)
    with pytest.raises(UnknownName, match=r"\(did you mean 'cifar10'\?\)"):
        candidates("cifra10", tmp_path)


def test_the_error_of_a_path_has_the_places(tmp_path):
    with pytest.raises(DataNotFound) as caught:
        load("here/x.csv", root=tmp_path)
    assert caught.value.places == (Path("here/x.csv"), tmp_path / "here/x.csv")
    np.savez(tmp_path / "x.npz", x=np.ones((2, 2)), y=[0, 1])
    with pytest.raises(ArgumentError, match="layout must be") as wrong:
        load(tmp_path / "x.npz", layout="cwh")
    assert wrong.value.argument == "layout"
