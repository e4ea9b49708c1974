"""The text metrics against the packages whose values they equal, on real pairs and on generated text."""

import random
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

from yarus.metrics.text import bleu, chrf, corpus_bleu, rouge, rouge_all, string_similarity, tokenize, wer

Case = tuple[str, list[str]]
MODES = ("precision", "recall", "fmeasure")

# Few distinct characters, so that texts share n-grams; the rest for all of Unicode.
LIKELY = st.text(alphabet="абвё AB1.,-'(\u0301 \n\u00a0ที่中🎉", max_size=30)
WORDS = st.lists(st.sampled_from(["а", "б", "в", "Г", "«д»", "e-f", "1,5", "ё"]), max_size=12).map(" ".join)
TEXTS = st.one_of(LIKELY, WORDS, st.text())
CASES = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5)
SINGLES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def joined(text: str, tokenizer: str) -> str:
    """Return our tokens as a text that a peer splits at spaces."""
    return " ".join(tokenize(text, tokenizer))


def peer_bleu(cases: list[Case], tokenizer: str, *, smoothing: bool = True, max_ngram: int = 4) -> list[float]:
    from sacrebleu.metrics.bleu import BLEU

    method = {"smooth_method": "add-k", "smooth_value": 1} if smoothing else {"smooth_method": "none"}
    own = tokenizer == "13a"
    scorer = BLEU(tokenize="13a" if own else "none", effective_order=True, max_ngram_order=max_ngram, **method)
    prepare: Callable[[str], str] = nfc if own else lambda text: joined(text, tokenizer)
    scores = []
    for hypothesis, references in cases:
        prepared = [prepare(reference) for reference in references if joined(reference, tokenizer)]
        score = scorer.sentence_score(prepare(hypothesis), prepared).score / 100 if prepared else np.nan
        scores.append(score)
    return scores


def peer_chrf(cases: list[Case], **parameters: Any) -> list[float]:
    from sacrebleu.metrics.chrf import CHRF

    scorer, whitespace = CHRF(**parameters), parameters.get("whitespace", False)
    scores = []
    for hypothesis, references in cases:
        prepared = [nfc(reference) for reference in references if reference and (whitespace or reference.split())]
        scores.append(scorer.sentence_score(nfc(hypothesis), prepared).score / 100 if prepared else np.nan)
    return scores


class Tokenizer:
    def __init__(self, name: str) -> None:
        self.name = name

    def tokenize(self, text: str) -> list[str]:
        return tokenize(text, self.name)


def peer_rouge(cases: list[Case], variant: str, tokenizer: str) -> list[dict[str, float]]:
    """Return the values of each case, by mode."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([variant], tokenizer=Tokenizer(tokenizer))
    order = 2 if variant == "rouge2" else 1
    scores = []
    for hypothesis, references in cases:
        defined = [reference for reference in references if len(tokenize(reference, tokenizer)) >= order]
        best = scorer.score_multi(defined, hypothesis)[variant]._asdict() if defined else dict.fromkeys(MODES, np.nan)
        scores.append(best)
    return scores


def peer_wer(pairs: list[tuple[str, str]], tokenizer: str) -> list[float]:
    import jiwer

    prepared = [(joined(hypothesis, tokenizer), joined(reference, tokenizer)) for hypothesis, reference in pairs]
    return [jiwer.wer(reference, hypothesis) if reference else np.nan for hypothesis, reference in prepared]


PEER_SIMILARITIES = {"levenshtein": Levenshtein, "hamming": Hamming, "jaro": Jaro, "jaro_winkler": JaroWinkler}


def peer_similarity(hypothesis: str, reference: str, measure: str) -> float:
    hypothesis, reference = nfc(hypothesis).lower(), nfc(reference).lower()
    if not reference or (measure == "hamming" and len(hypothesis) not in (0, len(reference))):
        return np.nan
    return PEER_SIMILARITIES[measure].normalized_similarity(hypothesis, reference)


def assert_equal(ours: Any, peers: Any) -> None:
    np.testing.assert_allclose(ours, peers, rtol=0, atol=1e-9)


def unzip(cases: list[Any]) -> tuple[list[Any], list[Any]]:
    return [case[0] for case in cases], [case[1] for case in cases]


@pytest.fixture(scope="module")
def real_pairs(xquad_pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Answers against their sentences, and sentences against themselves with some words of others put in."""
    rng = random.Random(0)
    words = [word for _, sentence in xquad_pairs for word in sentence.split()]
    changed = [
        (" ".join(rng.choice(words) if rng.random() < 0.2 else word for word in sentence.split()), sentence)
        for _, sentence in xquad_pairs[::3]
    ]
    return xquad_pairs + changed


@pytest.mark.slow("breadth: generated texts agree, these are real or long")
@pytest.mark.parametrize("tokenizer", ["words", "13a"])
@pytest.mark.parametrize("smoothing", [True, False])
def test_bleu_on_real_pairs(real_pairs: list[tuple[str, str]], tokenizer: str, smoothing: bool) -> None:
    cases = [(hypothesis, [reference]) for hypothesis, reference in real_pairs]
    ours = bleu(*unzip(real_pairs), tokenizer=tokenizer, smoothing=smoothing)
    assert_equal(ours, peer_bleu(cases, tokenizer, smoothing=smoothing))


@pytest.mark.slow("breadth: generated texts agree, these are real or long")
@pytest.mark.parametrize("smoothing", [True, False])
def test_corpus_bleu_on_real_pairs(real_pairs: list[tuple[str, str]], smoothing: bool) -> None:
    from sacrebleu.metrics.bleu import BLEU

    hypotheses, references = unzip(real_pairs)
    method = {"smooth_method": "add-k", "smooth_value": 1} if smoothing else {}  # not smoothed: sacreBLEU's own default
    peer = BLEU(**method).corpus_score([nfc(text) for text in hypotheses], [[nfc(text) for text in references]])
    assert_equal(corpus_bleu(hypotheses, references, tokenizer="13a", smoothing=smoothing)[0], peer.score / 100)


