"""Trunks of texts: WordLlama by hand, a tiny BERT against transformers itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import credro
from credro._names import ArgumentError
from credro.nets.texts import TextTrunk
from credro.nets.trunks import open_trunk

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "where", "is", "my", "card", "pay", "the", "bill"]
TEXTS = ["where is my card", "pay the bill", "my my my card is where the bill is", "pay"]


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    library = pytest.importorskip("transformers", reason="transformers is not installed")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    library.BertTokenizerFast(vocab={w: i for i, w in enumerate(WORDS)}).save_pretrained(tmp_path)
    torch.manual_seed(0)
    config = library.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32,
    )  # fmt: skip
    library.BertModel(config).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("pool", ["mean", "cls", "pooler_output"])
def test_a_folder_gives_what_transformers_gives_one_text_at_a_time(bert: Path, pool: str) -> None:
    import transformers

    trunk = open_trunk(bert, pool=pool)
    assert isinstance(trunk, TextTrunk)
    found = trunk.of_texts(TEXTS)
    model, tokenizer = (
        transformers.BertModel.from_pretrained(bert).eval(),
        transformers.AutoTokenizer.from_pretrained(bert),
    )
    for text, row in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            output = model(**tokenizer(text, return_tensors="pt"))
        tokens = output.last_hidden_state[0]
        wanted = {"mean": tokens.mean(0), "cls": tokens[0], "pooler_output": output.pooler_output[0]}[pool]
        assert torch.allclose(row, wanted, atol=1e-5)


def test_texts_are_cut_at_max_length_which_belongs_to_the_digest(bert: Path) -> None:
    short, long = open_trunk(bert, max_length=4), open_trunk(bert)
    assert short.digest != long.digest
    assert torch.allclose(short.of_texts(["my card"]), short.of_texts(["my card is where"]), atol=1e-5)
    with pytest.raises(ArgumentError, match="max_length"):
        open_trunk(bert, max_length=33)


def test_a_run_on_a_folder_predicts_the_same_when_loaded(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("run") / "run"
    recipe = credro.Recipe(epochs=2)
    ens = credro.fit(credro.on(bert), (TEXTS * 3, [0, 1, 0, 1] * 3), members=2, recipe=recipe, out=out, progress="none")
    again = credro.load(out)
    assert torch.equal(ens.predict(["my card"]).mean, again.predict(["my card"]).mean)
    assert again.config.trunk.max_length == 32


def test_what_is_wrong_with_a_folder_is_said_before_any_work(tmp_path: Path) -> None:
    def folder(name: str, config: dict[str, object], *files: str) -> Path:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        for file in files:
            (tmp_path / name / file).write_text("{}")
        return tmp_path / name

    with pytest.raises(ArgumentError, match="tokenizer"):
        credro.on(folder("a", {"vocab_size": 9}))
    with pytest.raises(ArgumentError, match="images and texts"):
        credro.on(folder("b", {"text_config": {}, "vision_config": {}}, "tokenizer.json"))
    with pytest.raises(ArgumentError, match="remote_code"):
        credro.on(folder("c", {"vocab_size": 9, "auto_map": {}}, "tokenizer.json"))
    with pytest.raises(ArgumentError, match="safetensors"):
        credro.on(folder("d", {"vocab_size": 9}, "tokenizer.json"))


def test_wordllama_is_the_mean_of_its_vectors() -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    import importlib.util

    if importlib.util.find_spec("wordllama") is None:
        pytest.skip("wordllama is not installed")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    place = Path(importlib.util.find_spec("wordllama").submodule_search_locations[0])
    vectors = load_file(place / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype("float64")
    tokenizer = Tokenizer.from_file(str(place / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    found = credro.on("wordllama").trunk.of_texts(["where is my card", ""])
    ids = tokenizer.encode("where is my card", add_special_tokens=False).ids
    assert found.shape == (2, 256)
    assert torch.allclose(found[0].double(), torch.from_numpy(vectors[ids].mean(0)), atol=1e-5)
    assert not found[1].any()
