"""What only breaking the code on purpose showed to be untested."""

import numpy as np
import pytest

from yarus.metrics.dialogue import context_by_dialog
from yarus.metrics.embedding import (
    cluster_similarities,
    effective_dimensionality,
    nearest_neighbour_distances,
    silhouette,
)
from yarus.metrics.retrieval import gain_matrix, ndcg
from yarus.metrics.text import bleu, bleu_counts, chrf, perplexity, rouge, rouge_all, score_bleu, tokenize


@pytest.mark.parametrize("neighbours", [5, 500])
def test_a_last_block_of_two_texts_finds_its_nearest_neighbours(neighbours: int) -> None:
    """1,026 texts are worked on as 1,024 and 2: the neighbours of the last two lie in the first block."""

    from sklearn.neighbors import NearestNeighbors

    vectors = np.random.default_rng(1).normal(size=(1_026, 4))
    distances, _ = NearestNeighbors(n_neighbors=neighbours + 1, metric="cosine").fit(vectors).kneighbors(vectors)
    ours = nearest_neighbour_distances(vectors, neighbours=neighbours)
    np.testing.assert_allclose(ours, distances[:, 1:].mean(axis=1), rtol=0, atol=1e-9)


def test_texts_that_differ_by_a_ten_millionth_still_vary() -> None:
    apart = 1e-7 * np.random.default_rng(4).normal(size=(50, 3))
    assert effective_dimensionality(np.array([1.0, 0, 0]) + apart) == effective_dimensionality(apart)


def test_few_texts_of_many_dimensions_need_no_table_of_dimensions() -> None:
    """Of 8,000 dimensions it would be 512 MB, and minutes for its eigenvalues."""
    vectors = np.zeros((9, 8_000))
    vectors[range(8), range(8)] = 1
    assert effective_dimensionality(vectors) == effective_dimensionality(vectors[:, :8])


@pytest.mark.parametrize("neighbours", [1, 2, 20])
def test_the_nearest_are_the_nearest(neighbours: int) -> None:
    vectors = np.random.default_rng(2).normal(size=(300, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = np.sort(1 - unit @ unit.T, axis=1)[:, 1 : neighbours + 1]
    ours = nearest_neighbour_distances(vectors, neighbours=neighbours)
    np.testing.assert_allclose(ours, nearest.mean(axis=1), rtol=0, atol=1e-9)


def test_rounding_leads_no_similarity_out_of_its_range() -> None:
    for vector in np.random.default_rng(3).normal(size=(300, 1, 5)):
        three = np.repeat(vector, 3, axis=0)
        assert cluster_similarities(three, "aaa")[0] == pytest.approx(1)
        assert cluster_similarities(three, "aaa")[0] <= 1
        assert context_by_dialog(three, "ddd")[0] <= 1
        assert context_by_dialog(three * [[1], [-1], [1]], "ddd")[0] >= -1


def test_copies_of_a_text_have_no_distance_however_many_they_are() -> None:
    """The sum over many copies has more rounding than one of them: it is no distance either."""
    copies = np.repeat(np.random.default_rng(1).normal(size=(1, 300)), 6_000, axis=0)
    assert silhouette(copies, ["a"] * 3_000 + ["b"] * 3_000) == 0


def test_the_first_grade_is_named() -> None:
    gains, found = gain_matrix([["a"], ["b"]], [{"a": 2}, {"b": 3}], depth=1)
    with pytest.raises(ValueError, match="a gain of 2 is a grade"):
        ndcg(gains, found, k=1)


def test_counts_of_bleu_tell_the_letters_apart_unless_told_otherwise() -> None:
    assert score_bleu(bleu_counts(["ёж"], ["еж"])).score == 0
    assert score_bleu(bleu_counts(["ёж"], ["еж"], fold_yo=True)).score == 1


def test_rouge_tells_the_letters_apart_unless_told_otherwise() -> None:
    assert rouge(["ёж"], ["еж"]) == 0
    assert rouge(["ёж"], ["еж"], fold_yo=True) == 1
    assert rouge_all(["ёж"], ["еж"])["rouge1"] == 0
    assert rouge_all(["ёж"], ["еж"], fold_yo=True)["rouge1"] == 1


def test_a_batch_that_fills_one_block_and_part_of_another_is_scored_to_its_end() -> None:
    texts = [f"{number} " + "слово " * 16 for number in range(250)]  # 50,000 characters on both sides, of 32,768
    assert (chrf(texts, texts) == 1).all()
    twice = texts + texts  # 100,000 of 65,536
    assert (bleu(twice, twice) == 1).all()


def test_the_first_impossible_logarithm_is_named() -> None:
    with pytest.raises(ValueError, match=r"token_logprobs\[0\]\[1\] is 0.5"):
        perplexity([[-1.0, 0.5, 0.7]])


@pytest.mark.parametrize(
    "text", ["цена ..5 руб", "a,.7", "без <skipped> слова", "пере-\nнос", "a &amp; b", "<skipped>", "x &lt; 1..2"]
)
def test_what_needs_the_rules_of_13a_gets_them_where_it_stands_alone(text: str) -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    assert tokenize(text, tokenizer="13a") == Tokenizer13a()(text.rstrip()).split()
