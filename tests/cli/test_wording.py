"""What errors and notes say is written in options, and decides nothing: reworded, every command does the same."""

import json

import pytest

from credro import _names
from credro._names import Argument, ArgumentError, Message, Open
from credro.cli._wording import one_line, speaking_of
from credro.cli.app import command, run
from credro.data import errors
from credro.training.run import NotARun
from credro.training.seen import SeenSamples

TRAIN = command().commands["train"]


def test_messages_become_one_line():
    assert one_line("a:\n  b\n  c\n") == "a: b; c"
    trace = "member 1: Traceback (most recent call last)\n  File x\nValueError: bad"
    assert one_line(trace) == "member 1: ValueError: bad"
    assert one_line(FileNotFoundError(2, "No such file or directory", "p.npy")) == "p.npy: No such file or directory"


@pytest.mark.parametrize(
    ("parts", "typed"),
    [
        ((Argument("drop", ("id", "date")), " or ", Argument("missing", "?")), "--drop id,date or --missing '?'"),
        (("choose with ", Argument("size", Open(("height", "width")))), "choose with --size HEIGHTxWIDTH"),
        (("pass ", Argument("size", (64, 96))), "pass --size 64x96"),
        ((Argument("header", False), ": it is a sample"), "--no-header: it is a sample"),
        ((Argument("deep", True), " reads them"), "--deep reads them"),
        (("give ", Argument("held_out"), ", or ", Argument("early_stop", 0)), "give --held-out, or --no-early-stop"),
        (("say where: ", Argument("root", Open())), "say where: --root DIR"),
        ((Argument("drop", ("first name",)), " does"), "--drop 'first name' does"),
        (("colour=red and ", Argument("make_net", "f"), " stay"), "colour=red and make_net='f' stay"),
    ],
)
def test_remedies_are_what_the_user_types(parts, typed):
    message = Message(*parts)
    with speaking_of(TRAIN):
        assert one_line(message) == typed
        assert one_line(ValueError(message)) == typed
    with speaking_of(command().commands["list"]):  # which has few of these options
        assert one_line(Message(Argument("drop", ("id",)))) == "drop=('id',)"


def test_an_argument_is_the_option_of_its_name():
    with speaking_of(TRAIN):
        assert one_line(ArgumentError("lr", "lr must be positive, got -1")) == "--lr must be positive, got -1"
        assert one_line(ArgumentError("delta_g", "delta_g must lie in (0, 1]")) == "delta_g must lie in (0, 1]"


def test_remedies_hang_on_the_kind_of_an_error():
    assert one_line(NotARun("x")).startswith("x; name the folder that credro train --out has made")
    assert "--test 0.2" in one_line(SeenSamples("x"))
    assert one_line(RuntimeError("x")) == "x"


@pytest.fixture
def reworded(monkeypatch):
    """Every error and every "did you mean" says "x", and messages hold nothing else."""

    def silence(kind):
        plain = kind.__init__

        def init(self, *args, **kwargs):
            plain(self, *args, **kwargs)
            self.args = ("x",)

        monkeypatch.setattr(kind, "__init__", init)

    def reword():
        for kind in (_names.ArgumentError, errors.DataNotFound, errors.DataError, NotARun, SeenSamples):
            silence(kind)
        monkeypatch.setattr(_names, "did_you_mean", lambda given, allowed: "x")

    return reword


def test_rewording_every_message_changes_no_behaviour(place, cli, tmp_path, reworded):
    frame = "when,size,outcome\n" + "".join(f"2020-01-{i + 1:02},{i},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "times.csv").write_text(frame)
    digits = ["train", "--data", "digits", "--out", tmp_path / "run"]
    commands = [
        ["list", "data", "--json", "--root", tmp_path],
        ["data", "list", "--root", tmp_path],
        ["list", "nothing"],
        ["data", "show", "mnist", "--root", tmp_path],
        ["data", "show", "svnh"],
        ["data", "show", "digits", "--split", "nothing"],
        [*digits, "--method", "credo"],
        [*digits, "--set", "readout=averaged_box"],
        [*digits, "--set", "gamma_ray=1"],
        [*digits, "--set", "start=biassed"],
        ["train", "--data", tmp_path / "times.csv", "--label", "outcome", "--out", tmp_path / "run"],
        ["train", "--data", place / "table.csv", "--out", tmp_path / "run"],
        ["evaluate", "nowhere"],
        ["evaluate", place / "de", "--split", "train"],
        ["evaluate", place / "de", "--methods", "de", "--json", "-"],  # by test, which train and others are not
        ["evaluate", place / "table", "--methods", "credro", "--json", "-"],  # a file that has no splits
        ["evaluate", place / "table", "--data", place / "unlabelled.csv"],
        ["predict", place / "de", place / "new.npz", "--method", "credro"],
        ["predict", place / "credro", place / "new.npz", "--max-error", 0.0001, "--held-out", place / "held.npz"],
    ]

    def done():
        shown = [cli(*line) for line in commands]
        return [
            (s.code, s.out if line[-1] != "-" else _without_words(s.out))
            for s, line in zip(shown, commands, strict=True)
        ]

    before = done()
    reworded()
    assert cli("evaluate", "nowhere").err.startswith("credro: x")  # they are in force
    assert done() == before
    assert {code for code, _ in before} == {0, 1, 2, 3}


def _without_words(text):
    return [
        {key: value for key, value in each.items() if key not in ("notes", "warnings")} for each in json.loads(text)
    ]


def test_debug_shows_the_error_itself():
    with pytest.raises(NotARun):
        run(["evaluate", "nowhere", "--debug"])
