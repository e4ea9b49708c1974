"""Tests of behaviour whose breaks only mutation testing revealed as untested."""

import numpy as np
import pytest

from yarus.metrics.dialogue import context_similarity_by_dialog
from yarus.metrics.embedding import (
    cluster_similarities,
    effective_dimensionality,
    nearest_neighbour_distances,
    silhouette,
)
from yarus.metrics.retrieval import gain_matrix, ndcg
from yarus.metrics.text import bleu, bleu_counts, chrf, perplexity, rouge, rouge_all, score_bleu, tokenize


@pytest.mark.parametrize("neighbours", [5, 500])
def test_nearest_distances_of_small_last_block(neighbours: int) -> None:
    """1,026 texts are worked on as 1,024 and 2: the neighbours of the last two lie in the first block."""

    from sklearn.neighbors import NearestNeighbors

    vectors = np.random.default_rng(1).normal(size=(1_026, 4))
    distances, _ = NearestNeighbors(n_neighbors=neighbours + 1, metric="cosine").fit(vectors).kneighbors(vectors)
    ours = nearest_neighbour_distances(vectors, neighbours=neighbours)
    np.testing.assert_allclose(ours, distances[:, 1:].mean(axis=1), rtol=0, atol=1e-9)


def test_effective_dimensionality_of_nearly_equal_texts() -> None:
    apart = 1e-7 * np.random.default_rng(4).normal(size=(50, 3))
    assert effective_dimensionality(np.array([1.0, 0, 0]) + apart) == effective_dimensionality(apart)


def test_effective_dimensionality_memory_for_few_texts() -> None:
    """Of 8,000 dimensions it would be 512 MB, and minutes for its eigenvalues."""
    vectors = np.zeros((9, 8_000))
    vectors[range(8), range(8)] = 1
    assert effective_dimensionality(vectors) == effective_dimensionality(vectors[:, :8])


@pytest.mark.parametrize("neighbours", [1, 2, 20])
def test_nearest_distances_use_nearest(neighbours: int) -> None:
    vectors = np.random.default_rng(2).normal(size=(300, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = np.sort(1 - unit @ unit.T, axis=1)[:, 1 : neighbours + 1]
    ours = nearest_neighbour_distances(vectors, neighbours=neighbours)
    np.testing.assert_allclose(ours, nearest.mean(axis=1), rtol=0, atol=1e-9)


def test_similarity_in_range_despite_rounding() -> None:
    for vector in np.random.default_rng(3).normal(size=(300, 1, 5)):
        three = np.repeat(vector, 3, axis=0)
        assert cluster_similarities(three, "aaa")[0] == pytest.approx(1)
        assert cluster_similarities(three, "aaa")[0] <= 1
        assert context_similarity_by_dialog(three, "ddd")[0] <= 1
        assert context_similarity_by_dialog(three * [[1], [-1], [1]], "ddd")[0] >= -1


def test_many_copies_have_zero_distance() -> None:
    """The sum over many copies has more rounding than one of them: it is no distance either."""
    copies = np.repeat(np.random.default_rng(1).normal(size=(1, 300)), 6_000, axis=0)
    assert silhouette(copies, ["a"] * 3_000 + ["b"] * 3_000) == 0


def test_grades_without_ideal_name_first_grade() -> None:
    gains, n_relevant = gain_matrix([["a"], ["b"]], [{"a": 2}, {"b": 3}], depth=1)
    with pytest.raises(ValueError, match="a gain of 2 is a grade"):
        ndcg(gains, n_relevant, k=1)


def test_bleu_counts_default_without_folding_yo() -> None:
    assert score_bleu(bleu_counts(["ёж"], ["еж"])).score == 0
    assert score_bleu(bleu_counts(["ёж"], ["еж"], fold_yo=True)).score == 1


def test_rouge_default_without_folding_yo() -> None:
    assert rouge(["ёж"], ["еж"]) == 0
    assert rouge(["ёж"], ["еж"], fold_yo=True) == 1
    assert rouge_all(["ёж"], ["еж"])["rouge1"] == 0
    assert rouge_all(["ёж"], ["еж"], fold_yo=True)["rouge1"] == 1


def test_batch_of_one_and_a_half_blocks_is_scored() -> None:
    texts = [f"{number} " + "слово " * 16 for number in range(250)]  # 50,000 characters on both sides, of 32,768
    assert (chrf(texts, texts) == 1).all()
    twice = texts + texts  # 100,000 of 65,536
    assert (bleu(twice, twice) == 1).all()


def test_perplexity_names_first_bad_logarithm() -> None:
    with pytest.raises(ValueError, match=r"token_logprobs\[0\]\[1\] is 0.5"):
        perplexity([[-1.0, 0.5, 0.7]])


@pytest.mark.parametrize(
    "text", ["цена ..5 руб", "a,.7", "без <skipped> слова", "пере-\nнос", "a &amp; b", "<skipped>", "x &lt; 1..2"]
)
def test_13a_rules_apply_to_single_text(text: str) -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    assert tokenize(text, tokenizer="13a") == Tokenizer13a()(text.rstrip()).split()
