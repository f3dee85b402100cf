"""Trunks that take texts: n-grams, WordLlama's vectors, and models of the transformers library with a tokenizer."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from credro._names import ArgumentError
from credro._records import read_json
from credro.data.errors import need
from credro.nets.ngrams import NgramNet, Ngrams
from credro.nets.trunk import AT_ONCE, Trunk

NAMED = {
    "tfidf": Ngrams(),
    "tfidf-chars": Ngrams(chars=(3, 5), features=8192),
    "hashed": Ngrams(hashed=True),
}
"""N-grams by name; others as ``credro.on(Ngrams(...))``."""
NAMES = (*NAMED, "wordllama")
DEFAULT = "tfidf"
"""What texts get where no trunk is named."""
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model")
LONGEST = 256
"""Tokens of a text that a transformer reads, where nobody says how many and it takes as many."""


@dataclass(frozen=True, eq=False)
class TextTrunk(Trunk):
    """A trunk whose module takes a sequence of B strings and gives features (B, F)."""

    takes_texts: ClassVar[bool] = True

    @property
    def learns(self) -> bool:
        """Whether it has to see the training texts first."""
        return isinstance(self.module, NgramNet) and not self.module.fitted

    @property
    def scaled(self) -> bool:
        """Whether its features go to the heads as they are: those of n-grams are mostly 0, and have length 1."""
        return isinstance(self.module, NgramNet)

    def fit(self, texts: Sequence[str]) -> TextTrunk:
        """The same trunk, with n-grams that were learned from the training texts."""
        assert isinstance(self.module, NgramNet)
        made = self.module.fit(texts)
        return replace(self, module=made, content=_content(made))

    def of_texts(self, texts: Sequence[str]) -> Tensor:
        """Features (B, F) of B texts, float32, on the CPU. Those of like length go together."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        parts = []
        with torch.inference_mode():
            for start in range(0, len(order), AT_ONCE):
                parts.append(self.module([texts[i] for i in order[start : start + AT_ONCE]]).float().cpu())
        found = torch.cat(parts)
        features = torch.empty_like(found)
        features[torch.tensor(order)] = found
        return features


def open_text(source: str | Path | Ngrams, *, pool: str, remote_code: bool, max_length: int | None) -> TextTrunk | None:
    """A trunk that takes texts; None: the source is none such."""
    if isinstance(source, str) and source in NAMED:
        return TextTrunk(NgramNet(NAMED[source]), address=source)
    if isinstance(source, Ngrams):
        return TextTrunk(NgramNet(source), address="ngrams")
    if source == "wordllama":
        return _wordllama(max_length)
    path = Path(source)
    if (path / "ngrams.json").is_file():
        return read_ngrams(path)
    if (path / "config.json").is_file() and _takes_texts(path):
        return _transformer(path, pool, remote_code, max_length)
    return None


def _content(net: NgramNet) -> str:
    said = json.dumps([net.options.to_json(), net.vocabulary])
    return hashlib.sha256(said.encode()).hexdigest()


def ngram_files(trunk: Trunk) -> dict[str, Any] | None:
    """What a run keeps of n-grams, as JSON: options, vocabulary, and idf in all its digits; None: no n-grams."""
    net = trunk.module
    if not isinstance(net, NgramNet):
        return None
    return {"options": net.options.to_json(), "vocabulary": list(net.vocabulary), "idf": net.idf.tolist()}


def read_ngrams(folder: Path) -> TextTrunk:
    """N-grams as a run keeps them."""
    plain = read_json(folder / "ngrams.json")
    idf = torch.tensor(plain["idf"], dtype=torch.float64)
    net = NgramNet(Ngrams.from_json(plain["options"], folder / "ngrams.json"), plain["vocabulary"], idf)
    return TextTrunk(net, address=str(folder), content=_content(net))


class StaticNet(nn.Module):
    """The mean of the vectors of a text's tokens; zeros where it has none."""

    vectors: Tensor

    def __init__(self, tokenizer: Path, vectors: Tensor, max_length: int | None) -> None:
        """vectors: (V, F), one for each token."""
        super().__init__()
        self.path, self.tokenizer, self.max_length = tokenizer, None, max_length
        self.register_buffer("vectors", vectors)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """(B, F)."""
        if self.tokenizer is None:
            self.tokenizer = need("tokenizers", "text").Tokenizer.from_file(str(self.path))
        rows = []
        for coded in self.tokenizer.encode_batch(list(texts), add_special_tokens=False):  # type: ignore[attr-defined]
            ids = coded.ids[: self.max_length]
            rows.append(
                self.vectors[ids].float().mean(0) if ids else self.vectors.new_zeros(self.vectors.shape[1]).float()
            )
        return torch.stack(rows)

    def __getstate__(self) -> dict[str, Any]:
        """A tokenizer is opened anew in every process."""
        return {**self.__dict__, "tokenizer": None}


