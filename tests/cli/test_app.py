import os
import subprocess
import sys
from pathlib import Path

import pytest

import credro
from credro.cli.app import app, run

CREDRO = Path(sys.executable).with_name("credro")
COMMANDS = ["demo", "train", "evaluate", "predict", "report", "reproduce", "list", "bench", "data"]
WITH_EXAMPLES = [[name] for name in COMMANDS if name != "data"] + [
    ["data"],
    ["data", "list"],
    ["data", "get"],
    ["data", "show"],
]


def test_help_fits_a_screen_and_tells_a_story(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("--help")
    lines = shown.out.rstrip("\n").split("\n")
    assert shown.code == 0
    assert len(lines) <= 23  # and the prompt makes 24
    assert max(map(len, lines)) <= 80
    assert "..." not in shown.out.partition("Commands:")[2]  # every first sentence fits its line
    places = [shown.out.index(f"credro {word}") for word in ("demo", "train", "evaluate", "predict")]
    assert places == sorted(places)
    for command in COMMANDS:
        assert f"\n  {command} " in shown.out
    assert cli().out == shown.out


@pytest.mark.parametrize("command", WITH_EXAMPLES, ids=" ".join)
def test_every_help_has_examples_on_lines_of_their_own(cli, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    text = cli(*command, "--help").out
    assert "..." not in text.partition("Commands:")[2]
    examples = text.partition("Example")[2].partition("Options:")[0]
    assert f"\n    credro {' '.join(command)}" in examples
    assert max(map(len, text.split("\n"))) <= 80
    assert "<str>" not in text
    assert "<path>" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'? See credro --help"),
        (["demo", "--members", "0"], "--members must be at least 1, got 0"),
        (["demo", "--samples", "12001"], "--samples must be at most 12000, got 12001"),
        (["reproduce", "main", "--executor", "fast"], "--executor must be one of auto"),
        (["reproduce", "main", "--device", "cuda:99"], "--device cuda:99 cannot be used here"),
        (["--nope"], "--nope"),
        (["predict"], "credro predict --help"),
        (["train", "--data", "digits"], "--out"),
        (["list", "nothing"], "WHAT must be one of methods, choices, nets"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_code_2(cli, arguments, message):
    shown = cli(*arguments)
    assert shown.code == 2
    assert message in shown.err
    assert shown.err.startswith("credro: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_debug_raises_wherever_it_stands():
    for arguments in (["--debug", "evaluate", "nowhere"], ["evaluate", "nowhere", "--debug"]):
        with pytest.raises(RuntimeError, match="not a run"):
            run(arguments)


def test_what_nobody_foresaw_is_one_line_too(cli, monkeypatch):
    def broken(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr("credro.ensemble.load", broken)
    shown = cli("predict", "RUN", "x.png")
    assert shown.code == 1
    assert shown.err == "credro: unexpected KeyError: 'oops'; --debug shows where\n"


def test_an_interruption_says_how_to_go_on(cli, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("credro.ensemble.load", stopped)
    shown = cli("predict", "RUN", "x.png")
    assert shown.code == 130
    assert "same command" in shown.err


def test_every_command_is_registered():
    assert [c.name for c in app.registered_commands] + [g.name for g in app.registered_groups] == COMMANDS


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "", "TERM": "xterm-256color"}])
def test_as_a_module_in_a_pipe_there_is_no_colour(extra):
    environment = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"} | {k: v for k, v in extra.items() if v}
    command = [sys.executable, "-m", "credro"]
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, env=environment, check=True)
    assert "Usage: credro" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    done = subprocess.run([*command, "evaluate", "nowhere"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert (
        done.stderr
        == "credro: nowhere is not a run: it has no config.json; name the folder that credro train --out has made\n"
    )


def test_completion_of_the_shell():
    """As bash asks for it: the words so far in, the words that fit out."""
    asked = {"_CREDRO_COMPLETE": "complete_bash", "COMP_WORDS": "credro re", "COMP_CWORD": "1"}
    done = subprocess.run(["credro"], executable=CREDRO, capture_output=True, text=True, env={**os.environ, **asked})
    assert done.stdout.split() == ["report", "reproduce"]


def test_help_imports_nothing_heavy():
    code = "import sys; from credro.cli.app import run; run(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_version(cli):
    assert cli("--version").out == f"{credro.__version__}\n"


def test_bench_outside_a_clone_says_so(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("credro.cli.bench.__file__", str(tmp_path / "a" / "b" / "c" / "bench.py"))
    shown = cli("bench", "uq")
    assert shown.code == 1
    assert "clone" in shown.err


def test_bench_runs_what_is_in_a_clone(cli, tmp_path, monkeypatch):
    (tmp_path / "src" / "credro").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "quick.py").write_text("open('ran', 'w').close()")
    (tmp_path / "benchmarks" / "fails.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert cli("bench", "quick").code == 0
    assert Path("ran").exists()
    assert cli("bench", "fails").code == 3
    assert "NAME must be one of fails, quick" in cli("bench", "slow").err
