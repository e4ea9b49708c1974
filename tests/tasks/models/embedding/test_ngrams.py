"""Hashed n-grams equal scikit-learn's bit by bit, for texts of any kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.models.embedding import ngrams
from yarus.tasks.models.embedding.ngrams import hash_ngrams, murmur3

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=5)
ODD_TEXTS = ["", "  ", "а", "б в", "Ёлка\u00a0и\u2003ёлка", "図書館 🎓🎓", "İstanbul ß ǅ", "\u0085a\x1cb", "да " * 300]


def count_with_sklearn(texts: list[str]) -> np.ndarray:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 4), n_features=2_000, norm=None, dtype=np.float32
    )
    return vectorizer.transform(texts).toarray()


@given(TEXTS.filter(bool))
def test_ngram_counts_equal_sklearn_for_any_texts(texts: list[str]) -> None:
    np.testing.assert_array_equal(hash_ngrams(texts, 2_000), count_with_sklearn(texts))


def test_ngram_counts_equal_sklearn_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "BLOCK_TEXTS", 2)
    counts = hash_ngrams(ODD_TEXTS, 2_000)
    np.testing.assert_array_equal(counts, count_with_sklearn(ODD_TEXTS))
    assert counts[2:].any(axis=1).all()


def test_ngram_counts_of_texts_without_ngrams() -> None:
    assert hash_ngrams([], 7).shape == (0, 7)
    assert not hash_ngrams(["", " \n"], 7).any()


@given(st.lists(st.binary(max_size=20)))
def test_murmur3_equals_sklearn(keys: list[bytes]) -> None:
    from sklearn.utils import murmurhash3_32

    assert murmur3(keys).tolist() == [murmurhash3_32(key, 0) for key in keys]