def _wordllama(max_length: int | None) -> TextTrunk:
    """WordLlama's vectors, read from the files of its package, which is not imported: its load() wants the network."""
    spec = importlib.util.find_spec("wordllama")
    place = Path((spec.submodule_search_locations or [""])[0]) if spec is not None else None
    weights = sorted(place.glob("weights/*_256.safetensors")) if place else []
    tokenizers = sorted(place.glob("tokenizers/*.json")) if place else []
    if not weights or not tokenizers:
        raise ArgumentError("trunk", "trunk 'wordllama' needs the package of its vectors: pip install 'credro[text]'")
    need("tokenizers", "text")
    from safetensors.torch import load_file

    vectors = load_file(weights[0])["embedding.weight"]
    content = hashlib.sha256(tokenizers[0].read_bytes() + f" {max_length}".encode()).hexdigest()
    return TextTrunk(StaticNet(tokenizers[0], vectors, max_length), address="wordllama", content=content)


def _takes_texts(folder: Path) -> bool:
    """Whether a folder of transformers is of texts; refused where it is of both, or lacks its tokenizer."""
    config = read_json(folder / "config.json")
    pixels = any(k in config for k in ("image_size", "num_channels", "vision_config")) or (
        (folder / "preprocessor_config.json").is_file()
    )
    words = "vocab_size" in config or "text_config" in config
    if pixels and words:
        raise ArgumentError(
            "trunk", f"{folder} takes images and texts together: give a folder of one of its two halves"
        )
    if words and not any((folder / name).is_file() for name in TOKENIZERS):
        raise ArgumentError(
            "trunk", f"{folder} is a model of texts without its tokenizer: put {TOKENIZERS[0]} (or vocab.txt) there"
        )
    return words


class TransformerNet(nn.Module):
    """A model of the transformers library with its tokenizer: texts to pooled features (B, F)."""

    def __init__(self, model: Any, tokenizer: Any, pool: str, max_length: int) -> None:
        """pool: "mean" over the tokens that are there, "cls" or "pooler_output"; "auto" is the mean."""
        super().__init__()
        self.model, self.tokenizer, self.pool, self.max_length = model, tokenizer, pool, max_length

    def forward(self, texts: Sequence[str]) -> Tensor:
        """(B, F)."""
        coded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.max_length, return_tensors="pt"
        )
        coded = coded.to(next(self.model.parameters()).device)
        output = self.model(**coded)
        if self.pool == "pooler_output":
            if not isinstance(found := getattr(output, "pooler_output", None), Tensor):
                raise ArgumentError("pool", f"pool 'pooler_output' is nothing that {type(self.model).__name__} gives")
            return found
        tokens: Tensor = output.last_hidden_state
        if self.pool == "cls":
            return tokens[:, 0]
        mask = coded["attention_mask"][..., None].to(tokens.dtype)
        pooled: Tensor = (tokens * mask).sum(1) / mask.sum(1).clamp_min(1)
        return pooled


def _transformer(folder: Path, pool: str, remote_code: bool, max_length: int | None) -> TextTrunk:
    config = read_json(folder / "config.json")
    settings = folder / "tokenizer_config.json"
    brings = "auto_map" in config or (settings.is_file() and "auto_map" in read_json(settings))
    if brings and not remote_code:
        raise ArgumentError("trunk", f"{folder} brings code of its own: remote_code=True runs it, if you trust it")
    if not remote_code and not list(folder.glob("*.safetensors")):
        raise ArgumentError("trunk", f"{folder} has no .safetensors file: only those are read without running anything")
    if config.get("is_encoder_decoder"):
        raise ArgumentError("trunk", f"{folder} is an encoder with a decoder: give a folder of its encoder alone")
    library = need("transformers", "transformers")
    common = {"local_files_only": True, "trust_remote_code": remote_code}
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(str(folder), **common)
    except (OSError, ValueError, KeyError) as error:
        raise ArgumentError("trunk", f"the tokenizer in {folder} cannot be read: {error}") from error
    model = library.AutoModel.from_pretrained(str(folder), use_safetensors=True, **common)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    tokenizer.padding_side = "right"
    most = min(int(tokenizer.model_max_length), int(config.get("max_position_embeddings") or sys.maxsize))
    length = min(most, LONGEST) if max_length is None else max_length
    if not 1 <= length <= most:
        raise ArgumentError(
            "max_length", f"max_length must lie between 1 and the {most} tokens of {folder}, got {length}"
        )
    files = b"".join((folder / name).read_bytes() for name in TOKENIZERS if (folder / name).is_file())
    said = json.dumps([config, length]).encode() + files
    net = TransformerNet(model, tokenizer, pool, length)
    return TextTrunk(net, pool=pool, address=str(folder), content=hashlib.sha256(said).hexdigest())
