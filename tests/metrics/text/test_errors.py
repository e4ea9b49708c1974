"""Errors of the text metrics, and their signatures."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.examples import for_all
from yarus.metrics import text
from yarus.metrics.text import bleu, chrf, corpus_bleu, perplexity, rouge, rouge_all, signature, string_similarity, wer

TWO_COLUMNS = [
    "bleu",
    "bleu_counts",
    "corpus_bleu",
    "rouge",
    "rouge1",
    "rouge2",
    "rougeL",
    "rouge_all",
    "chrf",
    "string_similarity",
    "wer",
]


@pytest.mark.parametrize(
    ("logprobs", "error", "message"),
    [
        ([[-1.0], [-0.5, 0.25]], ValueError, r"token_logprobs\[1\]\[1\] is 0.25: .*natural logarithms"),
        ([[-1.0, math.nan]], ValueError, r"token_logprobs\[0\]\[1\] is nan"),
        ([["-1"]], TypeError, r"token_logprobs\[0\] is \['-1'\], not a sequence of numbers"),
        ([-1.0, -2.0], TypeError, r"token_logprobs\[0\] is -1.0, not a sequence of numbers"),
        ([[[-1.0]]], TypeError, r"token_logprobs\[0\]"),
        ([[None]], TypeError, r"token_logprobs\[0\] is \[None\]"),
        ("text", TypeError, r"token_logprobs must hold one sequence of numbers a case, not 'text'"),
    ],
)
def test_perplexity_refuses(logprobs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        perplexity(logprobs)


@for_all("name", TWO_COLUMNS)
def test_bad_input(name: str) -> None:
    metric = getattr(text, name)
    with pytest.raises(ValueError, match=r"2 hypotheses but 1 references"):
        metric(["а", "б"], ["а"])
    with pytest.raises(TypeError, match=r"hypotheses\[1\] is 3 \(int\), not a text; a missing text is None"):
        metric(["а", 3], ["а", "б"])
    with pytest.raises(TypeError, match=r"references\[1\] is nan \(float\), not a text"):
        metric(["а", "б"], ["а", math.nan])
    with pytest.raises(TypeError, match=r"references\[0\] is b'\.*"):
        metric(["а"], [b"a"])
    with pytest.raises(TypeError, match=r"hypotheses must be a sequence of texts, one a case, not 'текст' \(str\)"):
        metric("текст", ["текст"])
    with pytest.raises(TypeError, match=r"references must be a sequence of texts, one a case, not 5 \(int\)"):
        metric(["текст"], 5)
    with pytest.raises(TypeError, match=r"hypotheses\[0\] is \['а'\]"):
        metric([["а"]], ["а"])


@pytest.mark.parametrize("metric", [wer, string_similarity])
def test_several_references_are_refused(metric: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"references\[1\] is \['а', 'б'\] \(list\): this metric is defined for one"):
        metric(["а", "а"], ["а", ["а", "б"]])
    with pytest.raises(TypeError, match=r"references\[0\] is 7 \(int\), not a text"):
        metric(["а"], [7])


@pytest.mark.parametrize("metric", [bleu, rouge, chrf])
def test_number_among_references_is_refused(metric: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"references\[1\]\[2\] is 7 \(int\), not a text"):
        metric(["а", "а"], ["а", ["а", None, 7]])
    with pytest.raises(TypeError, match=r"references\[0\] is \{'а': 1\} \(dict\), not a text"):
        metric(["а"], [{"а": 1}])


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(TypeError, match=r"not '1{56}\.\.\. \(str\); give \[text\] for a single case$"):
        wer("1" * 1000, ["а"])
    with pytest.raises(TypeError, match=r"not '1{58}' \(str\);"):
        wer("1" * 58, ["а"])
    with pytest.raises(TypeError, match=r"not '1{56}\.\.\. \(str\);"):
        wer("1" * 59, ["а"])


@for_all(
    "metric, parameters, message",
    [
        (bleu, {"max_ngram": 0}, "max_ngram is 0: it must be 1 or more"),
        (corpus_bleu, {"max_ngram": -1}, "max_ngram is -1: it must be 1 or more"),
        (chrf, {"char_order": 0}, "char_order is 0: it must be 1 or more"),
        (chrf, {"word_order": -1}, "word_order is -1: it must be 0 or more"),
        (chrf, {"beta": -0.5}, "beta is -0.5: it must be 0 or more"),
        (chrf, {"beta": math.nan}, "beta is nan: it must be 0 or more"),
        (rouge, {"variant": "rouge_1"}, r"no ROUGE variant 'rouge_1'; allowed are .*; did you mean 'rouge1'\?"),
        (rouge, {"mode": "f"}, r"no ROUGE mode 'f'; allowed are 'precision', 'recall', 'fmeasure'"),
        (rouge_all, {"mode": "recal"}, r"did you mean 'recall'\?"),
        (string_similarity, {"measure": "JARO"}, r"no measure 'JARO'; allowed are 'levenshtein', 'hamming', 'jaro'"),
        (bleu, {"tokenizer": "13b"}, r"no tokenizer '13b'; .*did you mean '13a'\?"),
        (rouge, {"tokenizer": "word"}, r"did you mean 'words'\?"),
        (wer, {"tokenizer": "chars"}, r"did you mean 'char'\?"),
    ],
)
def test_bad_parameters(metric: Callable[..., Any], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric([], [], **parameters)


def test_text_metrics_keep_input() -> None:
    hypotheses, references = ["ёж", None], [["ёж", None], "да"]
    bleu(hypotheses, references, fold_yo=True)
    chrf(hypotheses, references, fold_yo=True)
    assert (hypotheses, references) == (["ёж", None], [["ёж", None], "да"])


@for_all(
    "metric, parameters, expected",
    [
        ("bleu", {}, "bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1"),
        ("bleu", {"smoothing": False, "tokenizer": "13a"}, "bleu|max_ngram:4|smoothing:none|tok:13a|norm:NFC|v:1"),
        ("corpus_bleu", {}, "corpus_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1"),
        ("rouge", {"fold_yo": True}, "rouge|variant:rougeL|mode:fmeasure|tok:words|norm:NFC+yo|v:1"),
        ("rouge1", {}, "rouge1|mode:fmeasure|tok:words|norm:NFC|v:1"),
        ("rouge2", {"mode": "recall"}, "rouge2|mode:recall|tok:words|norm:NFC|v:1"),
        ("rougeL", {}, "rougeL|mode:fmeasure|tok:words|norm:NFC|v:1"),
        ("chrf", {"word_order": 2}, "chrf|char_order:6|word_order:2|beta:2|whitespace:no|norm:NFC|v:1"),
        (
            "chrf",
            {"beta": 0.5, "whitespace": True},
            "chrf|char_order:6|word_order:0|beta:0.5|whitespace:yes|norm:NFC|v:1",
        ),
        ("string_similarity", {}, "string_similarity|measure:jaro_winkler|case_sensitive:no|norm:NFC|v:1"),
        ("wer", {}, "wer|tok:words|norm:NFC|v:1"),
        ("perplexity", {}, "perplexity|v:1"),
    ],
)
def test_signature(metric: str, parameters: dict[str, Any], expected: str) -> None:
    assert signature(metric, **parameters) == expected


def test_signature_refuses_unknown_parameters() -> None:
    with pytest.raises(ValueError, match=r"no text metric 'blue'; .*did you mean 'bleu'\?"):
        signature("blue")
    with pytest.raises(ValueError, match=r"no parameter of wer 'tokeniser'; .*did you mean 'tokenizer'\?"):
        signature("wer", tokeniser="13a")
