"""The text metrics by worked examples, edge rows and bad input."""

import math
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.examples import for_all
from yarus.metrics.text import (
    bleu,
    chrf,
    perplexity,
    rouge1,
    rouge2,
    rougeL,
    string_similarity,
    wer,
)

FOX = "Быстрая коричневая лиса прыгает через ленивую собаку."
DOCTORS = "Искусственный интеллект помогает медицинским специалистам диагностировать заболевания быстрее и точнее."
FOX_TYPO = ("Быстрая кричневая лиса прыгает через ленивую собаку", FOX.rstrip("."))
PLUS = ("Обработка естественного языка увлекательна", "Обработка естественного языка интересна и увлекательна")
RUNNING = ("бегущий быстро", "бежит быстро")
ENDINGS = ("организации предприятия учреждения", "организация предприятие учреждение")
TYPOS = ("агенство аккомодация коммуникация", "агентство аккомодация коммуникация")
CAT = ("Кошка сидела на коврике.", "Кошка сидит на коврике.")
# Everything that takes hypotheses and references, with the worst value it can give and the best.
OVERLAPS: dict[str, Callable[..., Any]] = {
    "bleu": bleu,
    "bleu unsmoothed": lambda h, r, **more: bleu(h, r, smoothing=False, **more),
    "rouge1": rouge1,
    "rougeL": rougeL,
    "rougeL precision": lambda h, r, **more: rougeL(h, r, mode="precision", **more),
    "rougeL recall": lambda h, r, **more: rougeL(h, r, mode="recall", **more),
    "chrf": chrf,
    "chrf++": lambda h, r, **more: chrf(h, r, word_order=2, **more),
    "chrf with spaces": lambda h, r, **more: chrf(h, r, whitespace=True, **more),
}
SIMILARITIES: dict[str, Callable[..., Any]] = {
    measure: lambda h, r, measure=measure, **more: string_similarity(h, r, measure=measure, **more)
    for measure in ("levenshtein", "hamming", "jaro", "jaro_winkler")
}
METRICS = OVERLAPS | SIMILARITIES | {"wer": wer}


def best(name: str) -> float:
    return 0.0 if name == "wer" else 1.0


def worst(name: str) -> float:
    return 1.0 if name == "wer" else 0.0


