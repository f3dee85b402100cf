"""Texts from a list or a file to a prediction."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import credro
from credro._names import ArgumentError
from credro.cli.app import run

CARD = [f"where is my {w} card" for w in ("new", "old", "lost", "blue", "bank", "gift", "gold", "red")]
BILL = [f"pay the {w} bill" for w in ("gas", "phone", "water", "last", "next", "rent", "tax", "big")]
TEXTS, LABELS = [*CARD, *BILL], ["card"] * 8 + ["bill"] * 8
RECIPE = credro.Recipe(epochs=20, lr=0.01, optimizer="adamw")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "messages.csv"
    path.write_text(
        "text,label,id\n" + "".join(f'"{t}",{y},{i}\n' for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True)))
    )
    return path


def test_lists_of_texts_are_trained_and_predicted(tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ens = credro.fit("text", (TEXTS, LABELS), members=2, recipe=RECIPE, out=tmp_path / "run", progress="none")
    pred = ens.predict(["where is the black card", "pay a bill"])
    assert [ens.classes[i] for i in pred.label] == ["card", "bill"]
    again = credro.load(tmp_path / "run")
    assert torch.equal(again.predict(["pay a bill"]).mean, ens.predict("pay a bill").mean)
    assert not list((tmp_path / "run").rglob("*.pkl"))
    assert torch.equal(again.predict(table).mean, ens.predict(TEXTS).mean)  # a Path is a file
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="also the name of a file"):
        ens.predict("messages.csv")
    assert len(ens.predict(credro.data.text_data(["messages.csv"])).mean) == 1
    saved = ens.save(tmp_path / "copy")
    assert torch.equal(credro.load(saved).predict(TEXTS).mean, ens.predict(TEXTS).mean)
    with pytest.raises(credro.training.seen.SeenSamples):
        ens.unseen(credro.data.load(table, text="text", label="label"))


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ArgumentError, match="takes texts"):
        credro.fit(credro.on("tfidf"), (torch.rand(8, 3), torch.arange(8) % 2), progress="none")
    with pytest.raises(ArgumentError, match="holds texts"):
        credro.fit(credro.on(torch.nn.Flatten()), (TEXTS, LABELS), progress="none")
    with pytest.raises(ArgumentError, match="networks take numbers"):
        credro.fit("mlp", (TEXTS, LABELS), progress="none")


def test_n_grams_are_learned_from_training_texts_alone(table: Path) -> None:
    many = [f"{t} now{i}" for i in range(6) for t in TEXTS]
    ens = credro.fit(
        "text", (many, LABELS * 6), members=2, recipe=RECIPE.with_(epochs=1), early_stop=True, progress="none"
    )
    seen, vocabulary = ens.seen, set(ens.trunk.module.vocabulary)
    data = credro.data.as_data((many, LABELS * 6))
    watched = [t for t, c in zip(many, data.content(), strict=True) if c in seen["watched"]]
    trained = [t for t, c in zip(many, data.content(), strict=True) if c in seen["trained"]]
    assert watched
    grams = {g for t in trained for g in ens.trunk.module.options.of(t)}
    assert vocabulary == grams


def test_the_command_line_takes_texts(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, lines = str(tmp_path / "run"), tmp_path / "new.txt"
    lines.write_text("where is my card\n\npay <b>the</b> bill\n")
    train = ["train", "--data", str(table), "--text", "text", "--label", "label", "--members", "2", "--epochs", "5"]
    assert run([*train, "--test", "0.25", "--out", out]) == 0
    capsys.readouterr()
    assert run(["predict", out, str(lines)]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 4
    assert "line 2" in said.err
    assert run(["evaluate", out, "--ood", f"other={lines}"]) == 0
    assert run(["report", out, "--ood", f"other={lines}"]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "pay &lt;b&gt;the&lt;/b&gt; bill" in page
    assert "<b>the</b>" not in page
    assert run(["data", "show", str(table), "--text", "text"]) == 0
    assert run([*train[:3], "--text", "words", "--out", out + "2"]) != 0
    assert "one of text, label, id" in capsys.readouterr().err
    assert run(["train", "--data", str(table), "--trunk", "tfidf", "--out", out + "3"]) == 2
