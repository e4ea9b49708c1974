"""BLEU: worked examples, its counts, and its parts under sacreBLEU's names."""

import math

import numpy as np
import pytest

from yarus.metrics.text import (
    bleu,
    bleu_counts,
    corpus_bleu,
    score_bleu,
)


def test_bleu_of_several_references() -> None:
    # Lengths 2 and 4 are as near to 3: the shorter counts, so there is no penalty for brevity.
    assert bleu(["а б в"], [["а б в г", "а б"]], max_ngram=1).tolist() == [1.0]
    # Length 4 is nearer to 3 than 1 is.
    assert bleu(["а б в"], [["а", "а б в г"]], max_ngram=1) == pytest.approx([math.exp(-1 / 3)])
    # «а» twice in one, «б» once in the other: 2 + 1 of 3 words are found.
    assert bleu(["а а б"], [["а а в", "б г д"]], max_ngram=1).tolist() == [1.0]
    # The counts of several references do not add up.
    assert bleu(["а а"], [["а б", "а в"]], max_ngram=1).tolist() == [0.5]
    # A reference without a token has no length to be near to.
    assert bleu(["а"], [["...", "а б в"]], max_ngram=1) == pytest.approx([math.exp(-2)])


def test_corpus_bleu() -> None:
    hypotheses, references = ["а б в", "г д", None, "е"], ["а б г", "г д е ж", "х", None]
    value, made_by = corpus_bleu(hypotheses, references, max_ngram=2)
    # Unigrams 4 of 5, bigrams (2 + 1) of (3 + 1), 5 tokens against 7.
    assert value == pytest.approx(math.sqrt(4 / 5 * 3 / 4) * math.exp(1 - 7 / 5), abs=1e-12)
    assert made_by == "corpus_bleu|max_ngram:2|smoothing:add-1|tok:words|norm:NFC|v:1"
    value, made_by = corpus_bleu(hypotheses, references, max_ngram=2, smoothing=False, tokenizer="13a", fold_yo=True)
    assert value == pytest.approx(math.sqrt(4 / 5 * 2 / 3) * math.exp(1 - 7 / 5), abs=1e-12)
    assert made_by == "corpus_bleu|max_ngram:2|smoothing:none|tok:13a|norm:NFC+yo|v:1"
    assert corpus_bleu(["ёж"], ["еж"], fold_yo=True)[0] == 1.0
    assert math.isnan(corpus_bleu([], [])[0])
    assert math.isnan(corpus_bleu(["да"], ["..."])[0])
    assert isinstance(corpus_bleu(["да"], ["да"])[0], float)


def test_bleu_counts_add_up_to_the_corpus() -> None:
    hypotheses, references = ["а б в", "а", None, "", "а б", "а"], ["а б г", ["б", "а б"], "а", "а б", "…", None]
    counts = bleu_counts(hypotheses, references, max_ngram=3)
    assert counts.tolist() == [
        [3, 3, 2, 1, 0, 3, 2, 1],
        [1, 1, 1, 0, 0, 1, 0, 0],
        [0] * 8,
        [0, 2, 0, 0, 0, 0, 0, 0],
        [0] * 8,
        [0] * 8,
    ]
    assert score_bleu(counts.sum(axis=0)).score == corpus_bleu(hypotheses, references, max_ngram=3)[0]
    np.testing.assert_array_equal(score_bleu(counts).score, bleu(hypotheses, references, max_ngram=3))
    np.testing.assert_array_equal(
        score_bleu(counts, smoothing=False).score, bleu(hypotheses, references, max_ngram=3, smoothing=False)
    )
    assert bleu_counts(["а"], ["а"]).shape == (1, 10)
    assert bleu_counts(["ёж"], ["е ж"], tokenizer="char", fold_yo=True)[0, 2] == 2


@pytest.mark.parametrize("smoothing", [True, False])
@pytest.mark.parametrize(
    "hypotheses",
    [
        ["Кошка сидела на мягком коврике.", "Ректор подписал новый приказ вчера."],
        ["Кошка сидит на коврике.", ""],  # shorter than the references
        ["Да.", "Приказ"],  # no run of three
    ],
)
def test_bleu_parts_equal_sacrebleu(hypotheses: list[str], smoothing: bool) -> None:
    from sacrebleu.metrics.bleu import BLEU

    references = ["Кошка сидит на мягком коврике. Да.", "Приказ подписал новый ректор."]
    method = {"smooth_method": "add-k", "smooth_value": 1} if smoothing else {"smooth_method": "none"}
    peer = BLEU(effective_order=True, **method).corpus_score(hypotheses, [references])
    ours = score_bleu(bleu_counts(hypotheses, references, tokenizer="13a").sum(axis=0), smoothing=smoothing)
    assert (ours.sys_len, ours.ref_len) == (peer.sys_len, peer.ref_len)
    assert (ours.counts.tolist(), ours.totals.tolist()) == (peer.counts, peer.totals)
    assert ours.bp == pytest.approx(peer.bp, abs=1e-12)
    assert np.nan_to_num(100 * ours.precisions) == pytest.approx(peer.precisions, abs=1e-12)
    assert 100 * ours.score == pytest.approx(peer.score, abs=1e-9)
    assert np.isnan(ours.precisions).tolist() == [total == 0 for total in peer.totals]


def test_bleu_parts_of_many_rows() -> None:
    counts = bleu_counts(["а б в", "", None], ["а б г", "а", "а"])
    all_rows = score_bleu(counts)
    for row, each in enumerate(map(score_bleu, counts)):
        for part, values in each._asdict().items():
            np.testing.assert_array_equal(values, getattr(all_rows, part)[row])
    assert all_rows.bp.tolist() == [1, 0, 0]  # no word: as short as can be
    np.testing.assert_array_equal(all_rows.score[1:], [0, np.nan])
