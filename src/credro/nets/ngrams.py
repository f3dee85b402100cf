"""TF-IDF and hashed n-grams: features of texts that need no download, as scikit-learn computes them."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from credro._names import ArgumentError
from credro._records import Record

WORD = re.compile(r"(?u)\b\w\w+\b")
"""A word: two letters or digits or more, scikit-learn's token_pattern."""
MOST_BYTES = 4 * 2**30
"""Dense features that would take more memory than this are refused."""


@dataclass(frozen=True)
class Ngrams(Record):
    """Which n-grams of a text are counted, and how many features they become.

    words: (shortest, longest) n-grams of words; chars: the same of letters within words, space at their ends, as
    scikit-learn's "char_wb"; None: none. features: at most so many, the most frequent in training; or, if hashed, so
    many exactly. idf: weigh them by how rare they are in the training texts. Rows have length 1.
    """

    words: tuple[int, int] | None = (1, 2)
    chars: tuple[int, int] | None = None
    features: int = 4096
    hashed: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, pair in (("words", self.words), ("chars", self.chars)):
            if pair is not None and (len(pair) != 2 or not 1 <= pair[0] <= pair[1]):
                raise ArgumentError(
                    name, f"{name} must be (shortest, longest) with 1 <= shortest <= longest, got {pair}"
                )
        if self.words is None and self.chars is None:
            raise ArgumentError("words", "words or chars must be given: without either there are no n-grams")
        if not 1 <= self.features <= 2**20:
            raise ArgumentError("features", f"features must lie between 1 and {2**20}, got {self.features}")

    def of(self, text: str) -> list[str]:
        """All n-grams of a text, in lower case; those of letters have a tab before them where words count too."""
        text = text.lower()
        found: list[str] = []
        if self.words is not None:
            tokens = WORD.findall(text)
            for n in range(self.words[0], self.words[1] + 1):
                found += tokens if n == 1 else [" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        if self.chars is not None:
            mark = "\t" if self.words is not None else ""
            found += [mark + gram for gram in _within_words(text, *self.chars)]
        return found


def _within_words(text: str, shortest: int, longest: int) -> list[str]:
    """N-grams of letters within words, with a space at either end; of a word that is shorter the whole, once."""
    found: list[str] = []
    for word in text.split():
        padded = f" {word} "
        for n in range(shortest, longest + 1):
            if len(padded) <= n:
                found.append(padded)
                break  # counted once
            found += [padded[i : i + n] for i in range(len(padded) - n + 1)]
    return found


class NgramNet(nn.Module):
    """Texts to TF-IDF features (B, F); it knows its n-grams once it is ``fitted``."""

    idf: Tensor

    def __init__(self, options: Ngrams, vocabulary: Sequence[str] = (), idf: Tensor | None = None) -> None:
        """vocabulary: the n-grams of the features, in order; hashed ones have none."""
        super().__init__()
        self.options, self.vocabulary = options, tuple(vocabulary)
        self.place = {gram: i for i, gram in enumerate(self.vocabulary)}
        self.register_buffer("idf", torch.empty(0) if idf is None else idf)

    @property
    def fitted(self) -> bool:
        """Whether it has seen training texts."""
        return len(self.idf) > 0

    def fit(self, texts: Sequence[str]) -> NgramNet:
        """A new one with the n-grams of the training texts: the most frequent, ties by the alphabet."""
        counted = [Counter(self.options.of(text)) for text in texts]
        if self.options.hashed:
            width, vocabulary = self.options.features, []
        else:
            totals: Counter[str] = Counter()
            for counts in counted:
                totals.update(counts)
            most = sorted(totals, key=lambda gram: (-totals[gram], gram))[: self.options.features]
            vocabulary, width = sorted(most), len(most)
        if not width:
            raise ArgumentError("data", "data has no word of two letters in any text: there is nothing to learn from")
        if 4 * width * len(texts) > MOST_BYTES:
            gigabytes = 4 * width * len(texts) / 2**30
            raise ArgumentError(
                "features", f"features of {len(texts):,} texts take {gigabytes:.1f} GB with {width:,} each: take fewer"
            )
        made = NgramNet(self.options, vocabulary)
        within = torch.zeros(width, dtype=torch.float64)
        for counts in counted:
            within[list({i for i, _ in map(made._at, counts) if i is not None})] += 1
        made.idf = torch.log((1 + len(texts)) / (1 + within)) + 1
        return made

    def _at(self, gram: str) -> tuple[int | None, float]:
        """The feature of an n-gram and the sign it counts with; None: training has not seen it."""
        if not self.options.hashed:
            return self.place.get(gram), 1.0
        code = zlib.crc32(gram.encode())
        return code % self.options.features, 1.0 if code >> 31 else -1.0  # signs let collisions cancel

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Rows of length 1, or 0 where a text has no known n-gram."""
        if not self.fitted:
            raise ArgumentError("trunk", "trunk has not seen training texts yet: credro.fit lets it")
        rows = torch.zeros(len(texts), len(self.idf), dtype=torch.float64)
        for row, text in zip(rows, texts, strict=True):
            for gram, number in Counter(self.options.of(text)).items():
                i, sign = self._at(gram)
                if i is not None:
                    row[i] += sign * number
        rows *= self.idf.double()
        length = rows.norm(dim=1, keepdim=True)
        return torch.where(length > 0, rows / length, rows).float()