@pytest.mark.parametrize(
    ("metric", "parameters", "hypothesis", "reference", "value"),
    [
        # The worked examples of the project's sources, by the published definitions.
        pytest.param(bleu, {}, *CAT, 0.5, id="BLEU, words and add-1: (3/4 · 2/4 · 1/3 · 1/2)^(1/4)"),
        pytest.param(
            bleu, {"tokenizer": "13a"}, *CAT, 0.53183, id="BLEU with 13a tokens, where the full stop matches too"
        ),
        pytest.param(bleu, {}, "Париж - столица Франции.", "Париж - столица Франции.", 1.0, id="BLEU of 3 equal words"),
        pytest.param(bleu, {"smoothing": False}, "Привет мир", "До свидания луна", 0.0, id="BLEU without a match"),
        pytest.param(rougeL, {}, "ИИ помогает врачам быстрее диагностировать болезни.", DOCTORS, 0.25, id="ROUGE-L"),
        pytest.param(
            rougeL,
            {"tokenizer": "13a"},
            "ИИ помогает врачам быстрее диагностировать болезни.",
            DOCTORS,
            1 / 3,
            id="ROUGE-L where punctuation is a token: what the source's bound of 0.3 needs",
        ),
        pytest.param(
            rouge1,
            {"mode": "recall"},
            "Быстрая коричневая лиса прыгает через ленивую собаку",
            "Быстрая бурая лиса перепрыгивает через ленивую собаку",
            5 / 7,
            id="ROUGE-1 recall",
        ),
        pytest.param(
            rouge2,
            {"mode": "precision"},
            "алгоритмы машинного обучения",
            "алгоритмы машинного обучения и модели глубокого обучения",
            1.0,
            id="ROUGE-2 precision",
        ),
        pytest.param(rougeL, {}, "Быстрая коричневая лиса бежит.", FOX, 6 / 11, id="ROUGE-L, partly"),
        pytest.param(
            rouge1,
            {},
            "Через ленивую собаку прыгает быстрая коричневая лиса.",
            FOX,
            1.0,
            id="ROUGE-1, other order: the source's 0.89 does not follow from its formula",
        ),
        pytest.param(
            rougeL,
            {},
            "Через ленивую собаку прыгает быстрая коричневая лиса.",
            FOX,
            3 / 7,
            id="ROUGE-L, other order: the source's 0.56 does not follow from its formula",
        ),
        pytest.param(chrf, {}, *FOX_TYPO, 0.922109, id="chrF, a typo"),
        pytest.param(chrf, {"whitespace": True}, *FOX_TYPO, 0.93178, id="chrF, a typo, counting spaces"),
        pytest.param(chrf, {"word_order": 2}, *PLUS, 0.715991, id="chrF++"),
        pytest.param(chrf, {}, *RUNNING, 0.429359, id="chrF, word forms: the source's 0.5 does not follow"),
        pytest.param(chrf, {"whitespace": True}, *RUNNING, 0.492449, id="chrF, word forms, counting spaces"),
        pytest.param(chrf, {}, *ENDINGS, 0.731742, id="chrF, endings: the source's 0.85 does not follow"),
        pytest.param(chrf, {"whitespace": True}, *ENDINGS, 0.759584, id="chrF, endings, counting spaces"),
        pytest.param(chrf, {}, *TYPOS, 0.889789, id="chrF, typos (0.90 in the source)"),
        pytest.param(chrf, {"whitespace": True}, *TYPOS, 0.897048, id="chrF, typos, counting spaces"),
        pytest.param(string_similarity, {"measure": "levenshtein"}, "котёнок", "котенок", 6 / 7, id="Levenshtein"),
        pytest.param(
            string_similarity, {}, "МАРТА", "МАРФА", 0.9066666667, id="Jaro-Winkler: 0.8667 + 3 · 0.1 · 0.1333"
        ),
        pytest.param(string_similarity, {"measure": "jaro"}, "МАРТА", "МАРФА", 13 / 15, id="Jaro: (4/5 + 4/5 + 1) / 3"),
        pytest.param(string_similarity, {"measure": "hamming"}, "МАРТА", "МАРФА", 0.8, id="Hamming"),
        pytest.param(
            string_similarity, {"measure": "levenshtein"}, "Привет Мир", "привет мир", 1.0, id="Levenshtein, any case"
        ),
        pytest.param(
            string_similarity,
            {"measure": "levenshtein", "case_sensitive": True},
            "Привет Мир",
            "привет мир",
            0.8,
            id="Levenshtein, case-sensitive",
        ),
        # Worked out here.
        pytest.param(bleu, {"smoothing": False}, "а б в", "а б г", 0.0, id="BLEU: no shared trigram"),
        pytest.param(bleu, {"smoothing": False}, "а б", "а б", 1.0, id="BLEU: two words have two orders"),
        pytest.param(bleu, {"smoothing": False, "max_ngram": 2}, "а б в", "а б г", 3**-0.5, id="BLEU-2: √(2/3 · 1/2)"),
        pytest.param(
            bleu, {"max_ngram": 1}, "а а а", "а б в", 1 / 3, id="BLEU-1: a word counts as often as it is there"
        ),
        pytest.param(bleu, {"max_ngram": 1}, "а б", "а б в г", math.exp(-1), id="BLEU: brevity exp(1 - 4/2)"),
        pytest.param(bleu, {"max_ngram": 1}, "а б в г", "а б", 0.5, id="BLEU: no penalty for length itself"),
        pytest.param(rouge1, {}, "а а б", "а в", 0.4, id="ROUGE-1: one shared, 2·1/(3+2)"),
        pytest.param(rouge2, {}, "а б в", "а б г в", 0.4, id="ROUGE-2: one shared, 2·1/(2+3)"),
        pytest.param(rouge2, {"mode": "recall"}, "а б в", "а б г в", 1 / 3, id="ROUGE-2 recall"),
        pytest.param(rougeL, {"mode": "precision"}, "а б в", "а б г в", 1.0, id="ROUGE-L precision: а б в"),
        pytest.param(rougeL, {"mode": "recall"}, "а б в", "а б г в", 0.75, id="ROUGE-L recall"),
        pytest.param(chrf, {"char_order": 1}, "аб", "абвг", 5 / 9, id="chrF-1: P 1, R 1/2, 5·P·R/(4P+R)"),
        pytest.param(chrf, {"char_order": 1, "beta": 1.0}, "аб", "абвг", 2 / 3, id="chrF-1 with beta 1"),
        pytest.param(chrf, {"char_order": 1, "beta": 0}, "аб", "абвг", 1.0, id="chrF-1 with beta 0 is precision"),
        pytest.param(chrf, {"char_order": 1, "word_order": 1}, "аб вг", "аб гв", 0.75, id="chrF+: (1 + 1/2)/2"),
        pytest.param(chrf, {}, "Мир", "мир", 7 / 18, id="chrF sees case: (2/3 + 1/2 + 0)/3"),
        pytest.param(wer, {}, "а б в г", "а х в", 2 / 3, id="WER: one substitution, one insertion"),
        pytest.param(wer, {}, "а б в г", "х", 4.0, id="WER passes 1"),
        pytest.param(wer, {}, "в", "а б в", 2 / 3, id="WER: two deletions"),
        pytest.param(wer, {}, "Да, конечно!", "да конечно", 0.0, id="WER of words"),
        pytest.param(wer, {"tokenizer": "whitespace"}, "Да, конечно", "да конечно", 0.5, id="WER as jiwer splits"),
        pytest.param(wer, {"tokenizer": "char"}, "кот", "кит", 1 / 3, id="character error rate"),
    ],
)
def test_worked_examples(
    metric: Callable[..., Any], parameters: dict[str, Any], hypothesis: str, reference: str, value: float
) -> None:
    # The examples are given to six places at most; the peers hold the rest.
    assert metric([hypothesis], [reference], **parameters) == pytest.approx([value], abs=5e-7)


