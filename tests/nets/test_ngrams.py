"""N-grams: scikit-learn's vectorizer is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from credro._names import ArgumentError
from credro.nets.ngrams import NgramNet, Ngrams

TEXTS = [
    "Where is my card?", "I lost my card, again: MY CARD!", "pay the bill", "the bill is due today",
    "transfer money to my account", "what's my balance", "Überweisung an Müller", "a b c",
]  # fmt: skip
NEW = ["is the card due?", "nothing known zzz", "", "Müller my my my card"]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (Ngrams(), {"ngram_range": (1, 2)}),
        (Ngrams(words=(2, 3)), {"ngram_range": (2, 3)}),
        (Ngrams(words=None, chars=(2, 4)), {"analyzer": "char_wb", "ngram_range": (2, 4)}),
    ],
)
def test_fit_and_transform_are_those_of_scikit_learn(options: Ngrams, given: dict[str, object]) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    theirs = text.TfidfVectorizer(**given).fit(TEXTS)
    ours = NgramNet(options).fit(TEXTS)
    assert list(ours.vocabulary) == theirs.get_feature_names_out().tolist()
    for texts in (TEXTS, NEW):
        assert np.allclose(ours(texts).numpy(), theirs.transform(texts).toarray(), atol=1e-6)


def test_the_most_frequent_are_kept_and_weighed_as_scikit_learn_weighs_them() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    ours = NgramNet(Ngrams(features=5)).fit(TEXTS)
    assert len(ours.vocabulary) == 5
    assert {"my", "card", "my card"} <= set(ours.vocabulary)
    theirs = text.TfidfVectorizer(ngram_range=(1, 2), vocabulary=list(ours.vocabulary)).fit(TEXTS)
    assert np.allclose(ours(NEW).numpy(), theirs.transform(NEW).toarray(), atol=1e-6)


def test_hashed_features_are_bounded_and_like_texts_are_near() -> None:
    net = NgramNet(Ngrams(hashed=True, features=512)).fit(TEXTS)
    x = net(["where is my card", "my card is where", "pay the bill"])
    assert x.shape == (3, 512)
    assert torch.allclose(x.norm(dim=1), torch.ones(3))
    assert x[0] @ x[1] > x[0] @ x[2]


def test_bad_options_are_refused() -> None:
    for bad in ({"words": (2, 1)}, {"words": None}, {"features": 0}):
        with pytest.raises(ArgumentError):
            Ngrams(**bad)
    with pytest.raises(ArgumentError, match="nothing to learn"):
        NgramNet(Ngrams()).fit(["a", "?"])
    with pytest.raises(ArgumentError, match="GB"):
        NgramNet(Ngrams(hashed=True, features=2**20)).fit(["word"] * 2000)