@pytest.mark.slow("breadth: generated texts agree, these are real or long")
def test_rouge_on_real_pairs(real_pairs: list[tuple[str, str]]) -> None:
    cases = [(hypothesis, [reference]) for hypothesis, reference in real_pairs]
    peers = {variant: peer_rouge(cases, variant, "words") for variant in ("rouge1", "rouge2", "rougeL")}
    for mode in MODES:
        ours = rouge_all(*unzip(real_pairs), mode=mode)
        assert ours.keys() == peers.keys()
        for variant, values in ours.items():
            assert_equal(values, [score[mode] for score in peers[variant]])


@pytest.mark.slow("breadth: generated texts agree, these are real or long")
@pytest.mark.parametrize("parameters", [{}, {"word_order": 2}, {"whitespace": True, "beta": 1, "char_order": 4}])
def test_chrf_on_real_pairs(real_pairs: list[tuple[str, str]], parameters: dict[str, Any]) -> None:
    cases = [(hypothesis, [reference]) for hypothesis, reference in real_pairs]
    assert_equal(chrf(*unzip(real_pairs), **parameters), peer_chrf(cases, **parameters))


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_wer_on_real_pairs(real_pairs: list[tuple[str, str]], tokenizer: str) -> None:
    assert_equal(wer(*unzip(real_pairs), tokenizer=tokenizer), peer_wer(real_pairs, tokenizer))


@pytest.mark.parametrize("measure", PEER_SIMILARITIES)
def test_string_similarity_on_real_pairs(real_pairs: list[tuple[str, str]], measure: str) -> None:
    peers = [peer_similarity(hypothesis, reference, measure) for hypothesis, reference in real_pairs]
    assert_equal(string_similarity(*unzip(real_pairs), measure=measure), peers)


@given(CASES, st.sampled_from(["words", "13a", "whitespace", "char"]), st.booleans(), st.integers(1, 6))
def test_bleu(cases: list[Case], tokenizer: str, smoothing: bool, max_ngram: int) -> None:
    ours = bleu(*unzip(cases), tokenizer=tokenizer, smoothing=smoothing, max_ngram=max_ngram)
    assert_equal(ours, peer_bleu(cases, tokenizer, smoothing=smoothing, max_ngram=max_ngram))


@given(CASES, st.sampled_from(["words", "13a", "char"]), st.sampled_from(MODES))
def test_rouge(cases: list[Case], tokenizer: str, mode: str) -> None:
    for variant in ("rouge1", "rouge2", "rougeL"):
        ours = rouge(*unzip(cases), variant=variant, mode=mode, tokenizer=tokenizer)
        assert_equal(ours, [score[mode] for score in peer_rouge(cases, variant, tokenizer)])


def test_rouge_of_identical_russian_text() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    text_ = "Москва — столица России"
    assert {name: values.tolist() for name, values in rouge_all([text_], [text_]).items()} == {
        "rouge1": [1.0],
        "rouge2": [1.0],
        "rougeL": [1.0],
    }
    assert RougeScorer(["rougeL"]).score(text_, text_)["rougeL"].fmeasure == 0


@given(CASES, st.integers(1, 8), st.integers(0, 3), st.sampled_from([0.5, 1, 2, 3]), st.booleans())
def test_chrf(cases: list[Case], char_order: int, word_order: int, beta: float, whitespace: bool) -> None:
    parameters = {"char_order": char_order, "word_order": word_order, "beta": beta, "whitespace": whitespace}
    assert_equal(chrf(*unzip(cases), **parameters), peer_chrf(cases, **parameters))


@given(SINGLES, st.sampled_from(["words", "13a", "whitespace", "char"]))
def test_wer(pairs: list[tuple[str, str]], tokenizer: str) -> None:
    assert_equal(wer(*unzip(pairs), tokenizer=tokenizer), peer_wer(pairs, tokenizer))


@given(SINGLES, st.sampled_from(list(PEER_SIMILARITIES)))
def test_string_similarity(pairs: list[tuple[str, str]], measure: str) -> None:
    peers = [peer_similarity(hypothesis, reference, measure) for hypothesis, reference in pairs]
    assert_equal(string_similarity(*unzip(pairs), measure=measure), peers)


@pytest.mark.slow("breadth: generated texts agree, these are real or long")
@pytest.mark.parametrize("alphabet", [200, 2000, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_many_distinct_characters_and_long_ngrams(alphabet: int, seed: int) -> None:
    """N-grams that do not fit into one packed key are counted in stages, with the same result."""
    rng = random.Random(seed)
    characters = [chr(point) for point in range(0x4E00, 0x4E00 + alphabet) if chr(point).isalpha()]
    rng.shuffle(characters)
    source = "".join(characters[:8000])
    cases = []
    for _ in range(3):
        starts = [rng.randrange(len(source)) for _ in range(40)]
        hypothesis = "".join(source[start : start + 12] for start in starts)
        references = ["".join(source[start : start + 10] for start in rng.sample(starts, 30)) for _ in range(2)]
        cases.append((nfc(hypothesis), [nfc(reference) for reference in references]))
    cases.append((source, [source[1:]]))
    assert_equal(chrf(*unzip(cases), char_order=9), peer_chrf(cases, char_order=9))
    assert_equal(bleu(*unzip(cases), tokenizer="char", max_ngram=7), peer_bleu(cases, "char", max_ngram=7))