@for_all("name", METRICS)
@for_all(
    "hypothesis, reference",
    [
        (FOX, FOX),
        ("слово", "слово"),
        ("東京都に行く", "東京都に行く"),
        ("ภาษาไทยไม่มีช่องว่าง", "ภาษาไทยไม่มีช่องว่าง"),
        ("हिन्दी की किताब", "हिन्दी की किताब"),
        ("ответ 🎉", "ответ 🎉"),
        ("да да да да да", "да да да да да"),
        (unicodedata.normalize("NFD", "Ёлки и йод"), unicodedata.normalize("NFC", "Ёлки и йод")),
        ("\ud800 слово", "\ud800 слово"),
    ],
)
def test_identical_text_is_best(name: str, hypothesis: str, reference: str) -> None:
    assert METRICS[name]([hypothesis], [reference]).tolist() == [best(name)]


@for_all("name", METRICS)
def test_missing_and_empty(name: str) -> None:
    """No reference or no hypothesis: undefined. An empty hypothesis: the worst value."""
    hypotheses = [None, "да", "да", None, "", "", None]
    references = ["да", None, "", None, "да", None, ""]
    expected = [np.nan, np.nan, np.nan, np.nan, worst(name), np.nan, np.nan]
    np.testing.assert_array_equal(METRICS[name](hypotheses, references), expected)


@for_all("name", METRICS)
def test_no_cases(name: str) -> None:
    values = METRICS[name]([], [])
    assert values.shape == (0,)
    assert values.dtype == np.float64


@for_all("name", ["bleu", "bleu unsmoothed", "rouge1", "rougeL", "rougeL precision", "wer"])
@for_all("blank", [" ", "\t\n\u00a0", "...", "?! — «»", "🎉"])
def test_texts_without_a_word(name: str, blank: str) -> None:
    """As a reference they leave nothing to measure; as a hypothesis they are as good as empty."""
    np.testing.assert_array_equal(
        METRICS[name](["да", blank, blank], [blank, blank, "да"]), [np.nan, np.nan, worst(name)]
    )


def test_texts_without_a_word_have_characters() -> None:
    assert chrf(["...", "...", " \t", "да"], ["...", "!!!", " \t", " \t"]) == pytest.approx(
        [1, 0, np.nan, np.nan], nan_ok=True
    )
    assert chrf([" \t"], [" \t"], whitespace=True).tolist() == [1.0]
    assert string_similarity(["...", " "], ["...", " "]).tolist() == [1.0, 1.0]
    assert bleu(["..."], ["..."], tokenizer="13a").tolist() == [1.0]


def test_hamming_needs_equal_lengths() -> None:
    hypotheses, references = ["абв", "аб", "абвг", "абв", ""], ["абг", "абв", "абв", "где", "абв"]
    expected = [2 / 3, np.nan, np.nan, 0, 0]
    np.testing.assert_allclose(string_similarity(hypotheses, references, measure="hamming"), expected, rtol=1e-12)


def test_case_sensitivity_of_string_similarity() -> None:
    assert string_similarity(["МИР"], ["мир"]).tolist() == [1.0]
    assert string_similarity(["МИР"], ["мир"], case_sensitive=True).tolist() == [0.0]


@for_all("name", METRICS)
def test_yo_folding(name: str) -> None:
    hypothesis, reference = ["зелёный Ёж идёт домой"], ["зеленый Еж идет домой"]
    assert METRICS[name](hypothesis, reference)[0] != best(name)
    assert METRICS[name](hypothesis, reference, fold_yo=True).tolist() == [best(name)]


@for_all("name", OVERLAPS)
def test_several_references(name: str) -> None:
    """The exact one decides, wherever it is; None, '' and texts without a token in between do not count."""
    metric = OVERLAPS[name]
    hypothesis = "кошка на окне"
    for references in (
        [hypothesis],
        [hypothesis, "собака во дворе у дома"],
        ("собака во дворе у дома", hypothesis),
        [None, "", hypothesis],
        np.array(["собака", hypothesis]),
    ):
        assert metric([hypothesis, hypothesis], [references, hypothesis]).tolist() == [1.0, 1.0], references
    undefined: list[Any] = [[], [None, ""], [None], (), [" "] if name != "chrf with spaces" else []]
    assert np.isnan(metric([hypothesis] * 5, undefined)).all()


def test_perplexity() -> None:
    cases = [[math.log(0.1)] * 10, None, [], [-1.0, -3.0], (0.0,), np.array([-2.0], dtype=np.float32), [0, -2]]
    expected = [10, np.nan, np.nan, math.e**2, 1, math.e**2, math.e]
    np.testing.assert_allclose(perplexity(cases), expected, rtol=1e-12)
    assert perplexity([]).shape == (0,)


def test_perplexity_of_the_impossible_is_infinite() -> None:
    assert perplexity([[-math.inf, -1.0], [-1e6], [-700.0]]).tolist() == [math.inf, math.inf, math.exp(700)]
