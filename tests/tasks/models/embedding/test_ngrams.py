"""Hashed n-grams: equal to scikit-learn's, bit by bit, whatever the texts are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.models.embedding import ngrams
from yarus.tasks.models.embedding.ngrams import murmur3, ngram_counts

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=5)
ODD = ["", "  ", "а", "б в", "Ёлка\u00a0и\u2003ёлка", "図書館 🎓🎓", "İstanbul ß ǅ", "\u0085a\x1cb", "да " * 300]


def theirs(texts: list[str]) -> np.ndarray:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 4), n_features=2_000, norm=None, dtype=np.float32
    )
    return vectorizer.transform(texts).toarray()


@given(TEXTS.filter(bool))
def test_any_texts(texts: list[str]) -> None:
    np.testing.assert_array_equal(ngram_counts(texts, 2_000), theirs(texts))


def test_odd_texts_in_several_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "AT_ONCE", 2)
    found = ngram_counts(ODD, 2_000)
    np.testing.assert_array_equal(found, theirs(ODD))
    assert found[2:].any(axis=1).all()


def test_nothing_to_count() -> None:
    assert ngram_counts([], 7).shape == (0, 7)
    assert not ngram_counts(["", " \n"], 7).any()


@given(st.lists(st.binary(max_size=20)))
def test_the_hash(keys: list[bytes]) -> None:
    from sklearn.utils import murmurhash3_32

    assert murmur3(keys).tolist() == [murmurhash3_32(key, 0) for key in keys]
